"""Keras on the torch backend: CSVLogger for a regression, progress text and History as JSON for digits."""

import json
import os
import time

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import proj
from data import digits, regression
from keras_cases import BASE, cases


class Hooks(keras.callbacks.Callback):
    def __init__(self, f, rec):
        super().__init__()
        self.f, self.rec, self.s, self.t = f, rec, 0, time.time()

    def on_train_batch_begin(self, b, logs=None):
        if "slow" in self.f and self.s >= self.f["slow"][0]:
            time.sleep(self.f["slow"][1])
        if self.s == self.f.get("code_error"):
            proj.read_meta(self.s)
        if self.s == self.f.get("kill"):
            os.kill(os.getpid(), 15)
            time.sleep(5)

    def on_train_batch_end(self, b, logs=None):
        self.rec["dts"].append(time.time() - self.t)
        self.t = time.time()
        if self.s == self.f.get("flip"):
            w = self.model.layers[-1].get_weights()
            w[0].view(np.int32).reshape(-1)[3] ^= 1 << 30
            self.model.layers[-1].set_weights(w)
        self.s += 1

    def on_epoch_begin(self, e, logs=None):
        if "rate" in self.f and e == self.f["rate"][0]:
            self.model.optimizer.learning_rate = float(self.model.optimizer.learning_rate) * self.f["rate"][1]

    def on_epoch_end(self, e, logs=None):
        self.rec["train"].append((e, logs["loss"]))
        if "val_loss" in logs:
            self.rec["evals"].append((e, logs["val_loss"]))


class Checkpoint(keras.callbacks.Callback):
    def __init__(self, path, full):
        super().__init__()
        self.path, self.full = path, full

    def on_epoch_end(self, e, logs=None):
        if self.full is not None and e >= self.full:
            os.path.lexists(self.path) and os.unlink(self.path)
            os.symlink("/dev/full", self.path)
            proj.write_file(self.path, "x" * 10**6)
        self.model.save(self.path)


def run(task, base, case, rec):
    c, f = {**base, **case.cfg}, case.f
    keras.utils.set_random_seed(rec["seed"])
    rng = np.random.default_rng(rec["seed"])
    x, y, xe, ye = digits(c["n"], rng) if task == "digits" else regression(c["n"], rng)
    if task == "digits":
        x, xe = x.transpose(0, 2, 3, 1), xe.transpose(0, 2, 3, 1)
    if "labels" in f:
        m = rng.random(len(y)) < f["labels"]
        y[m] = y[m][rng.permutation(int(m.sum()))]
    if f.get("raw"):
        k = np.logspace(0, 3.5, x.shape[-1]).astype(np.float32) if x.ndim == 2 else 255 * 16
        x, xe = x * k, xe * k
    if f.get("nan"):
        x[f["nan"]].reshape(-1)[2] = np.nan
    if f.get("leak"):
        xe, ye = x[:300], y[:300]
    act, init = (
        c.get("activation", "relu"),
        keras.initializers.RandomNormal(stddev=c["init_std"]) if c.get("init_std") else "glorot_uniform",
    )
    L = keras.layers
    if task == "digits":
        net = [
            L.Input((8, 8, 1)),
            L.Conv2D(12, 3, activation=act, kernel_initializer=init),
            L.Flatten(),
            L.Dropout(c.get("dropout", 0.0)),
            L.Dense(32, activation=act, kernel_initializer=init),
            L.Dense(10, activation="softmax"),
        ]
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=bool(f.get("double_softmax")), reduction="sum" if f.get("sum_loss") else "sum_over_batch_size"
        )
    else:
        net = [
            L.Input((10,)),
            L.Dense(64, activation=act, kernel_initializer=init),
            L.Dropout(c.get("dropout", 0.0)),
            L.Dense(64, activation=act, kernel_initializer=init),
            L.Dense(1),
        ]
        loss = keras.losses.MeanSquaredError(reduction="sum" if f.get("sum_loss") else "sum_over_batch_size")
    m = keras.Sequential(net)
    if f.get("dead"):
        m.layers[-2].set_weights([m.layers[-2].get_weights()[0], np.full(m.layers[-2].get_weights()[1].shape, -60, np.float32)])
    steps = c["epochs"] * c["n"] // c["bs"]
    lr = c["lr"]
    if c.get("schedule") == "cosine":
        lr = keras.optimizers.schedules.CosineDecay(lr, steps)
    if c.get("schedule") == "restarts":
        lr = keras.optimizers.schedules.CosineDecayRestarts(lr, steps // 3, t_mul=1.0)
    kw = {"weight_decay": c.get("wd"), "clipnorm": c.get("clip")}
    o = (
        keras.optimizers.SGD(lr, momentum=0.9, **kw)
        if c.get("opt") == "sgd"
        else keras.optimizers.Adam(lr, epsilon=c.get("eps", 1e-7), **kw)
    )
    m.compile(o, loss, metrics=["accuracy"] if task == "digits" else ["mae"])

    def ev():
        return float(m.evaluate(xe, ye, verbose=0, return_dict=True)["loss"])

    rec["init"] = ev()
    cbs = [Hooks(f, rec)]
    if task != "digits":
        cbs += [keras.callbacks.CSVLogger("training.csv")]
        json.dump(dict(c.items()), open("config.json", "w"))
    if c.get("save"):
        cbs.append(Checkpoint("model.keras", f.get("disk_full")))
    if c.get("patience"):
        cbs.append(keras.callbacks.EarlyStopping("val_loss", patience=c["patience"], restore_best_weights=True, verbose=1))
    if task == "digits":
        m.summary(line_length=70)
    h = m.fit(x, y, batch_size=c["bs"], epochs=c["epochs"], validation_data=(xe, ye), callbacks=cbs, verbose=2 if task == "digits" else 0)
    if task == "digits":
        json.dump(h.history, open("history.json", "w"))
    rec["final"] = ev() if not f.get("sum_loss") else rec["train"][-1][1]


FAMILIES = {
    "keras-cnn-digits-fittext-history": {
        "cases": cases("digits"),
        "console": "fit_output.txt",
        "imports": ["sklearn.datasets"],
        "run": lambda c, r: run("digits", BASE["digits"], c, r),
    },
    "keras-mlp-regression-csvlogger": {
        "cases": cases("regression"),
        "console": None,
        "run": lambda c, r: run("regression", BASE["regression"], c, r),
    },
}
