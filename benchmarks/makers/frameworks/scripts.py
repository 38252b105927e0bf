"""Families that use the loops of loops.py, each with its log."""

import numpy as np
from common import bad
from loops import family
from tool_logs import Fairseq, MMDet, Timm, Ultralytics
from trackers import Accel, DLLogger, MLflow


def more_points(rng, cfg):
    return {
        "drift": bad(
            "nan_from_layer",
            "nan",
            "nll runs off and becomes infinite or NaN",
            None,
            f={"drift": 0.02},
            ident="partly",
            accept=("lr_too_high",),
        )
    }


def more_tabular(rng, cfg):
    s = cfg["steps"]
    half = s // 2
    return {
        "evalch": bad(
            "eval_changed",
            "own_eval",
            "val loss and accuracy jump between two evaluations while train goes on",
            half,
            f={"eval_to": half, "eval_set": lambda x, y: (x * 1.0, np.roll(y, 1)) if rng else None},
            ident="partly",
        ),
        "sat": bad(
            "dead_or_saturated_units",
            "worse:.3",
            "loss flat near guessing; sigmoid units and a wide init in the config",
            0,
            cfg={"act": "sigmoid", "init_std": 30.0},
            accept=("init_too_large",),
            ident="partly",
        ),
    }


D = dict
FAMILIES = {
    "timm-cnn-digits-console-summarycsv": family(
        "digits",
        D(steps=240, bs=32, lr=2e-3, wd=1e-4, log=10, eval=40, epoch_steps=40, hot=2000, wild_init=3.0),
        Timm,
        "lr_high lr_low wd jump units pocket labels2 raw nan smooth double over slow term crash disk oom init frozen h_resume h_rough h_drop h_restarts h_onecycle h_sgd h_first",
        "train.log",
    ),
    "mmdet-blobs-jsonlines": family(
        "blobs",
        D(steps=300, bs=24, lr=2e-3, log=5, eval=60, epoch_steps=60, hot=200),
        MMDet,
        "lr_high lr_low wd jump units batch pocket labels raw flip slow over lost reset config crash h_resume h_rough h_restarts h_wsd h_pause h_outlier",
    ),
    "fairseq-seq2seq-reverse-log": family(
        "reverse",
        D(steps=400, bs=32, lr=3e-3, log=10, eval=50, epoch_steps=50, hot=40, wild_init=1.5),
        Fairseq,
        "lr_high lr_low jump units pocket labels eps init nozero smooth reset crash bsize code hang term h_resume h_drop h_restarts h_short h_accum h_clipped",
        "train.log",
    ),
    "mlflow-tabular-mlp-filestore": family(
        "tabular",
        D(steps=300, bs=64, lr=2e-3, log=10, eval=30, hot=400, mild_pool=3000),
        MLflow,
        "lr_high lr_low wd pocket labels2 shift over evalch sat double leak reset h_rough h_mild h_drop h_wsd h_resume",
        None,
        more_tabular,
    ),
    "accelerate-mlp-regression-tb": family(
        "regression",
        D(steps=400, bs=64, lr=3e-3, log=10, eval=50, hot=400),
        Accel,
        "lr_high jump units pocket labels raw sum flip nan dead slow over leak lost code h_rough h_restarts h_onecycle h_outlier h_noise h_short",
        "console.log",
    ),
    "dllogger-flow-points": family(
        "points",
        D(steps=400, bs=64, lr=2e-3, log=5, eval=50, hot=300),
        DLLogger,
        "lr_high wd units pocket shift drift flip reset crash nozero h_rough h_restarts h_resume h_clipped h_wsd",
        None,
        more_points,
    ),
    "ultralytics-blobs-resultscsv": family(
        "blobs",
        D(steps=480, bs=16, lr=2e-3, log=10, eval=24, epoch_steps=24, hot=200),
        Ultralytics,
        "lr_high lr_low jump labels2 over slow lost shift config h_wsd h_restarts h_mild h_resume",
        None,
    ),
}
