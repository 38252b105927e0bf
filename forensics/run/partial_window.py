"""A first value that a meter made: it had summed one step and was divided by the steps of a whole logging interval.

So where a process logs at its first step (0, or the one that it goes on from), and gradient norm and loss both lie below all that follows by the number of
steps between two rows. A loss that the first update drove up moves its gradient norm by another factor, if at all.
"""

from __future__ import annotations

import numpy as np

from forensics.run.robust import median
from forensics.run.series import Floats, Ints, Series, series
from parsers.tables import Run

NEXT = 5  # bound: values behind the first that show the level; fewer are lifted or lowered by one batch
NEAR = 0.25  # bound: batches differ by less, and the next wrong number of steps (half as many, twice as many) lies further off
LEAST = 3  # unit: steps of an interval, for at two a fall by half is of any batch


def first_is_partial(run: Run, s: Series, rows: Ints) -> bool:
    """Is the first of these rows of a loss such a value?"""
    norm = series(run, "grad.norm")
    if norm is None or len(rows) <= NEXT:
        return False
    steps = int(s.step[rows[1]] - s.step[rows[0]])
    beside = np.flatnonzero(norm.usable & (norm.step >= s.step[rows[0]]))
    if steps < LEAST or len(beside) <= NEXT or norm.step[beside[0]] != s.step[rows[0]]:
        return False
    return all(_off_by(x, steps) for x in (s.value[rows], norm.value[beside]))


def _off_by(x: Floats, steps: int) -> bool:
    """Do the values behind the first lie above it by this factor?"""
    return bool(x[0] > 0 and abs(np.log(median(x[1 : NEXT + 1]) / x[0] / steps)) <= np.log1p(NEAR))
