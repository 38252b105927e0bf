"""A sentence classifier with experts and a character tagger."""

import math
import re
import signal
from typing import ClassVar

import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from loop import Task
from sinks import Jsonl
from text import CharLM, source


# sentence classifier with a small mixture of experts
class MoE(nn.Module):
    def __init__(self, d, n=4):
        super().__init__()
        self.gate = nn.Linear(d, n)
        self.up, self.down = nn.Parameter(torch.randn(n, d, 64) * d**-0.5), nn.Parameter(torch.randn(n, 64, d) * 0.125)

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        w, i = p.max(-1)
        one = F_.one_hot(i, p.shape[-1]).float()
        self.share = one.flatten(0, -2).mean(0)
        self.balance = p.shape[-1] * (self.share * p.flatten(0, -2).mean(0)).sum()
        y = torch.einsum("btd,edh->bteh", x, self.up).relu()
        y = torch.einsum("bteh,ehd,bte->btd", y, self.down, one * w.unsqueeze(-1))
        return x + y


class Sentences(Task):
    """Which of four modules a piece of code comes from."""

    soft_first = False

    def __init__(self, h):
        rows, ys, ids = [], [], {}
        for y, (_, t) in enumerate(source(["argparse", "datetime", "ftplib", "difflib"])):
            w = [ids.setdefault(a, len(ids)) for a in re.findall(r"\w+|[^\w\s]", t)]
            rows += [w[i : i + 16] for i in range(0, len(w) - 16, 16)]
            ys += [y] * ((len(w) - 1) // 16)
        n = min(len(rows), len(ys))
        x, y = torch.tensor(rows[:n]), torch.tensor(ys[:n])
        p = torch.randperm(n, generator=torch.Generator().manual_seed(2))
        self.x, self.y, self.n, self.coef = x[p[300:]], y[p[300:]], min(n - 300, h.get("train_size", 10**6)), h["balance_coef"]
        self.x, self.y = self.x[: self.n], self.y[: self.n]
        self.val = [{"x": x[p[:300]], "y": y[p[:300]]}]
        self.model = nn.Sequential(nn.Embedding(len(ids), 32), nn.LayerNorm(32), MoE(32), nn.LayerNorm(32), nn.Dropout(h["dropout"]))
        self.head = nn.Linear(32, 4)
        self.model.append(self.head)
        self.weights = None

    def loss(self, b):
        z = self.model(b["x"]).mean(1)
        moe = self.model[2]
        acc = float((z.argmax(-1) == b["y"]).float().mean())
        z = z.softmax(-1) if self.soft_first else z
        ce = F_.cross_entropy(z, b["y"], weight=self.weights if self.model.training else None)
        info = {"acc": acc, "aux": moe.balance.item(), **{f"e{k}": float(v) for k, v in enumerate(moe.share)}}
        return ce + self.coef * moe.balance, info


class MoeLines(Jsonl):
    name, clock = "train_log.jsonl", False
    keys: ClassVar = {
        "step": "iter",
        "loss": "loss",
        "acc": "acc",
        "aux": "aux_loss",
        "e0": "expert_0",
        "e1": "expert_1",
        "e2": "expert_2",
        "e3": "expert_3",
    }
    ekeys: ClassVar = {"step": "iter", "val_loss": "dev_loss", "val_acc": "dev_acc"}


def collapse(bias):
    def before(task):
        with torch.no_grad():
            task.model[2].gate.bias[1] = bias

    return F(
        "moe_routing_collapse",
        h={"balance_coef": 0.0},
        ext=lambda h, rng: {"before": before},
        step=0,
        check=lambda m, t, s: (True, "share in the log"),
        what="expert_1 gets nearly all tokens, the balance term is off or without effect",
    )


def one_class():
    def before(task):
        task.weights = torch.tensor([1.0, 1e-3, 1e-3, 1e-3])

    return F("class_collapse", ext=lambda h, rng: {"before": before}, step=0, accept=["labels_wrong"], ident="partly")


H5 = {
    "steps": 300,
    "batch_size": 24,
    "lr": 2e-3,
    "schedule": "constant",
    "dropout": 0.1,
    "balance_coef": 0.02,
    "optimizer": "adam",
    "log_every": 10,
    "eval_every": 50,
    "weight_decay": 0.0,
}
moe = Family(
    "torch-moe-sentences-jsonl",
    H5,
    MoeLines,
    task=Sentences,
    console="nohup.out",
    logs=["eval", "acc", "experts"],
    plan=[
        OK(),
        OK(),
        OK("noisy small batch", h={"batch_size": 12}),
        OK("cyclic rate", h={"schedule": "cyclic", "lr": 5e-3}),
        OK("strong dropout", h={"dropout": 0.4}),
        collapse(8.0),
        collapse(3.0),
        P.labels_wrong(),
        P.double_softmax(),
        one_class(),
        P.overfit(h={"train_size": 120, "dropout": 0.0, "lr": 4e-3}),
        P.lr_high(8.0),
        P.big_init(12),
        P.lr_low(5e-6),
        P.code_error("json", 150),
        P.train_mode_eval(h={"dropout": 0.8}),
        P.artefact("never_reset"),
    ],
)


# GRU tagger, key=value lines
class Tagger(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(vocab, 24), nn.GRU(24, 32, batch_first=True, bidirectional=True), nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


class Tags(Task):
    """Class of each character (letter, digit, space, other), with half of the positions masked, from a noisy copy."""

    soft_first = False

    def __init__(self, h):
        lm = CharLM({"seed": 0})
        cls = torch.zeros(lm.vocab, dtype=torch.long)
        for c, i in lm.ids.items():
            cls[i] = 1 if c.isalpha() else 2 if c.isdigit() else 3 if c.isspace() else 0
        rows = torch.cat([lm.rows, lm.val[0]["x"]][:1])[:3000]
        g = torch.Generator().manual_seed(4)
        y = cls[rows]
        x = torch.where(torch.rand(rows.shape, generator=g) < 0.25, torch.zeros_like(rows), rows)
        y = torch.where(torch.rand(rows.shape, generator=g) < 0.5, torch.full_like(y, -100), y)
        self.x, self.y = x[200:], y[200:]
        self.n, self.val = len(self.x), [{"x": x[:200], "y": y[:200]}]
        self.model = Tagger(lm.vocab)
        self.head = self.model.head

    def loss(self, b):
        z = self.model(b["x"])
        z = z.softmax(-1) if self.soft_first else z
        keep = b["y"] >= 0
        acc = float((z.argmax(-1) == b["y"])[keep].float().mean()) if keep.any() else 0.0
        return F_.cross_entropy(z.flatten(0, 1), b["y"].flatten()), {"acc": acc, "tokens": int(keep.sum())}


class KeyValue:
    def __init__(self, folder, h, k):
        pass

    def train(self, d):
        print(f"step={d['step']:05d} loss={d['loss']:.3e} ntok={d['tokens']:.0f} gnorm={d['gnorm']:.2f}")

    def eval(self, d):
        print(f"eval step={d['step']:05d} ppl={math.exp(min(50, d['val_loss'])):.3f} tag_acc={100 * d['val_acc']:.1f}")

    def note(self, s):
        print("#", s)

    def close(self):
        print("# done")


H6 = {
    "steps": 260,
    "batch_size": 16,
    "lr": 5e-3,
    "schedule": "linear",
    "optimizer": "adam",
    "log_every": 5,
    "eval_every": 65,
    "save_every": 65,
    "window": False,
}
tagger = Family(
    "torch-grutagger-keyvalue",
    H6,
    KeyValue,
    task=Tags,
    console="run.log",
    logs=["eval", "gnorm", "acc"],
    plan=[
        OK(),
        OK(),
        OK("noisy small batch", h={"batch_size": 4}),
        P.clean_resume(130),
        P.masked(),
        P.labels_wrong(),
        P.double_softmax(),
        P.lr_high(1.0),
        P.bad_batch([90, 150, 151], "targets"),
        P.pocket(120, 150, "targets"),
        P.killed(
            140, signal.SIGKILL, tail="slurmstepd: error: *** JOB 418233 ON n0142 CANCELLED AT %Y-%m-%dT%H:%M:%S DUE TO TIME LIMIT ***"
        ),
        P.frozen(["head"]),
        P.code_error("shape", 161),
        P.crash_restart(100),
    ],
)

FAMILIES = [moe, tagger]
