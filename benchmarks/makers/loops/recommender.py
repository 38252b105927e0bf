"""Matrix factorisation, with a log and a CSV of evaluations."""

import math
import time

import numpy as np
import plants as P
import torch
import torch.nn as nn
from core import OK, F, Family
from digits import leak_val
from loop import Task


# matrix factorisation, logging and CSV of evaluations
class MF(nn.Module):
    def __init__(self, users, items, d=12):
        super().__init__()
        self.u, self.i = nn.Embedding(users, d), nn.Embedding(items, d)
        self.bu, self.bi, self.mu = nn.Embedding(users, 1), nn.Embedding(items, 1), nn.Parameter(torch.zeros(1))
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=0.1)
        for e in (self.bu, self.bi):
            nn.init.zeros_(e.weight)

    def forward(self, x):
        u, i = x[:, 0], x[:, 1]
        return (self.u(u) * self.i(i)).sum(-1) + self.bu(u)[:, 0] + self.bi(i)[:, 0] + self.mu


class Ratings(Task):
    def __init__(self, h):
        r = np.random.default_rng(8)
        users, items, d = 300, 200, 3
        U, V = r.normal(size=(users, d)), r.normal(size=(items, d))
        p = np.stack([r.integers(0, users, 12000), r.integers(0, items, 12000)], 1)
        y = 3.5 + 0.6 * (U[p[:, 0]] * V[p[:, 1]]).sum(-1) + 0.3 * r.normal(size=12000)
        x, y = torch.tensor(p), torch.tensor(np.clip(np.round(y * 2) / 2, 0.5, 5), dtype=torch.float32)
        self.n = min(10000, h.get("train_size", 10000))
        self.x, self.y, self.val = x[2000 : 2000 + self.n], y[2000 : 2000 + self.n], [{"x": x[:2000], "y": y[:2000]}]
        self.model, self.l2 = MF(users, items), h["reg"]
        self.red = h.get("reduction", "mean")

    def loss(self, b):
        r = self.model(b["x"]) - b["y"]
        reg = self.l2 * (self.model.u(b["x"][:, 0]).pow(2).sum(-1) + self.model.i(b["x"][:, 1]).pow(2).sum(-1)).mean()
        return (r.pow(2).mean() if self.red == "mean" else r.pow(2).sum()) + (reg if self.model.training else 0), {}


class MfLog:
    def __init__(self, folder, h, k):
        self.f = open(folder / "valid_rmse.csv", "a")
        if k == 0:
            self.f.write("step,rmse\n")

    def train(self, d):
        print(time.strftime("%H:%M:%S"), f"INFO epoch {d['epoch']} batch {d['step']} mse {d['loss']:.4f} ({d['dt'] * 1e3:.1f} ms/batch)")

    def eval(self, d):
        self.f.write(f"{d['step'] + 1},{math.sqrt(d['val_loss']) if d['val_loss'] >= 0 else d['val_loss']:.4f}\n")
        self.f.flush()

    def note(self, s):
        print(time.strftime("%H:%M:%S"), "INFO", s)

    def close(self):
        self.f.close()


H14 = {"steps": 800, "batch_size": 256, "lr": 0.02, "optimizer": "adam", "reg": 0.02, "log_every": 20, "eval_every": 40, "save_every": 80}


mf = Family(
    "torch-matrixfactorization-logcsv",
    H14,
    MfLog,
    task=Ratings,
    console="mf.log",
    config="json",
    names={"reg": "l2", "steps": "n_batches"},
    logs=["eval", "time", "gap"],
    plan=[
        OK(),
        OK(),
        OK(
            "sum-reduced loss that trains well",
            h={"reduction": "sum"},
            check=lambda m, t, s: (m["eval"][-1][1] / 2000 < 1.3 * t["eval"][-1][1], f"{m['eval'][-1]}"),
        ),
        OK("noisy small batch", h={"batch_size": 48, "lr": 0.01}),
        P.clean_resume(400),
        P.overfit(h={"train_size": 1500, "reg": 0.0, "lr": 0.05}),
        P.overfit(h={"reg": 0.0, "lr": 0.1, "steps": 1600}),
        F("regularization_floor", h={"reg": 2.0}, step=0),
        P.labels_wrong(),
        OK("one-step outliers from heavy-tailed batches", ext=P.at_steps([90, 260], "outlier", 3.0)),
        P.slow(400, 0.05),
        P.pocket(400, 480, "outlier", -1.0),
        P.bad_batch([300, 500], "outlier", 100.0),
        P.killed(430),
        P.code_error("index", 444),
        leak_val(2000, h={"train_size": 2500}),
        P.crash_restart(500),
        P.config_changed(400, {"reg": 1.0}),
        P.flip(390, index=1),
    ],
)


FAMILIES = [mf]
