"""A loss that its logger adds up: a total that is not set back once a value was printed, so that each value is the sum of those before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import robust_sigma

Floats = NDArray[np.float64]
LEAST = 10  # bound: steps of a staircase, of which the first five and the last five are told apart
LEVEL = 5  # values whose median is the level before, and the height of the first steps
BIG = 0.25  # of the usual step of the staircase; what a loss moves from value to value by itself is smaller
TALL = 4.0  # times the level before; unit: five values in one
SAME = 0.25  # relative; bound: steps are as high as the loss was, which falls by less over five values, and by chance they are not
CALM = 3.0  # times the scatter before; statistical: of two robust deviations of ten values each


def begins(x: Floats) -> int | None:
    """The row from which on each value is the one before plus a loss like those before; None where none is, or where the values only rise.

    A loss that runs away rises ever faster or levels off, and its steps have nothing to do with its level.
    """
    if len(x) < 2 * LEAST or not np.isfinite(x).all() or x.min() <= 0:
        return None
    rises = np.diff(x)
    usual = float(np.median(rises[-LEAST:]))
    small = np.flatnonzero(rises <= BIG * usual)
    first = int(small[-1]) + 2 if len(small) else 1  # the row of the first rise of the staircase
    if usual <= 0 or len(x) - first < LEAST:
        return None
    before, steps = x[max(first - LEVEL, 0) : first], rises[first - 1 :]
    level = float(np.median(before))
    alike = abs(float(np.median(steps[:LEVEL])) / level - 1) <= SAME and usual <= (1 + SAME) * level
    if not alike or x[-1] < TALL * level:
        return None
    calm = first < LEAST or robust_sigma(np.diff(steps)) <= CALM * robust_sigma(np.diff(x[:first][-2 * LEAST :]))
    return first if calm else None


def taken_apart(x: Floats, first: int) -> Floats:
    """The values that were added up from row `first` on."""
    return np.concatenate([x[:first], np.diff(x[first - 1 :])])
