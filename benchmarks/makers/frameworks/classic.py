"""scikit-learn: a partial_fit loop with printed scores."""

import time

import numpy as np
import proj
from common import bad, ok, plain
from data import digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier


def mlp_run(base, case, rec):
    """MLPClassifier.partial_fit over mini-batches; a line for each ten batches."""
    c, f = {**base, **case.cfg}, case.f
    rng = np.random.default_rng(rec["seed"])
    n = c["steps"] * c["batch_size"]
    x, y, xe, ye = digits(c.get("pool") or n, rng, flat=True)
    if c.get("pool"):
        i = np.concatenate([rng.permutation(c["pool"]) for _ in range(-(-n // c["pool"]))])[:n]
        x, y = x[i], y[i]
    if "labels" in f:
        m = rng.random(n) < f["labels"]
        y[m] = rng.permuted(y[m])
    b = c["batch_size"]
    if "pocket" in f:
        s = slice(f["pocket"][0] * b, f["pocket"][1] * b)
        y[s] = rng.permuted(y[s])
    if "shift" in f:
        x[f["shift"] * b :] = 1 - x[f["shift"] * b :]
    if f.get("raw"):
        x, xe = x * np.logspace(0, f["raw"], 64), xe * np.logspace(0, f["raw"], 64)
    if "nan_at" in f:
        x[f["nan_at"] * b + 3, 5] = np.nan
    m = MLPClassifier(
        hidden_layer_sizes=(c["hidden"],),
        solver=c.get("solver", "adam"),
        activation=c.get("activation", "relu"),
        learning_rate_init=c["learning_rate_init"],
        alpha=c.get("alpha", 1e-4),
        batch_size=b,
        epsilon=c.get("epsilon", 1e-8),
        random_state=rec["seed"],
        momentum=0.9,
    )
    print(m)
    win, t = [], time.time()
    for s in range(c["steps"]):
        if s == f.get("code_error"):
            proj.read_meta(s)
        if "slow" in f and s >= f["slow"][0]:
            time.sleep(f["slow"][1])
        if "rate" in f and s == f["rate"][0]:
            m._optimizer.learning_rate_init *= f["rate"][1]
            m._optimizer.learning_rate *= f["rate"][1]
        xb, yb = x[s * b : (s + 1) * b], y[s * b : (s + 1) * b]
        m.partial_fit(xb, yb, classes=np.arange(10))
        if "flip" in f and s == f["flip"]:
            m.coefs_[1].view(np.int64 if m.coefs_[1].dtype == np.float64 else np.int32).reshape(-1)[5] ^= 1 << (
                62 if m.coefs_[1].dtype == np.float64 else 30
            )
        rec["train"].append((s, float(m.loss_)))
        rec["dts"].append(time.time() - t)
        t = time.time()
        win.append(m.loss_)
        if s == 0:
            rec["init"] = 2.5
        if s % 10 == 9:
            p = m.predict_proba(xe)
            e = log_loss(ye, np.clip(p, 1e-12, 1), labels=range(10)) if np.isfinite(p).all() else float("nan")
            rec["evals"].append((s, e))
            print(f"batch {s + 1:4d}/{c['steps']}  loss={np.mean(win):.5f}  val_logloss={e:.5f}  val_acc={(p.argmax(1) == ye).mean():.4f}")
            win = []
    p = m.predict_proba(xe if "shift" not in f else 1 - xe)
    rec["final"] = log_loss(ye, np.clip(p, 1e-12, 1), labels=range(10))


def mlp_cases(rng):
    s = 300
    t = [int(s * rng.uniform(0.35, 0.65)) for _ in range(6)]
    return [
        plain(),
        plain(),
        bad("lr_too_high", "worse", "learning_rate_init in the printed estimator; loss stuck high", 0, cfg={"learning_rate_init": 1.0}),
        bad("lr_too_low", "worse:.3", "learning_rate_init in the printed estimator is tiny", 0, cfg={"learning_rate_init": 1e-5}),
        bad("weight_decay_too_strong", "worse:.2", "alpha in the printed estimator", 0, cfg={"alpha": rng.choice([100.0, 300.0])}),
        bad("optimizer_second_moment", "worse:.2", "epsilon in the printed estimator", 0, cfg={"epsilon": 1.0}, accept=("lr_too_low",)),
        bad(
            "labels_wrong",
            "worse:.4",
            "both losses stay at guessing",
            0,
            "partly",
            f={"labels": 1.0},
            accept=("other:inputs carry no information",),
        ),
        bad("labels_wrong", "worse:.12", "train loss stays at a floor", 0, "partly", f={"labels": 0.4}, accept=("other:noisy labels",)),
        bad("bad_data_pocket", "pocket", "loss raised over a stretch of batches", t[0], f={"pocket": (t[0], t[0] + 50)}),
        bad(
            "data_distribution_shift",
            "bump",
            "train loss steps up and falls again, validation gets worse for good",
            t[1],
            f={"shift": t[1]},
        ),
        bad("inputs_not_normalized", "worse:.1", "huge losses in the first batches", 0, "partly", f={"raw": 3.0}, accept=("lr_too_high",)),
        bad("nan_from_sample", "crash", "ValueError: Input X contains NaN", t[2], f={"nan_at": t[2]}),
        bad("code_error", "crash", "traceback with the reason", t[3], f={"code_error": t[3]}),
        bad(
            "lr_jump",
            "bump",
            "loss leaps at a step and stays; the rate is not logged",
            t[4],
            "no",
            f={"rate": (t[4], 400)},
            accept=("silent_data_corruption", "bad_data_pocket"),
        ),
        bad("silent_data_corruption", "bump", "loss leaps from one line to the next without reason", t[5], "partly", f={"flip": t[5]}),
        ok("plain SGD at a rate that works", {"solver": "sgd", "learning_rate_init": 0.1}),
        ok("small batches: noisy loss", {"batch_size": 8}, check="fine:.2"),
        ok("short run", {"steps": 200}, check="fine:.2"),
        ok("normal small gap at the end", {"pool": 1000}, check="fine:.2"),
    ]


MLP = {"steps": 300, "batch_size": 32, "hidden": 48, "learning_rate_init": 3e-3}
FAMILIES = {"sklearn-mlp-digits-partialfit-print": {"cases": mlp_cases, "console": "fit.log", "run": lambda c, r: mlp_run(MLP, c, r)}}
