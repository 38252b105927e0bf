"""Sound training in a process that dies or is stopped: an error of the code, a full disk, a device that fails, a time limit."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path
from typing import Any

from making import console, files
from making.clock import Clock, stamp
from making.data import language
from making.expect import Expect
from making.models import Transformer
from making.training import Job, Row, settings

CALM = ["loss_spike", "nonfinite", "restart", "divergence"]


def _run(seed: int, last: int, day: str) -> tuple[list[Row], dict[str, Any]]:
    config = settings(max_steps=900, lr=4e-3, seed=seed, eval_every=0)
    job = Job(language(seed), Transformer, config, Clock(f"{day}T08:00:00", 0.38))
    return list(job.run(last=last)), config


def _raised(action: Any) -> list[str]:
    """The traceback of what an action really raises, with the script's name in place of this file's."""
    try:
        action()
    except Exception as e:
        frames = traceback.format_exception(e)
        return "".join(frames).replace(__file__, "train.py").rstrip().splitlines()
    raise AssertionError("nothing was raised")


def code_error_titan(out: Path) -> Expect:
    """At step 401 the hook that saves the best weights asks a dictionary for a key that it has not: a KeyError that nobody
    catches. Console in torchtitan's lines."""
    rows, _ = _run(91, 400, "2026-05-12")
    kept = {"train": rows[-1]["loss"]}
    files.lines(out / "train.log", [*console.titan(rows, "", 2), *_raised(lambda: kept["val"])])
    return Expect(
        top="code_error",
        findings=["ending"],
        clear=CALM,
        status="crashed",
        first_bad_step=400,
        emulated="torchtitan's console lines and the clock",
    )


def disk_full_titan(out: Path) -> Expect:
    """The checkpoint of step 360 does not fit on the disk any more: the system's error 28, really raised by a write to a
    device that is always full. Console in torchtitan's lines."""
    rows, config = _run(92, 360, "2026-05-13")
    files.config_yaml(out, config, "job_config.yaml")

    def save() -> None:
        with open("/dev/full", "wb", buffering=0) as f:
            f.write(b"weights")

    error = _raised(save) if os.path.exists("/dev/full") else [f"OSError: [Errno {errno.ENOSPC}] No space left on device"]
    files.lines(out / "rank0.log", [*console.titan(rows, "", 2), *error])
    return Expect(
        top="disk_full",
        findings=["ending"],
        clear=CALM,
        status="crashed",
        first_bad_step=360,
        emulated="torchtitan's console lines and the clock",
    )


def hardware_failure_megatron(out: Path) -> Expect:
    """After iteration 330 the GPU falls off the bus; the kernel's log lies beside the training's. Console in Megatron's lines."""
    rows, config = _run(93, 330, "2026-05-14")
    when = stamp(rows[-1]["time"] + 2)
    files.lines(out / "train.log", [*console.megatron(rows, config), "RuntimeError: CUDA error: unspecified launch failure"])
    files.lines(
        out / "dmesg.log",
        [
            f"[{when}] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            f"[{when}] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        ],
    )
    return Expect(
        top="hardware_failure", findings=["ending"], clear=CALM, status="crashed", first_bad_step=330,
        emulated="the failure, the kernel's and Megatron's lines and the clock",
    )  # fmt: skip


def stopped_from_outside_titan(out: Path) -> Expect:
    """The scheduler's time limit comes at step 380 of 900: nothing is wrong with the run. Console in torchtitan's lines, Slurm's
    own line at the end."""
    rows, config = _run(94, 380, "2026-05-15")
    files.config_yaml(out, config, "job_config.yaml")
    when = stamp(rows[-1]["time"] + 2).replace(" ", "T")[:19]
    line = f"slurmstepd: error: *** JOB 8812043 ON gpu-017 CANCELLED AT {when} DUE TO TIME LIMIT ***"
    files.lines(out / "slurm-8812043.out", [*console.titan(rows, "", 2), line])
    return Expect(
        top="stopped_from_outside", verdict="inconclusive", findings=["ending"], clear=CALM, status="stopped", first_bad_step=380,
        emulated="Slurm's and torchtitan's lines and the clock",
    )  # fmt: skip
