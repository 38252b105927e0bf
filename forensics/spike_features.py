"""What tells a spike from noise, measured at one excursion: its size against what this stretch of the series does anyway.

All features are unitless; heights are compared with five yardsticks, because each of them is blind somewhere: the local
noise (too small on smoothed logs), the spread of the very statistic that was tested (knows smoothing and drift), the
upper tail of the neighbourhood (knows heavy tails and two-sided crowds), its lower tail (noise is rarely as one-sided as a spike),
and the level itself.
"""

from __future__ import annotations

import numpy as np

from forensics.excursions import CROWD_SIGMA, LEVEL, Excursion, Floats, before, centred_median, rolling_median

AROUND = 150  # values on either side that make the neighbourhood
SETTLED = 5  # values after the end that still belong to the event
NAMES = ("sigmas", "height", "spread", "upper", "lower", "crowd", "rank", "duration", "rise", "depth", "back", "early", "descent")


def features(y: Floats, found: list[Excursion]) -> Floats:
    """One row of NAMES for each excursion of a scaled series."""
    if not found:
        return np.empty((0, len(NAMES)))
    departure = y - before(rolling_median(y, LEVEL))
    residual = y - centred_median(y, LEVEL)
    starts = np.array([e.start for e in found])
    stops = np.array([_stop(e, len(y)) for e in found])
    heights = np.array([e.height for e in found])
    level = before(rolling_median(y, LEVEL))
    plain = np.array([e.sigmas >= CROWD_SIGMA for e in found])
    return np.array([_row(e, level, departure, residual, starts, stops, heights, plain) for e in found])


def _stop(e: Excursion, n: int) -> int:
    return min(e.end if e.end is not None else n, n)


def _row(e: Excursion, level: Floats, departure: Floats, residual: Floats, starts: np.ndarray, stops: np.ndarray, heights: Floats,
         plain: np.ndarray) -> list[float]:
    n = len(departure)
    stop = _stop(e, n)
    lo, hi = max(0, e.start - AROUND), min(n, min(stop, e.peak + AROUND) + AROUND)
    ours = np.ones(hi - lo, bool)
    ours[e.start - lo : min(stop, hi) + SETTLED - lo] = False
    near = (stops > lo) & (starts < hi)
    for i in np.flatnonzero(near & ((heights > 1.2 * e.height) | plain) & (starts != e.start)):
        if starts[i] > e.start or stops[i] <= e.start:  # a larger event close by is no yardstick, the one below it is
            ours[max(starts[i] - lo, 0) : max(stops[i] + SETTLED - lo, 0)] = False
    d, r = departure[lo:hi][ours], residual[lo:hi][ours]
    if len(d) < 10:
        d, r = departure[lo:hi], residual[lo:hi]
    d = np.sort(d)
    middle, ninth = float(d[len(d) // 2]), len(d) // 10
    spread = max(1.4826 * float(np.median(np.abs(d - middle))), (float(d[-1 - ninth]) - middle) / 1.28)
    r = np.sort(r)
    tail = max(len(d) // 60, 1)
    upper, lower = max(float(d[-tail]), float(r[-tail])), -float(r[tail - 1])
    alike = near & (heights >= 0.5 * e.height) & (np.abs(starts - e.start) <= AROUND)
    crowd = (int(alike.sum()) - 1) / max((hi - lo) / 50, 1.0)
    rank = float((heights[near] > e.height).sum())

    def log(x: float) -> float:
        return float(np.log(min(max(x, 1e-3), 1e4)))

    return [
        log(e.sigmas), log(e.height), log(e.height / max(spread, e.sigma * 0.3, 1e-9)), log(e.height / max(upper, 1e-9)),
        log(e.height / max(lower, 1e-9)), float(np.log1p(crowd)), float(np.log1p(rank)), log(float(stop - e.start)), log(1.0 + e.peak - e.start),
        float(min(e.depth, 1)), float(e.end is not None), log(60.0 / (e.start + 1)) if e.start < 60 else 0.0,
        float(np.log1p(min(max(float(level[max(e.start - LEVEL, 0)]) - e.level, 0.0) / e.height, 10.0))),
    ]  # fmt: skip
