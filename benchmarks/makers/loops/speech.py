"""A toy speech recogniser with CTC, and a mixture density network."""

import numpy as np
import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from loop import Task
from sinks import Board


# toy speech recogniser with CTC, sum-reduced loss
class Speech(Task):
    def __init__(self, h):
        r = np.random.default_rng(12)
        proto = r.normal(size=(9, 10))
        xs, ys = [], []
        for _ in range(1400):
            y = r.integers(1, 9, 4)
            x = np.concatenate([proto[c][None].repeat(r.integers(3, 7), 0) for c in y])
            x = x[:20] if len(x) >= 20 else np.concatenate([x, np.zeros((20 - len(x), 10))])
            xs.append(x + 0.7 * r.normal(size=x.shape))
            ys.append(y)
        x, y = torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(np.array(ys))
        self.n = min(1200, h.get("train_size", 1200))
        self.x, self.y, self.val = x[200 : 200 + self.n], y[200 : 200 + self.n], [{"x": x[:200], "y": y[:200]}]
        self.rnn, self.head = nn.GRU(10, 24, batch_first=True, bidirectional=True), nn.Linear(48, 9)
        self.model = nn.ModuleDict({"rnn": self.rnn, "drop": nn.Dropout(h.get("dropout", 0.0)), "head": self.head})
        self.red = h["reduction"]

    def loss(self, b):
        lp = self.head(self.model["drop"](self.rnn(b["x"])[0])).log_softmax(-1)
        n = len(lp)
        ctc = F_.ctc_loss(lp.transpose(0, 1), b["y"], torch.full((n,), b["x"].shape[1]), torch.full((n,), b["y"].shape[1]), reduction="sum")
        if self.red == "mean" or not self.model.training:
            ctc = ctc / n
        blank = float((lp.argmax(-1) == 0).float().mean())
        return ctc, {"blank": blank}


class SpeechLog:
    def __init__(self, folder, h, k):
        print(f"# asr_train: {h['optimizer']} lr={h['lr']} clip={h.get('grad_clip')} reduction={h['reduction']}")

    def train(self, d):
        print(
            f"{d['epoch'] + 1}epoch:train:{d['step'] + 1}-batch: loss_ctc={d['loss']:.3f}, blank={d['blank']:.2f}, optim0_lr0={d['lr']:.3e}, train_time={d['dt']:.3f}"
        )

    def eval(self, d):
        print(f"{d['epoch'] + 1}epoch results: [valid] loss_ctc={d['val_loss']:.3f}, blank={d['val_blank']:.2f}")

    def note(self, s):
        print("#", s)

    def close(self):
        print("# Ended (code 0)")


H19 = {
    "steps": 260,
    "batch_size": 24,
    "lr": 5e-3,
    "optimizer": "adam",
    "schedule": "linear",
    "warmup": 10,
    "reduction": "sum",
    "grad_clip": 50.0,
    "log_every": 5,
    "eval_every": 50,
    "save_every": 50,
    "dropout": 0.0,
}


speech = Family(
    "torch-ctcspeech-console",
    H19,
    SpeechLog,
    task=Speech,
    console="train.log",
    logs=["eval", "lr", "time", "config"],
    plan=[
        OK(),
        OK(),
        OK(
            "mean-reduced loss",
            h={"reduction": "mean", "grad_clip": 5.0},
            check=lambda m, t, s: (m["eval"][-1][1] < 1.5 * t["eval"][-1][1] + 0.2, f"{m['eval'][-1]}"),
        ),
        OK("strong dropout", h={"dropout": 0.3}),
        P.clean_resume(150),
        F(
            "loss_scaled_wrong",
            h={"optimizer": "sgd", "lr": 0.05, "grad_clip": 0.0, "momentum": 0.9, "warmup": 0},
            step=0,
            ident="partly",
            accept=["lr_too_high", "gradient_clipping_missing"],
        ),
        P.labels_wrong(),
        OK("constant rate", h={"schedule": "constant", "lr": 4e-3}),
        P.overfit(h={"train_size": 60, "schedule": "constant", "lr": 1e-2}),
        P.slow(150, 0.06),
        P.pocket(150, 180, "targets"),
        P.nan_sample(170),
        P.train_mode_eval(h={"dropout": 0.7}),
        P.units(6),
        P.lr_jump(180, 40),
        P.crash_restart(120),
        P.code_error("shape", 200),
        P.artefact("never_reset"),
    ],
)


# mixture density network, TensorBoard
class Mdn(Task):
    """y given x is two-valued; loss is a negative log likelihood that goes below zero."""

    def __init__(self, h):
        r = np.random.default_rng(4)
        x = r.uniform(-2, 2, 3000)
        y = np.sin(2 * x) * np.where(r.random(3000) < 0.5, 1, -1) * 0.3 + 0.02 * r.normal(size=3000)
        x, y = torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y, dtype=torch.float32)[:, None]
        self.x, self.y, self.val, self.n = x[500:], y[500:], [{"x": x[:500], "y": y[:500]}], 2500
        self.model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 12))
        self.head, self.floor, self.naive = self.model[-1], h["sigma_min"], h.get("likelihood") == "direct"

    def loss(self, b):
        w, mu, s = self.model(b["x"]).chunk(3, 1)
        if self.naive:
            sig = s.exp() + self.floor
            p = (w.softmax(1) * torch.exp(-0.5 * ((b["y"] - mu) / sig) ** 2) / (sig * 2.5066)).sum(1)
            return -p.log().mean(), {}
        sig = F_.softplus(s) + self.floor
        lp = -0.5 * ((b["y"] - mu) / sig) ** 2 - sig.log() - 0.919
        return -torch.logsumexp(w.log_softmax(1) + lp, 1).mean(), {}


class MdnBoard(Board):
    tkeys, ekeys, sub = {"loss": "nll"}, {"val_loss": "nll_valid"}, "logs"


H20 = {
    "steps": 600,
    "batch_size": 64,
    "lr": 3e-3,
    "optimizer": "adam",
    "sigma_min": 0.01,
    "log_every": 5,
    "eval_every": 50,
    "save_every": 50,
}


mdn = Family(
    "torch-mdn-tensorboard",
    H20,
    MdnBoard,
    task=Mdn,
    logs=["eval", "resume"],
    tol=0.2,
    plan=[
        OK(),
        OK(),
        OK("loss goes negative with a one-cycle schedule", h={"schedule": "onecycle", "lr": 1e-2}),
        OK("smaller batch", h={"batch_size": 40, "lr": 4e-3}),
        P.clean_resume(300),
        F("nan_from_layer", h={"likelihood": "direct", "sigma_min": 0.0, "lr": 5e-2}, step=1, ident="partly"),
        P.labels_wrong(0.3, ident="no"),
        P.lr_high(1.0),
        P.bad_batch([250, 420, 421], "outlier", 20.0),
        P.pocket(300, 360, "outlier", -2.5),
        P.shift(300, lambda b: {**b, "y": b["y"] + 0.5}),
        OK("cyclic rate", h={"schedule": "cyclic", "lr": 6e-3}),
        P.flip(360, index=2),
        P.lr_jump(380, 60, 30),
    ],
)


FAMILIES = [speech, mdn]
