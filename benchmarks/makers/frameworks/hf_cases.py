"""Cases that every Trainer family can have; each family takes those that suit it."""

import signal

from common import bad, ok


def base_cases(rng, cfg, task):
    """Cases every Trainer family can have; each family takes those that suit it."""
    s = cfg["steps"]

    def a(lo, hi):
        return int(s * rng.uniform(lo, hi))

    t1, t2, t3, t4, t5 = a(0.35, 0.6), a(0.4, 0.7), a(0.4, 0.6), a(0.3, 0.6), a(0.5, 0.7)
    return {
        "lr_high": bad(
            "lr_too_high",
            "worse",
            "loss gets stuck or jumps at the configured rate; grad_norm in the log",
            0,
            f={},
            cfg={"lr": cfg["lr"] * rng.choice([30, 60]), "clip": 1.0},
        ),
        "lr_low": bad(
            "lr_too_low",
            "worse:.3",
            "loss falls evenly but hardly; the logged rate is tiny",
            0,
            cfg={"lr": cfg["lr"] / rng.choice([60, 200])},
        ),
        "wd": bad(
            "weight_decay_too_strong",
            "worse",
            "weight decay in the training arguments; loss turns back up or stays high",
            0,
            ident="partly",
            cfg={"wd": rng.choice([50.0, 100.0])},
        ),
        "jump": bad(
            "lr_jump",
            "bump",
            "logged learning_rate leaves its line at a step, and the loss with it",
            t1,
            f={"lr_mult": (t1, rng.choice([40, 80]), t1 + 12)},
        ),
        "units": bad(
            "schedule_wrong_units",
            "worse:.1",
            "learning_rate reaches zero far before max_steps, loss goes flat",
            0,
            f={"sched_extra": rng.choice([5, 9])},
        ),
        "batch": bad(
            "bad_data_batch",
            "bump",
            "single steps with a huge loss, then over",
            t2,
            ident="partly",
            f={"bad_batches": [t2], "scale": 8},
            cfg={"log": 1},
        ),
        "pocket": bad(
            "bad_data_pocket", "pocket", "loss raised over a stretch, then back on its path", t3, f={"pocket": (t3, t3 + s // 6)}
        ),
        "shift": bad(
            "data_distribution_shift",
            "bump",
            "loss steps up at one step and learns on from there",
            t4,
            accept=("bad_data_pocket",),
            ident="partly",
            f={"shift": t4},
        ),
        "labels": bad(
            "labels_wrong",
            "worse:.2",
            "loss stays at the level of guessing while lr and gradients are in order",
            0,
            ident="partly",
            f={"labels": 1.0},
            accept=("other:features carry no information", "tokenizer_mismatch"),
        ),
        "masked": bad(
            "labels_all_masked",
            "worse",
            "loss is zero or NaN from the first step with no gradient",
            0,
            f={"masked": 1},
            accept=("nan_from_layer",),
        ),
        "nozero": bad(
            "gradients_not_cleared",
            "worse:.1",
            "grad_norm grows from step to step while the loss stalls or oscillates",
            0,
            ident="partly",
            f={"no_zero": 1},
            cfg={"clip": 0.0},
        ),
        "eps": bad(
            "optimizer_second_moment",
            "worse:.2",
            "adam epsilon/beta2 in the arguments; slow progress at a normal lr",
            0,
            ident="partly",
            accept=("lr_too_low",),
            cfg={"eps": rng.choice([0.3, 1.0])},
        ),
        "flip": bad(
            "silent_data_corruption",
            "bump",
            "loss leaps from one step to the next with lr and config unchanged, and never recovers at once",
            t5,
            ident="partly",
            f={"flip": t5, "bit": 30},
        ),
        "slow": bad(
            "throughput_collapse",
            "slow:2",
            "step times (runtime, clocks) rise from a step on",
            t2,
            ident="yes",
            f={"slow": (t2, rng.choice([0.03, 0.05]))},
        ),
        "term": bad(
            "stopped_from_outside",
            "crash",
            "log ends in mid run with the launcher's message",
            t1,
            f={"kill": t1},
            launcher=rng.choice(
                [
                    f"slurmstepd: error: *** JOB {rng.randint(10**5, 10**6)} ON node{rng.randint(10, 99)} CANCELLED AT 2026-03-1{rng.randint(0, 9)}T04:12:0{rng.randint(0, 9)} DUE TO TIME LIMIT ***",
                    "Terminated",
                    "train.sh: line 14:  3181 Terminated              python train.py",
                ]
            ),
        ),
        "disk": bad(
            "disk_full",
            "crash",
            "traceback: No space left on device, in a save",
            t1,
            f={"disk_full": t1 // 2},
            cfg={"save": max(10, s // 5)},
        ),
        "oom": bad(
            "out_of_memory",
            "crash",
            "traceback: memory error of the allocator",
            None,
            accept=("code_error",),
            f={"leak_mb": 1, "rlimit_mb": 600},
        ),
        "init": bad(
            "init_too_large",
            "worse:.15",
            "first loss is far above that of guessing and falls slowly",
            0,
            f={},
            cfg={"model": {"initializer_range": rng.choice([0.6, 1.0])}},
            accept=("attention_logit_growth",),
        ),
        "smooth": bad(
            "regularization_floor",
            "bump:.2",
            "label smoothing in the arguments; train loss flat and high while eval loss is lower",
            0,
            cfg={"smooth": rng.choice([0.5, 0.7])},
        ),
        "over": bad(
            "overfitting",
            "overfit",
            "eval loss turns up for good while train loss goes on falling",
            None,
            cfg={"eval": 20, "pool": rng.choice([48, 64]), "lr": cfg["lr"] * 1.5},
        ),
        "sumloss": bad(
            "loss_scaled_wrong",
            "bump:1",
            "train loss is larger than eval loss by about the number of targets in a batch",
            0,
            f={"sum_loss": 1},
            cfg={"clip": rng.choice([0.0, 1.0])},
        ),
        "lostopt": bad(
            "optimizer_state_lost",
            "bump:.03",
            "after the resume the loss hops and grad_norm/loss restart their transient; no optimizer file in the first checkpoint",
            s // 2,
            ident="partly",
            f={"launch1": {"cfg": {"stop": s // 2, "save": s // 2}}, "launch2": {"from": s // 2, "lost": ("optimizer.pt",)}},
        ),
        "clean": ok(
            "clean resume with everything restored", f={"launch1": {"cfg": {"stop": s // 2, "save": s // 2}}, "launch2": {"from": s // 2}}
        ),
        "schedreset": bad(
            "lr_schedule_reset",
            "always",
            "learning_rate starts again at warmup after the resume",
            s // 2,
            f={"launch1": {"cfg": {"stop": s // 2, "save": s // 2}}, "launch2": {"from": s // 2, "lost": ("scheduler.pt",)}},
        ),
        "crash": bad(
            "crash_and_restart",
            "always",
            "steps between the checkpoint and the stop are there twice",
            s // 2 + s // 5,
            f={
                "launch1": {"kill": s // 2 + s // 5, "sig": signal.SIGKILL, "cfg": {"save": s // 2}},
                "launch2": {"from": s // 2, "cfg": {"save": s // 2}, "kill": 10**9},
            },
            accept=("stopped_from_outside",),
        ),
        "h_cos": ok("cosine with restarts as configured", {"schedule": "cosine_with_restarts", "skw": {"num_cycles": 3}}),
        "h_small": ok("noisy loss: small batch", {"bs": max(4, cfg["bs"] // 4), "lr": cfg["lr"] * 0.7, "log": 1}, check="fine:.25"),
        "h_drop": ok("dropout keeps train loss above eval loss", {"model": {"dropout": 0.15}}, check="fine:.3"),
        "h_const": ok("constant rate, log every step", {"schedule": "constant", "warmup": 0, "log": 1}),
        "h_slowev": ok("pauses are evaluations", f={"slow_eval": 0.15}, cfg={"eval": 25}),
        "h_accum": ok("gradient accumulation done right", {"accum": 2}),
    }
