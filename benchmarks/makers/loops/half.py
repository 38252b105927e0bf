"""float16 with a hand-written loss scaler."""

import math
from typing import ClassVar

import plants as P
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from digits import Digits
from sinks import Jsonl


# float16 under autocast, dynamic loss scale, JSONL
class HalfDigits(Digits):
    def net(self, h):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))

    def loss(self, b, smooth=None):
        x = b["x"] * self.gain
        z = self.model(x).float()
        acc = float((z.argmax(-1) == b["y"]).float().mean())
        return F_.cross_entropy(z, b["y"]), {"acc": acc}

    gain = 1.0


class ScaleLog(Jsonl):
    name, clock = "train.jsonl", True
    keys: ClassVar = {"step": "step", "loss": "loss", "lr": "lr", "gnorm": "grad_norm", "scale": "loss_scale"}
    ekeys: ClassVar = {"step": "step", "val_loss": "valid_loss", "val_acc": "valid_acc"}


def hot(step, gain):
    """Activations outgrow float16 once the inputs are multiplied."""

    def after(s, task, opt):
        if s == step:
            task.gain = gain

    return F(
        "fp16_overflow",
        ext=lambda h, rng: {"after": after},
        step=step + 1,
        accept=["data_distribution_shift"],
        check=lambda m, t, s: (
            sum(not math.isfinite(g) for g in m["gn"][step:]) > 20,
            f"{sum(not math.isfinite(g) for g in m['gn'])} skipped",
        ),
    )


def skipped(m, t, s):
    n = sum(not math.isfinite(g) for g in m["gn"])
    return n > 25 or not math.isfinite(m["loss"][-1][1]), f"{n} non-finite gradients"


H21 = {
    "steps": 300,
    "batch_size": 32,
    "lr": 2e-3,
    "optimizer": "adamw",
    "amp": "fp16",
    "loss_scale": 16384.0,
    "dynamic_scale": 100,
    "schedule": "cosine",
    "log_every": 4,
    "eval_every": 40,
    "save_every": 80,
    "window": False,
    "dropout": 0.0,
}


half = Family(
    "torch-fp16scaler-jsonl",
    H21,
    ScaleLog,
    task=HalfDigits,
    console="train.log",
    config="json",
    logs=["eval", "lr", "gnorm", "scale", "acc", "time"],
    plan=[
        OK(),
        OK(),
        OK("loss scale finds its level, a few skipped steps", h={"loss_scale": 2.0**22}),
        OK("bf16", h={"amp": "bf16", "loss_scale": 1.0, "dynamic_scale": 0}),
        OK("warm restarts", h={"schedule": "restarts", "period": 100}),
        P.clean_resume(200),
        F("fp16_overflow", h={"pixel_max": 60000.0}, step=0, check=skipped, accept=["inputs_not_normalized"]),
        F("fp16_overflow", h={"loss_scale": 2.0**24, "dynamic_scale": 0}, step=0, check=skipped),
        hot(200, 6e4),
        P.flip(220, index=1),
        P.nan_sample(180),
        P.labels_wrong(),
        OK("cyclic rate", h={"schedule": "cyclic"}),
        P.lr_jump(190, 100),
        F("optimizer_second_moment", h={"eps": 1.0}, step=0),
        P.disk_full(200),
        P.units(20),
    ],
)


FAMILIES = [half]
