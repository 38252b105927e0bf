"""Tables: regression and classification."""

import logging
import math

import numpy as np
import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from digits import leak_val, val_swap
from loop import Task
from sinks import EpochCsv
from sklearn.datasets import make_classification, make_friedman1


# regression, CSV of epochs
class Regression(Task):
    def __init__(self, h):
        x, y = make_friedman1(1600, 10, noise=1.0, random_state=3)
        if h.get("heavy_tail"):
            y = y + 0.6 * np.random.default_rng(1).standard_t(1.6, len(y))
        x = x * h.get("x_scale", 1.0) + h.get("x_shift", 0.0)
        if not h.get("raw"):
            x = (x - x.mean(0)) / x.std(0)
        x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y / 5 - 3, dtype=torch.float32).unsqueeze(1)
        self.n = min(1200, h.get("train_size", 1200))
        self.x, self.y = x[400 : 400 + self.n], y[400 : 400 + self.n]
        self.val = [{"x": x[: h.get("val_size", 400)], "y": y[: h.get("val_size", 400)]}]
        w = h.get("width", 48)
        self.model = nn.Sequential(
            nn.Linear(10, w), nn.ReLU(), nn.Dropout(h.get("dropout", 0.0)), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, 1)
        )
        self.head, self.kind = self.model[-1], h.get("loss", "mse")

    def loss(self, b):
        r = self.model(b["x"]) - b["y"]
        mae = float(r.detach().abs().mean())
        if self.kind == "huber":
            return F_.huber_loss(r, torch.zeros_like(r)), {"mae": mae}
        if self.kind == "rmse_sample":
            return (r**2).sqrt().mean(), {"mae": mae}
        return (r**2).mean(), {"mae": mae}


def exact_answers(step):
    """Some samples are answered exactly, so the root has an infinite slope there."""

    def make(h, rng):
        box = {}

        def batch(s, b):
            if s >= step and s % 50 == 0:
                with torch.no_grad():
                    y = b["y"].clone()
                    y[:1] = box["t"].model(b["x"])[:1]
                return {**b, "y": y}
            return b

        return {"batch": batch, "before": lambda t: box.update(t=t)}

    return make


H12 = {
    "steps": 760,
    "batch_size": 64,
    "lr": 3e-3,
    "optimizer": "adam",
    "weight_decay": 0.0,
    "schedule": "cosine",
    "log_every": 19,
    "eval_every": 19,
    "save_every": 190,
    "pickle_save": True,
}
mlp_reg = Family(
    "torch-mlpregression-epochcsv",
    H12,
    EpochCsv,
    task=Regression,
    console="stderr.txt",
    config="yaml",
    logs=["eval", "lr", "gap"],
    plan=[
        OK(),
        OK(),
        OK(
            "heavy-tailed targets, huber loss",
            h={"heavy_tail": 1, "loss": "huber"},
            check=lambda m, t, s: (m["eval"][-1][1] < 0.7 * m["eval"][0][1], f"{m['eval'][0]} {m['eval'][-1]}"),
        ),
        OK("tiny noisy evaluation set", h={"val_size": 12}, check=lambda m, t, s: (m["eval"][-1][1] < 0.4, f"{m['eval'][-1]}")),
        OK("early stop as configured", h={"steps": 608}),
        P.clean_resume(456),
        F("inputs_not_normalized", h={"raw": 1, "x_scale": 3000.0, "x_shift": 20000.0}, step=0, ident="partly"),
        P.lr_high(3.0),
        P.overfit(h={"train_size": 60, "width": 256, "schedule": "constant"}),
        P.labels_wrong(),
        leak_val(400, h={"train_size": 120, "schedule": "constant"}),
        P.dead(),
        P.units(30),
        P.nan_sample(500),
        P.disk_full(400),
        F("nan_from_layer", h={"loss": "rmse_sample"}, ext=exact_answers(400), step=401, accept=["nan_from_sample"], ident="no"),
        val_swap(456, lambda b: {**b, "y": b["y"] + 0.9}),
        OK("cyclic rate", h={"schedule": "cyclic", "lr": 6e-3}),
    ],
)


# classification, logging lines
class Tabular(Task):
    soft_first, weights = False, None

    def __init__(self, h):
        x, y = make_classification(2400, 20, n_informative=8, n_classes=3, class_sep=1.2, random_state=5, shuffle=True)
        x = torch.tensor(x * h.get("x_scale", 1.0), dtype=torch.float32)
        y = torch.tensor(y)
        self.n = min(1900, h.get("train_size", 1900))
        self.x, self.y, self.val = x[500 : 500 + self.n], y[500 : 500 + self.n], [{"x": x[:500], "y": y[:500]}]
        d = h["dropout"]
        self.model = nn.Sequential(
            nn.Linear(20, 64), nn.Tanh(), nn.Dropout(d), nn.Linear(64, 64), nn.Tanh(), nn.Dropout(d), nn.Linear(64, 3)
        )
        self.head, self.red = self.model[-1], h.get("reduction", "mean")

    def loss(self, b):
        z = self.model(b["x"])
        acc = float((z.argmax(-1) == b["y"]).float().mean())
        z = z.softmax(-1) if self.soft_first else z
        return F_.cross_entropy(z, b["y"], reduction=self.red, weight=self.weights), {"acc": acc}


class Lines:
    def __init__(self, folder, h, k):
        self.log = logging.getLogger("trainer")
        self.log.setLevel(logging.INFO)
        f = logging.FileHandler(folder / "train.log")
        f.setFormatter(logging.Formatter("%(asctime)s | %(levelname)-7s | %(name)s:fit - %(message)s"))
        self.log.handlers = [f]
        self.log.info(
            "hyperparameters: " + ", ".join(f"{a}={h[a]}" for a in ("optimizer", "batch_size", "lr", "dropout", "accum") if a in h)
        )

    def train(self, d):
        self.log.info(f"step {d['step']:>4} | loss {d['loss']:.4f} | grad_norm {d['gnorm']:.3f} | lr {d['lr']:.2e}")

    def eval(self, d):
        self.log.info(f"evaluation: loss={d['val_loss']:.4f} accuracy={d['val_acc']:.4f}")
        if not math.isfinite(d["val_loss"]):
            self.log.warning("evaluation loss is not finite")

    def note(self, s):
        self.log.info(s)

    def close(self):
        self.log.info("finished")


def saturated():
    def before(task):
        with torch.no_grad():
            for i in (0, 3):
                task.model[i].weight.mul_(60)

    return F(
        "dead_or_saturated_units",
        ext=lambda h, rng: {"before": before},
        step=0,
        accept=["init_too_large", "lr_too_low", "frozen_parameters"],
        ident="partly",
    )


H13 = {
    "steps": 500,
    "batch_size": 16,
    "accum": 2,
    "lr": 0.05,
    "optimizer": "sgd",
    "momentum": 0.9,
    "schedule": "cosine",
    "dropout": 0.1,
    "log_every": 10,
    "eval_every": 50,
    "save_every": 50,
}
tabular = Family(
    "torch-tabular-logginglines",
    H13,
    Lines,
    task=Tabular,
    console="stderr.txt",
    logs=["eval", "gnorm", "lr", "acc", "resume", "config"],
    plan=[
        OK(),
        OK(),
        OK("large sgd rate that works", h={"lr": 0.2}),
        OK("one-cycle schedule", h={"schedule": "onecycle", "lr": 0.1}),
        P.clean_resume(250),
        OK("dropout keeps evaluation below training", h={"dropout": 0.4}),
        P.no_clear(),
        P.times_loss(32.0),
        F("loss_scaled_wrong", h={"reduction": "sum", "lr": 0.1}, step=0),
        P.labels_wrong(),
        P.double_softmax(),
        saturated(),
        P.lr_jump(260, 100),
        OK("warm restarts", h={"schedule": "restarts", "period": 125}),
        P.schedule_reset(400),
        P.batch_changed(250, 1),
        OK("noisy small batch", h={"batch_size": 8}),
        P.bad_batch([180, 333], "scale", 40.0),
        P.code_error("shape", 280),
        P.shift(250, lambda b: {**b, "y": (b["y"] + (torch.arange(len(b["y"])) % 2)) % 3}),
    ],
)


FAMILIES = [mlp_reg, tabular]
