"""Image models on scikit-learn's 8x8 digits: a CNN and a residual net."""

import signal
import time
from typing import ClassVar

import numpy as np
import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from loop import Task
from sinks import Board
from sklearn.datasets import load_digits


def digits(scale=16.0):
    d = load_digits()
    p = np.random.default_rng(0).permutation(len(d.target))
    return torch.tensor(d.images[p] / scale, dtype=torch.float32).unsqueeze(1), torch.tensor(d.target[p])


def cnn(drop=0.0):
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 32),
        nn.ReLU(),
        nn.Dropout(drop),
        nn.Linear(32, 10),
    )


class Digits(Task):
    soft_first, weights = False, None

    def __init__(self, h):
        x, y = digits()
        x = x * h.get("pixel_max", 1.0)
        self.n = min(1437, h.get("train_size", 1437))
        self.x, self.y = x[360 : 360 + self.n], y[360 : 360 + self.n]
        self.val = [{"x": x[: h.get("val_size", 360)], "y": y[: h.get("val_size", 360)]}]
        self.smooth = h.get("label_smoothing", 0.0)
        self.model = self.net(h)
        self.head = self.model[-1]

    def net(self, h):
        return cnn(h["dropout"])

    def loss(self, b, smooth=None):
        z = self.model(b["x"])
        acc = float((z.argmax(-1) == b["y"]).float().mean())
        z = z.softmax(-1) if self.soft_first else z
        return F_.cross_entropy(
            z, b["y"], label_smoothing=self.smooth if smooth is None else smooth, weight=self.weights if self.model.training else None
        ), {"acc": acc}

    def forward_loss(self, b):
        return self.loss(b, 0.0)


def one_class(w=1e-3):
    def before(task):
        task.weights = torch.full((10,), w)
        task.weights[3] = 1.0

    return F("class_collapse", ext=lambda h, rng: {"before": before}, step=0, accept=["labels_wrong"], ident="partly")


def leak_val(n=200, **kw):
    """The evaluation set is a part of the training set."""

    def before(task):
        task.val = [task.get(range(min(task.n, n)))]

    return F("train_eval_leakage", ext=lambda h, rng: {"before": before}, step=0, **kw)


def val_swap(step, fn):
    def evaluate(task, s):
        if s >= step and not hasattr(task, "old_val"):
            task.old_val, task.val = task.val, [fn(b) for b in task.val]
        return task.evaluate()

    return F("eval_changed", ext=lambda h, rng: {"evaluate": evaluate}, step=step)


def noisy(b):
    g = torch.Generator().manual_seed(9)
    return {**b, "x": b["x"] + 0.35 * torch.randn(b["x"].shape, generator=g)}


# CNN, table of epochs
class Table:
    def __init__(self, folder, h, k):
        self.t, self.n = time.time(), 0
        print(
            "epoch   train_loss  train_acc   valid_loss  valid_acc     time\n-----  -----------  ---------  -----------  ---------  -------"
        )

    def train(self, d):
        pass

    def eval(self, d):
        self.n += 1
        print(
            f"{d['step'] // 45 + 1:5d}  {d['train_loss']:11.4f}  {d['train_acc']:9.4f}  {d['val_loss']:11.4f}  {d['val_acc']:9.4f}  {time.time() - self.t:6.2f}s"
        )
        self.t = time.time()

    def note(self, s):
        print("=>", s)

    def close(self):
        pass


H7 = {
    "steps": 900,
    "batch_size": 32,
    "lr": 1e-3,
    "optimizer": "adam",
    "dropout": 0.2,
    "weight_decay": 0.0,
    "log_every": 45,
    "eval_every": 45,
    "save_every": 90,
    "pickle_save": True,
}
cnn_table = Family(
    "torch-cnndigits-epochtable",
    H7,
    Table,
    task=Digits,
    console="console.txt",
    logs=["eval", "acc", "time", "gap"],
    plan=[
        OK(),
        OK(),
        OK("dropout keeps evaluation below training", h={"dropout": 0.5}),
        OK("tiny noisy evaluation set", h={"val_size": 40}),
        P.clean_resume(450),
        OK("early stop as configured", h={"steps": 720}),
        P.overfit(h={"train_size": 50, "dropout": 0.0, "lr": 1e-2}),
        P.labels_wrong(),
        P.double_softmax(),
        P.dead(),
        one_class(),
        P.frozen(["3.weight", "3.bias"], h={"lr": 3e-4}),
        P.lr_low(3e-6),
        P.disk_full(400),
        P.killed(500, signal.SIGINT),
        P.train_mode_eval(h={"dropout": 0.75}),
        val_swap(450, noisy),
        P.slow(500, 0.012),
        P.code_error("json", 400),
    ],
)


# residual net with batch norm, TensorBoard
class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c)
        )

    def forward(self, x):
        return (x + self.f(x)).relu()


class ResDigits(Digits):
    def net(self, h):
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.MaxPool2d(2),
            Res(8),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Dropout(h["dropout"]),
            nn.Linear(32, 10),
        )


class ResBoard(Board):
    tkeys: ClassVar = {"loss": "train/loss_step", "lr": "lr-SGD"}
    ekeys: ClassVar = {"val_loss": "val/loss", "val_acc": "val/top1", "train_acc": "train/top1"}
    sub = "runs"


H8 = {
    "steps": 400,
    "batch_size": 32,
    "lr": 0.05,
    "optimizer": "sgd",
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "schedule": "cosine",
    "dropout": 0.0,
    "log_every": 5,
    "eval_every": 40,
    "save_every": 40,
    "window": False,
}
resnet = Family(
    "torch-resnetdigits-tensorboard",
    H8,
    ResBoard,
    task=ResDigits,
    config="yaml",
    names={"lr": "base_lr"},
    logs=["eval", "acc", "lr", "gap", "resume"],
    plan=[
        OK(),
        OK(),
        OK("large sgd rate that works", h={"lr": 0.2}),
        OK("cyclic rate", h={"schedule": "cyclic"}),
        P.clean_resume(200),
        OK("batch ramp as configured", h={"batch_ramp": [0, 16, 100, 32]}, ext=lambda h, rng: {"sizes": lambda s, n: 16 if s < 100 else n}),
        OK("warm restarts", h={"schedule": "restarts", "period": 130}),
        P.units(10),
        P.lr_jump(220, 60, 15),
        P.flip(250, index=2),
        P.bad_batch([150, 280], "targets"),
        P.schedule_reset(320),
        P.batch_changed(200, 2),
        P.train_mode_eval(h={"dropout": 0.7}),
        F("weight_decay_too_strong", h={"weight_decay": 0.3}, step=0),
        P.shift(200, lambda b: {**b, "x": b["x"].flip(2) + 0.3}),
        P.config_changed(200, {"lr": 3.0}),
        val_swap(240, noisy),
    ],
)

FAMILIES = [cnn_table, resnet]
