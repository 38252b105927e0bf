"""The shape of a learning rate: its peak, its warmup, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.run import proper_end
from forensics.run.series import Series, series
from parsers.tables import Run

ROUNDED = 0.01  # unit: a hundredth, of rates that were printed with two digits or more
FEW, HALF = 8, 0.5  # bound: as many values as the plateau detector wants; unit: half of the last rate


@dataclass(frozen=True)
class Shape:
    """What the rate did: peak, steps of warmup, where it ended (as a share of the peak), constant or not."""

    peak: float
    peak_step: int
    warmup: int
    final: float
    constant: bool


def still_warming(run: Run) -> bool:
    """Whether a log that does not say that the run is over ends in its warmup: every value of the rate lies above the one before, the first below half of
    the last. How high it was to go is not known."""
    s = series(run, "lr")
    x = s.value[s.usable] if s is not None else np.zeros(0)
    return len(x) >= FEW and bool((np.diff(x) > 0).all()) and x[0] < HALF * x[-1] and not proper_end.finished(run)


def shape(run: Run) -> Shape | None:
    """The shape of the rate over the surviving rows; None where it was not logged."""
    s = series(run, "lr")
    if s is None:
        return None
    keep = s.usable
    step, x = s.step[keep], s.value[keep]
    if len(x) < 3 or x.max() <= 0:
        return None
    peak = float(x.max())
    top = int(np.flatnonzero(x >= 0.99 * peak)[0])
    rising = top > 0 and x[0] < 0.9 * peak
    return Shape(peak, int(step[top]), int(step[top] - step[0]) if rising else 0, float(x[-1]) / peak, bool(x.min() > 0.99 * peak))


def asked_twice(s: Series, i: int) -> bool:
    """One value as far below the rate behind it as that is below the rate before it, at a milestone: what ``get_lr()`` of PyTorch's schedulers gives at the
    step at which the rate changes, the factor once more (torch/optim/lr_scheduler.py warns of it and has ``get_last_lr()`` for it)."""
    before, now, behind = s.value[i - 2 : i + 1] if i >= 2 else (0.0, 0.0, 0.0)
    return bool(0 < now < behind < before and abs(now * before / behind**2 - 1) <= ROUNDED)
