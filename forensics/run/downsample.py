"""M4, the downsampling that keeps every extreme."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run.series import Floats, Ints

DIGITS = 7  # significant ones of a point: a 32-bit float holds no more


def m4(step: Ints, value: Floats, columns: int) -> list[list[Any]]:
    """At most 4 points a column (first, last, lowest, highest), so that no spike is lost. Jugel et al., VLDB 2014.

    Non-finite values are kept as points of their own: a NaN is what the reader looks for. (reports/chart.py thins once more, to
    the columns of its panel, in its own words: reports imports nothing of ours.)
    """
    n = len(step)
    if n <= 4 * columns:
        chosen = np.arange(n)
    else:
        span = max(int(step.max()) - int(step.min()), 1)
        column = ((step - step.min()).astype(np.float64) * (columns - 1) / span).astype(np.int64)
        order = np.argsort(column, kind="stable") if (column[1:] < column[:-1]).any() else np.arange(n)
        starts = np.flatnonzero(np.r_[True, np.diff(column[order]) > 0])
        low = np.where(np.isfinite(value), value, np.inf)[order]
        high = np.where(np.isfinite(value), value, -np.inf)[order]
        ends = np.r_[starts[1:], n]
        picks = [order[starts], order[ends - 1]]
        picks.append(order[_arg_in_groups(low, starts, ends)])
        picks.append(order[_arg_in_groups(-high, starts, ends)])
        odd = np.flatnonzero(~np.isfinite(value))
        picks.append(odd[:: max(1, len(odd) // columns)])
        chosen = np.unique(np.concatenate(picks))
    return [[s, v] for s, v in zip(step[chosen].tolist(), significant(value[chosen], DIGITS).tolist(), strict=True)]


def significant(x: Floats, digits: int) -> Floats:
    """The values rounded to so many significant digits: the floats that these decimals would be read as, and NaN and infinity as they are.

    Below 1e-15 and above 1e22, where a power of ten is no exact float, the last bit may differ.
    """
    size = np.abs(x)
    exponent = np.floor(np.log10(size, out=np.zeros(len(x)), where=np.isfinite(x) & (size > 0)))
    places = digits - 1 - exponent
    with np.errstate(all="ignore"):
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        rounded = np.rint(x * up / down) * down / up
    return np.where(np.isfinite(rounded), rounded, x)


def _arg_in_groups(x: Floats, starts: Ints, ends: Ints) -> Ints:
    """Index of the smallest value within each group [start, end)."""
    smallest = np.minimum.reduceat(x, starts)
    group = np.repeat(np.arange(len(starts)), ends - starts)
    hits = np.flatnonzero(x == smallest[group])
    return np.asarray(hits[np.flatnonzero(np.diff(group[hits], prepend=-1))], dtype=np.int64)
