"""Diffusion and a flow on 2-D points."""

import math
import time
from typing import ClassVar

import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from loop import Task
from sinks import Jsonl
from sklearn.datasets import make_moons


# diffusion on two moons, JSONL
class Eps(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2 + 16, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU(), nn.Linear(w, 2))

    def forward(self, x, t):
        a = t[:, None] * torch.exp(torch.linspace(0, 4, 8))
        return self.f(torch.cat([x, a.sin(), a.cos()], 1))


class Diffusion(Task):
    def __init__(self, h):
        x, _ = make_moons(3000, noise=0.05, random_state=2)
        x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
        self.x, self.n, self.model, self.T = x[500:], 2500, Eps(h["width"]), 100
        self.head = self.model.f[-1]
        beta = torch.linspace(1e-4, 0.06, 100)
        self.abar = torch.cumprod(1 - beta, 0)
        g = torch.Generator().manual_seed(3)
        xv = x[:500].repeat(4, 1)
        self.val = [{"x": xv, "t": torch.randint(0, 100, (2000,), generator=g), "e": torch.randn(2000, 2, generator=g)}]
        self.wrong_noise = False

    def get(self, idx):
        x = self.x[torch.as_tensor(idx)]
        return {"x": x, "t": torch.randint(0, 100, (len(x),)), "e": torch.randn(len(x), 2)}

    def loss(self, b):
        a = self.abar[b["t"]][:, None]
        xt = a.sqrt() * b["x"] + (1 - a).sqrt() * b["e"]
        target = b["e"][torch.randperm(len(xt))] if self.wrong_noise and self.model.training else b["e"]
        return F_.mse_loss(self.model(xt, b["t"] / 100), target), {}


class DiffLog(Jsonl):
    name, clock = "diffusion_log.jsonl", True
    keys: ClassVar = {"step": "step", "loss": "mse", "lr": "lr", "gnorm": "gnorm"}
    ekeys: ClassVar = {"step": "step", "val_loss": "val_mse"}


def wrong_pairs():
    return F(
        "labels_wrong",
        ext=lambda h, rng: {"before": lambda t: setattr(t, "wrong_noise", True)},
        step=0,
        what="the noise loss stays at 1, the variance of its target",
        ident="partly",
    )


H17 = {
    "steps": 600,
    "batch_size": 96,
    "lr": 2e-3,
    "optimizer": "adamw",
    "width": 64,
    "warmup": 30,
    "schedule": "cosine",
    "grad_clip": 1.0,
    "log_every": 7,
    "eval_every": 70,
    "save_every": 70,
}
diffusion = Family(
    "torch-diffusionmoons-jsonl",
    H17,
    DiffLog,
    task=Diffusion,
    config="json",
    names={"lr": "learning_rate"},
    logs=["eval", "lr", "gnorm", "time", "resume"],
    tol=0.15,
    plan=[
        OK(),
        OK(),
        OK("noise floor reached early", h={"lr": 6e-3}),
        OK("noisy small batch", h={"batch_size": 24}),
        OK("wsd schedule", h={"schedule": "wsd"}),
        P.clean_resume(350),
        wrong_pairs(),
        P.lr_high(1.0, h={"grad_clip": 0.0}),
        P.lr_low(5e-6),
        P.no_clear(h={"grad_clip": 0.0, "lr": 1e-2}),
        P.lr_jump(400, 300, 40),
        P.schedule_reset(420),
        P.units(20),
        P.pocket(350, 420, "inputs", 6.0),
        P.nan_sample(300),
        P.flip(420, index=1),
        P.slow(350, 0.04),
        OK("one-cycle", h={"schedule": "onecycle", "lr": 4e-3}),
        P.shift(350, lambda b: {**b, "x": b["x"] * 0.02}),
        F("optimizer_second_moment", h={"eps": 3.0}, step=0),
        P.crash_restart(300),
    ],
)


# flow on two moons, tqdm-like console
class Coupling(nn.Module):
    def __init__(self, swap, w=48):
        super().__init__()
        self.swap, self.f = swap, nn.Sequential(nn.Linear(1, w), nn.Tanh(), nn.Linear(w, w), nn.Tanh(), nn.Linear(w, 2))

    def forward(self, x, bound):
        a, b = (x[:, 1:], x[:, :1]) if self.swap else (x[:, :1], x[:, 1:])
        s, t = self.f(a).chunk(2, 1)
        s = bound * torch.tanh(s / bound) if bound else s
        b = b * s.exp() + t
        return (torch.cat([b, a], 1) if self.swap else torch.cat([a, b], 1)), s[:, 0]


class Flow(Task):
    def __init__(self, h):
        x, _ = make_moons(3000, noise=0.03, random_state=2)
        x = torch.tensor((x - x.mean(0)) * h.get("data_scale", 0.25), dtype=torch.float32)
        self.n = h.get("train_size", 2500)
        self.x, self.val = x[500 : 500 + self.n], [{"x": x[:500]}]
        self.model, self.bound = nn.ModuleList(Coupling(i % 2) for i in range(6)), h["scale_bound"]
        self.head = self.model[-1].f[-1]

    def get(self, idx):
        return {"x": self.x[torch.as_tensor(idx)]}

    def loss(self, b):
        z, ld = b["x"], 0
        for c in self.model:
            z, s = c(z, self.bound)
            ld = ld + s
        return (0.5 * (z**2).sum(1) + math.log(2 * math.pi) - ld).mean(), {}


class Bar:
    def __init__(self, folder, h, k):
        self.total, self.t = h["steps"], time.time()

    def train(self, d):
        n = int(20 * (d["step"] + 1) / self.total)
        print(
            f"\r{100 * (d['step'] + 1) // self.total:3d}%|{'#' * n}{' ' * (20 - n)}| {d['step'] + 1}/{self.total} [{time.time() - self.t:.0f}s, nll={d['loss']:.3f}]",
            end="",
        )

    def eval(self, d):
        print(f"\nstep {d['step'] + 1} heldout nll {d['val_loss']:.4f}")

    def note(self, s):
        print("\n" + s)

    def close(self):
        print()


H18 = {
    "steps": 350,
    "batch_size": 128,
    "lr": 2e-3,
    "optimizer": "adam",
    "schedule": "constant",
    "scale_bound": 2.0,
    "log_every": 10,
    "eval_every": 50,
    "save_every": 50,
    "grad_clip": 5.0,
    "data_scale": 0.25,
}
flow = Family(
    "torch-flowmoons-progressbar",
    H18,
    Bar,
    task=Flow,
    console="stderr.log",
    config="yaml",
    logs=["eval"],
    plan=[
        OK("plain"),
        OK("plain"),
        OK("loss going negative, small batch", h={"batch_size": 64}),
        OK("short run", h={"steps": 300}),
        P.clean_resume(200),
        OK("one-cycle schedule", h={"schedule": "onecycle", "lr": 4e-3}),
        F(
            "nan_from_layer",
            h={"scale_bound": 0.0, "lr": 0.08, "grad_clip": 0.0},
            step=1,
            accept=["lr_too_high", "gradient_clipping_missing"],
            ident="partly",
        ),
        P.lr_high(1.0),
        P.bad_batch([200, 280], "scale", 30.0),
        P.pocket(200, 240, "inputs", 1.0),
        P.nan_sample(260),
        P.flip(250, index=4),
        P.killed(233),
        P.overfit(h={"train_size": 20, "lr": 5e-3}),
        P.disk_full(240),
        P.shift(260, lambda b: {"x": b["x"] * 0.2 + 0.6}),
    ],
)


FAMILIES = [diffusion, flow]
