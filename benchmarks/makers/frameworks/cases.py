"""Cases that several engines share: settings go to cfg (a run may write them down), code and data faults to f."""

from common import bad, plain
from healthy_cases import healthy
from resumed_cases import resumed

LAST_WORDS = [
    "slurmstepd: error: *** JOB {j} ON gpu{n} CANCELLED AT 2026-03-1{d}T04:12:07 DUE TO TIME LIMIT ***",
    "Terminated",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** STEP {j}.0 ON gpu{n} CANCELLED AT 2026-02-2{d}T18:40:51 DUE TO PREEMPTION ***",
]


def std(rng, cfg):
    s, lr = cfg["steps"], cfg["lr"]

    def a(lo, hi):
        return int(s * rng.uniform(lo, hi))

    t = [a(0.3, 0.65) for _ in range(12)]
    words = rng.choice(LAST_WORDS).format(j=rng.randint(10**5, 10**6), n=rng.randint(10, 99), d=rng.randint(0, 9))

    return {
        "lr_high": bad(
            "lr_too_high",
            "worse",
            "loss jumps about or is stuck at the rate that the log or config shows",
            0,
            cfg={"lr": lr * cfg.get("hot", 60)},
        ),
        "lr_low": bad(
            "lr_too_low", "worse:.3", "loss falls evenly but hardly; the rate is tiny", 0, cfg={"lr": lr / rng.choice([60, 150])}
        ),
        "wd": bad(
            "weight_decay_too_strong",
            "worse",
            "weight decay in the config; loss stays high from early on",
            0,
            cfg={"wd": rng.choice([30.0, 80.0])},
            ident="partly",
        ),
        "jump": bad(
            "lr_jump",
            "bump",
            "the rate leaves its configured path at a step and the loss goes with it",
            t[0],
            f={"lr_mult": (t[0], rng.choice([60, 100]), t[0] + s // 12)},
        ),
        "units": bad(
            "schedule_wrong_units",
            "worse:.06",
            "the rate is at its end long before the end of training",
            0,
            f={"sched_mult": rng.choice([8, 12])},
        ),
        "batch": bad(
            "bad_data_batch",
            "bump",
            "one step or a few with a loss far above, then over",
            t[1],
            f={"bad_batches": [t[1], t[1] + 1], "scale": 6},
            ident="partly",
        ),
        "pocket": bad(
            "bad_data_pocket", "pocket", "loss raised over a stretch, then back on its path", t[2], f={"pocket": (t[2], t[2] + s // 6)}
        ),
        "shift": bad(
            "data_distribution_shift",
            "bump",
            "loss steps up at one step and goes on from there for good",
            t[3],
            f={"shift": t[3]},
            accept=("bad_data_pocket",),
            ident="partly",
        ),
        "labels": bad(
            "labels_wrong",
            "worse:.4",
            "loss stays at guessing, with rate and gradients in order",
            0,
            f={"labels": 1.0},
            ident="partly",
            accept=("other:inputs carry no information",),
        ),
        "labels2": bad(
            "labels_wrong",
            "worse:.12",
            "train loss stops at a floor far above what the task allows",
            0,
            f={"labels": 0.5},
            ident="partly",
            accept=("other:noisy labels",),
        ),
        "nozero": bad(
            "gradients_not_cleared",
            "worse:.08",
            "gradient norm grows step by step, loss oscillates or stalls",
            0,
            f={"no_zero": 1},
            cfg={"clip": 0.0},
            ident="partly",
            accept=("lr_too_high",),
        ),
        "eps": bad(
            "optimizer_second_moment",
            "worse:.2",
            "epsilon of the optimizer in the config; slow at a normal rate",
            0,
            cfg={"eps": rng.choice([0.3, 1.0])},
            ident="partly",
            accept=("lr_too_low",),
        ),
        "flip": bad(
            "silent_data_corruption",
            "bump",
            "loss leaps between two steps with nothing else changed",
            t[4],
            f={"flip": t[4], "bit": 30},
            ident="partly",
        ),
        "slow": bad("throughput_collapse", "slow", "step time rises from a step on", t[5], f={"slow": (t[5], rng.choice([0.02, 0.04]))}),
        "term": bad(
            "stopped_from_outside", "crash", "log ends in mid run with the launcher's last words", t[6], f={"kill": t[6]}, launcher=words
        ),
        "disk": bad("disk_full", "crash", "traceback: no space left on device, in a save", t[7], f={"disk_full": t[7]}, cfg={"save": t[7]}),
        "oom": bad(
            "out_of_memory",
            "crash",
            "traceback of the allocator",
            t[7],
            f={"leak_mb": 8, "rlimit_mb": int(8 * t[7])},
            accept=("code_error",),
        ),
        "code": bad("code_error", "crash", "traceback with the reason", t[8], f={"code_error": t[8]}),
        "nan": bad(
            "nan_from_sample",
            "nan",
            "loss NaN at one step and from then on, healthy before",
            t[9],
            f={"nan_at": t[9]},
            accept=("nan_from_layer",),
            ident="partly",
        ),
        "smooth": bad(
            "regularization_floor",
            "bump:.15",
            "label smoothing in the config; train loss flat and high, eval below",
            0,
            cfg={"smooth": rng.choice([0.5, 0.7])},
        ),
        "double": bad(
            "double_softmax",
            "bump:.2",
            "loss never gets below the floor that softmax of probabilities gives",
            0,
            f={"double_softmax": 1},
            ident="partly",
        ),
        "over": bad(
            "overfitting",
            "overfit",
            "eval turns up for good while train loss falls",
            None,
            cfg={"pool": rng.choice(cfg.get("pools", [50, 80]))},
        ),
        "leak": bad(
            "train_eval_leakage",
            "better:.03",
            "eval loss as low as the train loss on a tiny train set, better than the task allows",
            0,
            f={"leak": 1},
            cfg={"pool": 320},
            ident="no",
            accept=("overfitting",),
        ),
        "sum": bad(
            "loss_scaled_wrong",
            "bump:1",
            "train loss larger than eval loss by the batch size; gradients too",
            0,
            f={"sum_loss": 1},
            ident="partly",
        ),
        "init": bad(
            "init_too_large", "worse:.1", "first loss far above guessing, slow fall", 0, cfg={"init_std": cfg.get("wild_init", 1.0)}
        ),
        "dead": bad(
            "dead_or_saturated_units",
            "worse:.3",
            "loss flat at guessing, gradient (if logged) near zero",
            0,
            f={"dead": 1},
            ident="partly",
            accept=("frozen_parameters",),
        ),
        "frozen": bad(
            "frozen_parameters", "worse:.12", "loss falls a little and stays; gradient norm small", 0, f={"frozen": 1}, ident="no"
        ),
        "raw": bad(
            "inputs_not_normalized",
            "worse:.04",
            "huge first loss, slow unsteady fall",
            0,
            f={"raw": 1},
            ident="partly",
            accept=("lr_too_high", "init_too_large"),
        ),
        "hang": bad(
            "hang",
            "crash",
            "log stops in mid run; much later the launcher ends it",
            t[10],
            f={"stall": t[10]},
            kill_after=7,
            launcher=rng.choice(LAST_WORDS[:2]).format(j=rng.randint(10**5, 10**6), n=rng.randint(10, 99), d=3),
            ident="partly",
            accept=("stopped_from_outside",),
        ),
        **resumed(cfg),
        **healthy(cfg, t[11]),
    }


def chosen(rng, cfg, names, more=None):
    """Two healthy twins, then the cases of these names; `more` gives those of one family."""
    found = std(rng, cfg) | (more(rng, cfg) if more else {})
    return [plain(), plain()] + [found[n] for n in names.split()]
