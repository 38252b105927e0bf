"""Where an excursion has its top, and where it is over: scans of a series, block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HUMP = 0.5  # unit: a half-life; a peak is over where half of its height is lost, as `half_life` in measurements counts it
BLOCK = 256  # unit: values looked at in one go; changes the time that it takes, no result


def first_at_most(x: Floats, start: int, limit: float) -> int | None:
    """First index from start on at which x is at most `limit`."""
    if start < len(x) and x[start] <= limit:  # most excursions are one value wide
        return start
    block = BLOCK
    while start < len(x):
        low = np.flatnonzero(x[start : start + block] <= limit)
        if len(low):
            return start + int(low[0])
        start += block
        block *= 4
    return None


def top_of_hump(y: Floats, settled: Floats, start: int, level: float, end: int | None) -> int:
    """The top of the first hump: the highest value before half of the height reached so far is lost again."""
    stop = max(end if end is not None else len(y), start + 1)
    peak, seen = start, start
    if stop == start + 1:
        return start
    while seen < stop:
        ahead = min(seen + BLOCK, stop)
        top = np.maximum.accumulate(y[seen:ahead])
        top = np.maximum(top, y[peak])
        over = np.flatnonzero(settled[seen:ahead] < level + HUMP * (top - level))
        over = over[over + seen > start]
        upto = seen + int(over[0]) if len(over) else ahead
        if upto > seen:
            best = seen + int(np.argmax(y[seen:upto]))
            peak = best if y[best] > y[peak] else peak
        if len(over):
            break
        seen = ahead
    return peak
