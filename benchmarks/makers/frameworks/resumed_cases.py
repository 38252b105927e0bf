"""Cases of two launches that several engines share."""

import signal

from common import bad, ok


def resumed(cfg):
    s, lr = cfg["steps"], cfg["lr"]
    half = s // 2
    keep = {"ckpt": half}

    def two(first=None, second=None):
        return {"launch1": dict(stop=half, **(first or {})), "launch2": dict(start=half, **(second or {}))}

    return {
        "lost": bad(
            "optimizer_state_lost",
            "bump:.1",
            "after the resume the loss hops and comes back",
            half,
            f=two(second={"lost": 1}),
            cfg=keep,
            ident="partly",
        ),
        "reset": bad(
            "lr_schedule_reset",
            "always",
            "the rate starts again at warmup after the resume",
            half,
            f=two(second={"sched_reset": 1}),
            cfg=keep,
        ),
        "config": bad(
            "config_changed",
            "bump:.1",
            "second launch has another rate in its config; loss changes with it",
            half,
            f=two(second={"cfg": {"lr": lr * cfg.get("hot", 60) / 2}}),
            cfg=keep,
            accept=("lr_too_high", "lr_jump"),
        ),
        "bsize": bad(
            "batch_size_changed",
            "always",
            "second launch has another batch size; loss noise and speed change with it",
            half,
            f=two(second={"cfg": {"bs": 2}}),
            cfg=keep,
            ident="partly",
            accept=("config_changed",),
        ),
        "crash": bad(
            "crash_and_restart",
            "always",
            "steps between checkpoint and stop are in the log twice",
            half + s // 6,
            f={"launch1": {"kill": half + s // 6, "sig": signal.SIGKILL}, "launch2": {"start": half}},
            cfg=keep,
            accept=("stopped_from_outside",),
        ),
        "h_resume": ok("clean resume with everything restored", f=two(), cfg=keep),
    }
