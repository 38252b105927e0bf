"""Lines of several processes in one log, as their epochs tell it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BY_TURNS = 3  # bound: a gap in the log behind a restart leaps once, another one twice


def leaps_back(epochs: Sequence[float] | NDArray[np.float64]) -> int:
    """How often the epoch leaps up over those between to where it was before it fell: a training that goes on from an earlier state passes through
    them, so that from `BY_TURNS` on two processes write by turns."""
    x = np.asarray(epochs, np.float64)
    return int(np.sum((np.diff(x) > 1) & (x[1:] <= np.maximum.accumulate(x)[:-1])))


def taken_up_again(counts: Sequence[int] | NDArray[np.int64]) -> int:
    """How often a count goes on at the number after one at which an earlier stretch had stopped, though others were written between: a resume begins
    within a stretch, so that from `BY_TURNS` on two processes write by turns."""
    waits: dict[int, int] = {}  # next number -> stretch
    now, due, stretches, again = -1, None, 0, 0
    for n in np.asarray(counts).tolist():
        if n != due:
            waits |= {} if due is None else {due: now}
            stretch = waits.pop(n, stretches)
            again += stretch < stretches
            stretches += stretch == stretches
            now = stretch
        due = n + 1
    return again
