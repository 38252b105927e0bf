"""LightGBM with its evaluation lines."""

import json
import os
import time

import lightgbm as lgb
import numpy as np
import proj
from common import bad, ok, plain
from data import regression, tabular


def lgb_run(base, case, rec):
    c, f = {**base, **case.cfg}, case.f
    rng = np.random.default_rng(rec["seed"])
    if c["objective"] == "multiclass":
        x, y, xe, ye = tabular(c["n"], rng)
    else:
        x, y, xe, ye = regression(c["n"], rng)
        y, ye = y[:, 0], ye[:, 0]
    if "labels" in f:
        m = rng.random(len(y)) < f["labels"]
        y[m] = rng.permuted(y[m])
    if "leak" in f:
        xe, ye = x[:400], y[:400]
    if "bad_schema" in f:
        y = y + 1 if c["objective"] == "multiclass" else y[:-7]
    p = {k: v for k, v in c.items() if k not in ("n", "rounds", "stop")}
    json.dump({**p, "num_boost_round": c["rounds"]}, open("params.json", "w"), indent=1)
    tr = lgb.Dataset(x, y)
    va = lgb.Dataset(xe, ye, reference=tr)
    hist = {}
    cbs = [lgb.log_evaluation(c.get("every", 5)), lgb.record_evaluation(hist)]
    if c.get("stop"):
        cbs.append(lgb.early_stopping(c["stop"]))
    if "rate" in f:
        cbs.append(lgb.reset_parameter(learning_rate=lambda i: c["learning_rate"] * (f["rate"][1] if i >= f["rate"][0] else 1)))

    def clock(env):
        if "slow" in f and env.iteration >= f["slow"][0]:
            time.sleep(f["slow"][1])
        if env.iteration == f.get("code_error"):
            proj.read_meta(env.iteration)
        if env.iteration == f.get("kill"):
            os.kill(os.getpid(), 15)
            time.sleep(5)

    cbs.append(clock)
    b = lgb.train(
        {**p, "num_threads": 1, "verbosity": 1, "seed": rec["seed"]},
        tr,
        c["rounds"],
        valid_sets=[tr, va],
        valid_names=["training", "valid_1"],
        callbacks=cbs,
    )
    k = next(iter(hist["valid_1"]))
    rec["train"] = list(enumerate(hist["training"][k]))
    rec["evals"] = list(enumerate(hist["valid_1"][k]))
    rec["init"], rec["final"] = (
        (np.log(3) if c["objective"] == "multiclass" else float(np.var(ye))),
        hist["valid_1"][k][(b.best_iteration or len(rec["evals"])) - 1],
    )


def lgb_cases(rng):
    t = rng.randint(40, 70)
    return [
        plain(),
        plain(),
        bad(
            "lr_too_high",
            "worse:.1",
            "learning_rate in params.json is above one; metrics jump or rise",
            0,
            cfg={"learning_rate": rng.choice([1.8, 2.2])},
        ),
        bad("lr_too_low", "worse:.4", "learning_rate in params.json is tiny", 0, cfg={"learning_rate": 0.0004}),
        bad(
            "labels_wrong",
            "worse:.4",
            "validation metric never gets better than its first value",
            0,
            "partly",
            f={"labels": 1.0},
            accept=("overfitting",),
        ),
        bad("train_eval_leakage", "better:.05", "validation metric as good as the training metric all along", 0, "partly", f={"leak": 1}),
        bad(
            "overfitting",
            "overfit:.05",
            "validation metric turns up while the training metric falls",
            None,
            cfg={"n": 150, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 1e-6, "num_leaves": 60, "learning_rate": 0.5},
        ),
        bad("code_error", "crash", "LightGBMError: labels do not fit the objective or the number of rows", 0, f={"bad_schema": 1}),
        bad("code_error", "crash", "traceback with the reason", t, f={"code_error": t}),
        bad("stopped_from_outside", "crash", "ends in mid run with the launcher's word", t, f={"kill": t}, launcher="Terminated"),
        bad(
            "regularization_floor",
            "worse:.3",
            "lambda_l2/min_gain in params.json: no further splits",
            0,
            cfg={"lambda_l2": rng.choice([3e4, 1e5])},
        ),
        ok("early stop as configured", {"stop": 15, "learning_rate": 0.2, "rounds": 300}, check="fine:.2"),
        ok("few leaves, slow and steady", {"num_leaves": 6, "learning_rate": 0.15, "rounds": 220}, check="fine:.25"),
        ok("bagging: noisy train metric", {"bagging_fraction": 0.5, "bagging_freq": 1}, check="fine:.2"),
        ok("mild gap that is normal for boosting", {"n": 3000}, check="fine:.25"),
        ok("logs every round", {"every": 1}),
    ]


FAMILIES = {
    "lightgbm-tabular-multiclass-evallines": {
        "cases": lgb_cases,
        "console": "lgb.log",
        "run": lambda c, r: lgb_run(
            {
                "objective": "multiclass",
                "num_class": 3,
                "metric": "multi_logloss",
                "learning_rate": 0.1,
                "num_leaves": 15,
                "n": 4000,
                "rounds": 120,
            },
            c,
            r,
        ),
    },
    "lightgbm-regression-evallines": {
        "cases": lgb_cases,
        "console": "train_gbm.out",
        "run": lambda c, r: lgb_run(
            {"objective": "regression", "metric": "l2", "learning_rate": 0.08, "num_leaves": 20, "n": 3000, "rounds": 150, "every": 10},
            c,
            r,
        ),
    },
}
