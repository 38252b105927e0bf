"""A loss that its logger adds up: a total that is not set back once a value was printed, or only every so many values, so that each value
is the sum of those before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import median, robust_sigma

Floats = NDArray[np.float64]
LEAST = 10  # bound: steps of a staircase, of which the first five and the last five are told apart
LEVEL = 5  # values whose median is the level before, and the height of the first steps
BIG = 0.25  # of the usual step of the staircase; what a loss moves from value to value by itself is smaller
TALL = 4.0  # times the level before; unit: five values in one
SAME = 0.25  # relative; bound: steps are as high as the loss was, which falls by less over five values, and by chance they are not
ROUNDS = 3  # bound: of a total that is set back; that each falls to one and the same place is no chance
CALM = 3.0  # times the scatter before; statistical: of two robust deviations of ten values each


class Total(NamedTuple):
    first: int  # row from which on values are added up
    rows: int = 0  # after which the total is set back each time; 0: never


def total(x: Floats) -> Total | None:
    """How a logger adds up the values that it prints; None where it does not."""
    if len(x) < 2 * LEAST or not np.isfinite(x).all() or x.min() <= 0:
        return None
    return _never_set_back(x) or _set_back(x)


def _set_back(x: Floats) -> Total | None:
    """A total that falls back every so many rows, each time to a first value that is no higher than what is added next, and only rises in between."""
    falls = np.flatnonzero(np.diff(x) < 0) + 1
    rows = int(falls[0]) if len(falls) >= ROUNDS else 0
    if rows < LEVEL or not np.array_equal(falls, np.arange(rows, len(x), rows)):
        return None
    whole = x[: len(x) // rows * rows].reshape(-1, rows)
    added = np.diff(whole, axis=1)
    even = np.abs(whole[1:, 0] / np.median(added[1:, :LEVEL], axis=1) - 1) <= SAME
    return Total(0, rows) if even.all() and (added > 0).all() else None


def _never_set_back(x: Floats) -> Total | None:
    """Each value is the one before plus a loss like those before; None where the values only rise.

    A loss that runs away rises ever faster or levels off, and its steps have nothing to do with its level.
    """
    rises = np.diff(x)
    usual = median(rises[-LEAST:])
    small = np.flatnonzero(rises <= BIG * usual)
    first = int(small[-1]) + 2 if len(small) else 1  # the row of the first rise of the staircase
    if usual <= 0 or len(x) - first < LEAST:
        return None
    before, steps = x[max(first - LEVEL, 0) : first], rises[first - 1 :]
    level = median(before)
    alike = abs(median(steps[:LEVEL]) / level - 1) <= SAME and usual <= (1 + SAME) * level
    if not alike or x[-1] < TALL * level:
        return None
    calm = first < LEAST or robust_sigma(np.diff(steps)) <= CALM * robust_sigma(np.diff(x[:first][-2 * LEAST :]))
    return Total(first) if calm else None


def taken_apart(x: Floats, of: Total) -> Floats:
    """The values that were added up."""
    alone = np.concatenate([x[: max(of.first, 1)], np.diff(x[max(of.first, 1) - 1 :])])
    if of.rows:
        alone[:: of.rows] = x[:: of.rows]
    return alone
