"""The cases of the Keras families."""

from common import bad, ok, plain


def cases(task):
    def make(rng):
        b = BASE[task]
        n = b["epochs"] * b["n"] // b["bs"]
        t, e = rng.randint(int(n * 0.35), int(n * 0.6)), b["epochs"] // 2
        out = [
            plain(),
            plain(),
            bad(
                "lr_too_high",
                "worse",
                "loss stuck or jumping; the rate in the config if kept",
                0,
                "yes" if task != "digits" else "partly",
                cfg={"lr": 0.5 if task == "digits" else 1.0},
            ),
            bad("lr_too_low", "worse:.3", "loss falls evenly but hardly", 0, "partly", cfg={"lr": b["lr"] / 200}),
            bad(
                "weight_decay_too_strong", "worse:.2", "config or early plateau", 0, "yes" if task != "digits" else "no", cfg={"wd": 100.0}
            ),
            bad(
                "optimizer_second_moment",
                "worse:.15",
                "epsilon in the config if kept; slow",
                0,
                "yes" if task != "digits" else "no",
                cfg={"eps": 1.0},
                accept=("lr_too_low",),
            ),
            bad(
                "labels_wrong",
                "worse:.4",
                "val and train loss stay at guessing",
                0,
                "partly",
                f={"labels": 1.0},
                accept=("other:inputs carry no information",),
            ),
            bad(
                "inputs_not_normalized",
                "worse:.05",
                "huge first loss, slow or none after",
                0,
                "partly",
                f={"raw": 1},
                accept=("lr_too_high", "init_too_large"),
            ),
            bad("nan_from_sample", "nan", "loss NaN from the first epoch on", 0, "partly", f={"nan": 99}, accept=("nan_from_layer",)),
            bad(
                "overfitting",
                "overfit",
                "val_loss turns up for good",
                None,
                cfg={"n": 48, "bs": 8, "lr": b["lr"] * 3, "epochs": b["epochs"] * 5},
            ),
            bad(
                "dead_or_saturated_units",
                "worse:.3",
                "loss flat from the start",
                0,
                "partly",
                f={"dead": 1},
                accept=("frozen_parameters", "labels_wrong"),
            ),
            bad(
                "lr_jump",
                "bump",
                "learning rate (if logged) and loss jump at an epoch",
                e,
                "partly",
                f={"rate": (e, 300)},
                accept=("silent_data_corruption",),
            ),
            bad("silent_data_corruption", "bump", "loss leaps at an epoch without reason", t * b["bs"] // b["n"], "partly", f={"flip": t}),
            bad("disk_full", "crash", "traceback: no space left on device", e, f={"disk_full": e}, cfg={"save": 1}),
            bad("code_error", "crash", "traceback with the reason", t, f={"code_error": t}),
            bad(
                "train_eval_leakage",
                "better:.02",
                "val loss at or below train loss on a small set",
                0,
                "no",
                f={"leak": 1},
                cfg={"n": 300, "epochs": b["epochs"] * 3},
                accept=("overfitting",),
            ),
            ok("large SGD rate that works", {"opt": "sgd", "lr": 0.05}, check="fine:.2"),
            ok("dropout: train loss above val loss", {"dropout": 0.3}, check="fine:.2"),
            ok("small batch", {"bs": b["bs"] // 2, "lr": b["lr"] * 0.7}, check="fine:.15"),
            ok("cosine with restarts", {"schedule": "restarts"}, check="fine:.15"),
            ok("early stop as configured", {"patience": 3, "epochs": b["epochs"] + 4}, check="fine:.2"),
        ]
        if task == "digits":
            out += [
                bad("double_softmax", "bump:.2", "loss floor near 1.46 with good accuracy", 0, f={"double_softmax": 1}),
                bad("throughput_collapse", "slow", "seconds per epoch rise", t, f={"slow": (t, 0.03)}),
                bad(
                    "stopped_from_outside",
                    "crash",
                    "text ends with the launcher's words",
                    t,
                    f={"kill": t},
                    launcher="srun: error: node07: task 0: Terminated",
                ),
            ]
        return [x for x in out if not (task != "digits" and x.cause in ("disk_full", "code_error"))]

    return make


BASE = {
    "digits": {"n": 1200, "bs": 48, "epochs": 8, "lr": 3e-3},
    "regression": {"n": 1500, "bs": 50, "epochs": 10, "lr": 4e-3, "schedule": "cosine"},
}
