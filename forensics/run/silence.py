"""Silence at the end: the job outlived its last step."""

from __future__ import annotations

import numpy as np

from forensics.run import endings, proper_end
from forensics.run.once import once
from forensics.run.series import arrays
from parsers.tables import Run

_SIGNS = ("signal", "scheduler", "exit", "hang", "nccl", "warning", "console", "alive")  # lines that a job writes while it does no steps
SILENCE_SECONDS, SILENCE_TIMES = 120.0, 50.0


@once
def silence(run: Run) -> tuple[float, float, str] | None:
    """(seconds, usual seconds between steps, what broke the silence) between the last step and the last sign of life.

    Signs of life are rows without a step (a monitor that says that the process is alive) and lines of any log. None
    where the log has no clock.
    """
    columns = arrays(run)
    time = columns["time"]
    stepped = columns["stepped"] & np.isfinite(time)
    if stepped.sum() < 10:
        return None
    ticks = time[stepped]
    last = float(ticks.max())
    pauses = np.diff(ticks)
    pauses = pauses[pauses > 0] if (pauses >= 0).all() else np.diff(np.unique(ticks))
    usual = float(np.median(pauses)) if len(pauses) else 0.0
    signs = [(e["time"], e["text"]) for e in endings.events(run, *_SIGNS) if e["time"] is not None]
    alive = time[np.isfinite(time) & ~stepped]
    signs += [(float(alive.max()), "the process was still watched and alive")] if len(alive) else []
    until, what = max(signs, default=(last, ""), key=lambda sign: sign[0])
    return max(until - last, 0.0), usual, what


def stalled(run: Run) -> bool:
    """True where the job outlived its last step by at least two minutes and fifty usual steps, and no word says that it came to its own end."""
    end = proper_end.finish(run)
    if end is not None and end.how in ("said", "early"):
        return False
    found = silence(run)
    return found is not None and found[0] >= max(SILENCE_SECONDS, SILENCE_TIMES * found[1])
