"""A graph network on a block graph, and a network written in numpy alone."""

import numpy as np
import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from loop import Order, Task
from rates import lr_at
from sklearn.datasets import load_breast_cancer


# graph network on a block graph, one line an epoch
class GCN(nn.Module):
    def __init__(self, a, drop):
        super().__init__()
        self.a, self.l1, self.l2, self.drop = a, nn.Linear(24, 24), nn.Linear(24, 5), nn.Dropout(drop)

    def forward(self, x):
        return self.a @ self.l2(self.drop((self.a @ self.l1(x)).relu()))


class Graph(Task):
    soft_first = False

    def __init__(self, h):
        r = np.random.default_rng(6)
        n, y = 400, None
        y = r.integers(0, 5, n)
        p = np.where(y[:, None] == y[None], 0.06, 0.01)
        a = np.triu(r.random((n, n)) < p, 1)
        a = (a | a.T).astype(np.float32)
        a += np.eye(n, dtype=np.float32)
        d = a.sum(1)
        d = 1 / np.sqrt(d)
        a = torch.tensor(a * d[:, None] * d[None], dtype=torch.float32)
        x = r.normal(size=(n, 24)) + 1.4 * np.eye(5, 24)[y]
        self.x, self.y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
        k = r.permutation(n)
        self.tr, self.va = torch.tensor(k[: h.get("train_nodes", 160)]), torch.tensor(k[200:])
        if h.get("split") == "shared":
            self.va = self.tr
        self.n, self.model = 1, GCN(a, h["dropout"])
        self.head, self.val = self.model.l2, [{"x": self.x, "y": self.y, "i": self.va}]

    def get(self, idx):
        return {"x": self.x, "y": self.y, "i": self.tr}

    def loss(self, b):
        z = self.model(b["x"])[b["i"]]
        y = b["y"][b["i"]]
        acc = float((z.argmax(-1) == y).float().mean())
        return F_.cross_entropy(z.softmax(-1) if self.soft_first else z, y), {"acc": acc}


class EpochLine:
    def __init__(self, folder, h, k):
        pass

    def train(self, d):
        self.d = d

    def eval(self, d):
        print(
            f"Epoch: {d['step'] + 1:03d}, Loss: {self.d['loss']:.4f}, Train: {self.d['acc']:.4f}, Val loss: {d['val_loss']:.4f}, Val: {d['val_acc']:.4f}"
        )

    def note(self, s):
        print(s)

    def close(self):
        print("Finished.")


H15 = {
    "steps": 150,
    "batch_size": 1,
    "lr": 0.01,
    "optimizer": "adam",
    "weight_decay": 5e-4,
    "dropout": 0.5,
    "log_every": 1,
    "eval_every": 1,
}
gcn = Family(
    "torch-gcn-epochlines",
    H15,
    EpochLine,
    task=Graph,
    console="output.txt",
    config="argv",
    logs=["eval", "acc", "gap"],
    tol=0.2,
    plan=[
        OK(),
        OK(),
        OK("weaker dropout", h={"dropout": 0.3}),
        OK("short run", h={"steps": 120}),
        OK("larger rate that works", h={"lr": 0.03, "steps": 90}),
        OK("cyclic rate", h={"schedule": "cyclic"}),
        P.overfit(h={"train_nodes": 30, "dropout": 0.0, "weight_decay": 0.0, "lr": 0.05}),
        P.train_mode_eval(h={"dropout": 0.8}),
        F("train_eval_leakage", h={"split": "shared", "dropout": 0.0, "train_nodes": 100, "weight_decay": 0.0, "lr": 0.03}, step=0),
        P.labels_wrong(),
        P.dead(),
        P.double_softmax(),
        P.lr_low(1e-5),
        F("weight_decay_too_strong", h={"optimizer": "adam", "weight_decay": 1.0}, step=0),
        P.pocket(90, 110, "inputs", 6.0),
        P.flip(100, index=0),
        P.frozen(["l2.bias"]),
    ],
)


# softmax network in numpy alone, CSV
def numpy_net(folder, h, ext, meas, ckpt, k):
    d = load_breast_cancer()
    r = np.random.default_rng(h["seed"])
    p = np.random.default_rng(0).permutation(len(d.target))
    X, Y = d.data[p], d.target[p]
    if h["standardize"]:
        X = (X - X.mean(0)) / X.std(0)
    if h.get("shuffled_targets"):
        Y = np.concatenate([Y[:150], r.permutation(Y[150:])])
    xv, yv, xt, yt = X[:150], Y[:150], X[150:], Y[150:]
    if h.get("nan_row"):
        xt = xt.copy()
        xt[h["nan_row"], 3] = np.nan
    s = h["init_std"]
    W1, b1, W2, b2 = s * r.normal(size=(30, 16)), np.zeros(16), s * r.normal(size=(16, 1)), np.zeros(1)
    vel = [np.zeros_like(w) for w in (W1, b1, W2, b2)]
    order = Order(len(xt), h["seed"])

    def forward(x):
        a = np.tanh(x @ W1 + b1)
        return a, 1 / (1 + np.exp(-(a @ W2 + b2)[:, 0]))

    def nll(q, y):
        if h["clip_probabilities"]:
            q = np.clip(q, 1e-7, 1 - 1e-7)
        return float(-np.mean(y * np.log(q) + (1 - y) * np.log(1 - q)))

    with open(folder / "numpy_log.csv", "a") as f:
        f.write("iteration,cost,learning_rate,val_cost,val_error\n" if h["with_rate"] else "iteration,cost,val_cost,val_error\n")
        for step in range(h["steps"]):
            i = order.take(h["batch_size"])
            x, y = xt[i], yt[i]
            b = ext.batch(step, {"x": torch.tensor(x), "y": torch.tensor(y)})
            x, y = b["x"].numpy(), b["y"].numpy()
            a, q = forward(x)
            cost = nll(q, y)
            g = (q - y)[:, None] / (1 if h.get("summed") else len(y)) * h.get("sign", 1)
            ga = g @ W2.T * (1 - a**2)
            lr = ext.lr(step, lr_at(h, ext.clock(step, 0)))
            for w, v, gr in zip((W1, b1, W2, b2), vel, (x.T @ ga, ga.sum(0), a.T @ g, g.sum(0)), strict=True):
                v *= h["momentum"] if ext.clear else 1.0
                v -= lr * gr
                w += v
            if h.get("upset") == step:
                W1.view(np.uint64)[4, 2] ^= np.uint64(1 << 62)
            meas.m["loss"].append((step, cost))
            qv = forward(xv)[1]
            e = nll(qv, yv)
            meas.m["eval"].append((step, e))
            if step % 5 == 0:
                f.write(f"{step},{cost:.5f}," + (f"{lr:.4g}," if h["with_rate"] else "") + f"{e:.5f},{np.mean((qv > 0.5) != yv):.4f}\n")
    meas.dump(True)


H16 = {
    "steps": 500,
    "batch_size": 32,
    "lr": 0.05,
    "momentum": 0.9,
    "init_std": 0.2,
    "standardize": True,
    "clip_probabilities": True,
    "with_rate": True,
    "schedule": "constant",
}
HIDE16 = ["shuffled_targets", "nan_row", "summed", "sign", "upset", "with_rate"]
numpy_fam = Family(
    "numpy-mlpcancer-csv",
    H16,
    None,
    train=numpy_net,
    console="warnings.txt",
    config="yaml",
    logs=["eval", "lr"],
    hide=HIDE16,
    tol=0.15,
    plan=[
        OK(),
        OK(),
        OK("noisy small batch", h={"batch_size": 4, "lr": 0.01}),
        OK("large rate that works", h={"lr": 0.3}),
        OK("cyclic rate", h={"schedule": "cyclic"}),
        F("inputs_not_normalized", h={"standardize": False}, step=0),
        F("labels_wrong", h={"shuffled_targets": 1}, step=0),
        F("nan_from_sample", h={"nan_row": 77}, step=10),
        F("nan_from_layer", h={"clip_probabilities": False, "lr": 3.0, "summed": 1}, step=1, accept=["lr_too_high"]),
        F("init_too_large", h={"init_std": 20.0}, step=0, accept=["dead_or_saturated_units"]),
        F("loss_scaled_wrong", h={"summed": 1, "batch_size": 128}, step=0, ident="partly"),
        P.lr_low(1e-5),
        P.lr_jump(250, 100),
        F("silent_data_corruption", h={"upset": 260}, step=260),
        F(
            "other:the gradient's sign is wrong",
            h={"sign": -1},
            step=0,
            accept=["lr_too_high", "labels_wrong"],
            ident="partly",
            what="the cost climbs steadily from the first step",
        ),
        P.pocket(200, 260, "targets"),
        P.bad_batch([150, 320], "scale", 30.0),
        OK("warm restarts", h={"schedule": "restarts", "period": 125}),
        OK("small initial weights", h={"init_std": 0.05}),
    ],
)

FAMILIES = [gcn, numpy_fam]
