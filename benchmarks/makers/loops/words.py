"""Word-level LSTM and an encoder-decoder that reverses digits."""

import re
import signal
from typing import ClassVar

import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from loop import Task
from sinks import Board, Csv
from text import Block, CharLM, scrambled, source


# word LSTM with CSV
class LSTM(nn.Module):
    def __init__(self, vocab, d=48, drop=0.2):
        super().__init__()
        self.emb, self.rnn, self.drop, self.head = (
            nn.Embedding(vocab, d),
            nn.LSTM(d, 64, batch_first=True),
            nn.Dropout(drop),
            nn.Linear(64, vocab),
        )

    def forward(self, x):
        return self.head(self.drop(self.rnn(self.drop(self.emb(x)))[0]))


class WordLM(Task):
    ctx, soft_first = 20, False

    def __init__(self, h):
        words = re.findall(r"\w+|[^\w\s]", " ".join(t for _, t in source()))
        count = {}
        for w in words:
            count[w] = count.get(w, 0) + 1
        top = sorted(count, key=lambda w: (-count[w], w))[:399]
        self.vocab, ids = 400, {w: i + 1 for i, w in enumerate(top)}
        tok = torch.tensor([ids.get(w, 0) for w in words])
        n = len(tok) // (self.ctx + 1)
        w = tok[: n * (self.ctx + 1)].view(n, -1)[torch.randperm(n, generator=torch.Generator().manual_seed(3))]
        self.rows, self.n = w[200:], n - 200
        if h.get("train_sentences"):
            self.rows = self.rows[: h["train_sentences"]]
            self.n = len(self.rows)
        self.set_val(w[:200])
        self.model = LSTM(self.vocab, drop=h["dropout"])
        self.head = self.model.head

    set_val, get = CharLM.set_val, CharLM.get

    def loss(self, b):
        return F_.cross_entropy(self.model(b["x"]).flatten(0, 1), b["y"].flatten()), {}


class WordCsv(Csv):
    tk, ek = ("step", "epoch", "loss", "lr"), ("val_loss",)


H3 = {
    "steps": 360,
    "batch_size": 16,
    "lr": 1.0,
    "optimizer": "sgd",
    "momentum": 0.9,
    "grad_clip": 0.5,
    "schedule": "step",
    "dropout": 0.2,
    "log_every": 6,
    "eval_every": 60,
    "save_every": 60,
}
word_lstm = Family(
    "torch-wordlstm-csv",
    H3,
    WordCsv,
    task=WordLM,
    console="out.txt",
    config="yaml",
    logs=["eval", "lr"],
    tol=0.15,
    plan=[
        OK(),
        OK(),
        OK("high dropout keeps evaluation below training", h={"dropout": 0.45}),
        OK("short run as configured", h={"steps": 300}),
        P.clean_resume(240),
        P.lr_low(0.002),
        F("gradient_clipping_missing", h={"grad_clip": 0.0, "lr": 5.0}, step=0),
        P.train_mode_eval(h={"dropout": 0.6}),
        P.overfit(h={"train_sentences": 60, "dropout": 0.0, "optimizer": "adam", "lr": 1e-2, "schedule": "constant"}),
        P.labels_wrong(0.8),
        P.shift(200, scrambled),
        P.killed(210, signal.SIGINT),
        P.code_error("key"),
        P.lr_jump(220, 30, 30),
        P.code_error("index", 222),
    ],
)


# encoder-decoder with TensorBoard
class Seq2Seq(nn.Module):
    def __init__(self, d=40, drop=0.0):
        super().__init__()
        self.emb, self.pos, self.drop = nn.Embedding(12, d), nn.Embedding(10, d), nn.Dropout(drop)
        self.enc, self.dec, self.head = Block(d, 4, drop, causal=False), Block(d, 4, drop, cross=True), nn.Linear(d, 12)

    def forward(self, x, t):
        m = self.enc(self.drop(self.emb(x) + self.pos.weight[: x.shape[1]]))
        return self.head(self.dec(self.drop(self.emb(t) + self.pos.weight[: t.shape[1]]), m))


class Reverse(Task):
    soft_first = False

    def __init__(self, h):
        g = torch.Generator().manual_seed(11)
        x = torch.randint(0, 10, (4200, 8), generator=g)
        self.x, self.n, self.smooth = (
            x[200:][: h.get("train_size", 4000)],
            min(4000, h.get("train_size", 4000)),
            h.get("label_smoothing", 0.0),
        )
        self.val = [self.pack(x[:200])]
        self.model = Seq2Seq(drop=h["dropout"])
        self.head = self.model.head

    def pack(self, x):
        return {"x": x, "y": x.flip(1)}

    def get(self, idx):
        return self.pack(self.x[torch.as_tensor(idx)])

    def loss(self, b, smooth=None):
        y = b["y"]
        t = torch.cat([torch.full_like(y[:, :1], 10), y[:, :-1].clamp(min=0)], 1)
        z = self.model(b["x"], t)
        acc = float((z.argmax(-1) == y).float().mean())
        z = z.softmax(-1) if self.soft_first else z
        return F_.cross_entropy(z.flatten(0, 1), y.flatten(), label_smoothing=self.smooth if smooth is None else smooth), {"acc": acc}

    def forward_loss(self, b):
        return self.loss(b, 0.0)


class ReverseBoard(Board):
    tkeys: ClassVar = {"loss": "loss/train", "lr": "optim/lr", "acc": "acc/train", "gnorm": "optim/grad_norm"}


H4 = {
    "steps": 400,
    "batch_size": 32,
    "lr": 4e-3,
    "warmup": 20,
    "schedule": "cosine",
    "grad_clip": 1.0,
    "dropout": 0.0,
    "log_every": 5,
    "eval_every": 40,
    "save_every": 40,
    "optimizer": "adam",
}
seq2seq = Family(
    "torch-seq2seq-tensorboard",
    H4,
    ReverseBoard,
    task=Reverse,
    config="argv",
    console="stdout.txt",
    names={"lr": "learning_rate"},
    logs=["eval", "lr", "gnorm", "acc", "resume"],
    plan=[
        OK(),
        OK(),
        P.clean_resume(200),
        OK("one-cycle schedule", h={"schedule": "onecycle", "warmup": 0, "lr": 3e-3}),
        OK("dropout keeps evaluation below training", h={"dropout": 0.1}),
        P.double_softmax(),
        P.masked(),
        P.units(25),
        P.no_clear(h={"optimizer": "sgd", "lr": 0.5, "grad_clip": 0.0}),
        F("regularization_floor", h={"label_smoothing": 0.4}, step=0),
        P.lost_optimizer(200, h2={"lr": 4e-3}),
        P.schedule_reset(320),
        P.flip(240, index=3),
        P.lr_high(0.1),
        P.frozen(["head"]),
        P.overfit(h={"train_size": 16, "schedule": "constant"}),
        P.pocket(260, 300, "targets"),
    ],
)

FAMILIES = [word_lstm, seq2seq]
