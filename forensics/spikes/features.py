"""What tells a spike from noise, measured at one excursion: its size against what this stretch of the series does
anyway.

All features are unitless; heights are compared with five yardsticks, because each of them is blind somewhere:
the local noise (too small on smoothed logs), the spread of the very statistic that was tested (knows smoothing
and drift), the upper tail of the neighbourhood (knows heavy tails and two-sided crowds), its lower tail (noise
is rarely as one-sided as a spike), and the level itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import robust_sigma
from forensics.spikes.excursions import CROWD_SIGMA, LEVEL, Excursion, Floats, Ints, before
from forensics.spikes.medians import centred_median, rolling_median

AROUND = 150  # values on either side that make the neighbourhood; measured: 105 alike, 210 lose recall .921 for .937 (docs/thresholds.md)
SETTLED = 5  # values after the end that still belong to the event; not critical: 4 and 7 score alike (docs/thresholds.md)
NAMES = ("sigmas", "height", "spread", "upper", "lower", "crowd", "rank", "duration", "rise", "depth", "back", "early", "descent")


def features(y: Floats, found: Sequence[Excursion], chosen: Sequence[int] | None = None) -> Floats:
    """One row of NAMES for each chosen excursion of a scaled series (for each one, where none are chosen)."""
    chosen = range(len(found)) if chosen is None else chosen
    if not len(chosen):
        return np.empty((0, len(NAMES)))
    around = surroundings(y, found)
    return np.array([_row(found[i], around) for i in chosen])


def smoothness(y: Floats, e: Excursion) -> float:
    """Correlation of neighbouring values before an excursion: near 0 for raw losses, 0.6 and more for smoothed ones."""
    past = y[max(e.start - AROUND, 0) : e.start]
    r = past - centred_median(past, 2 * LEVEL + 1)
    return float(r[1:] @ r[:-1]) / max(float(r @ r), 1e-12) if len(r) > 1 else 0.0


def supposed(around: Around, others: Sequence[Excursion]) -> Floats:
    """One row of NAMES for each of `others`, as if it alone stood in the place of the last excursion."""
    own = {k: getattr(around, k).copy() for k in ("starts", "stops", "heights", "plain")}
    there = replace(around, **own)
    rows = []
    for e in others:
        for k, value in zip(own, (e.start, _stop(e, len(around.level)), e.height, e.sigmas >= CROWD_SIGMA), strict=True):
            own[k][-1] = value
        rows.append(_row(e, there))
    return np.array(rows)


def surroundings(y: Floats, found: Sequence[Excursion]) -> Around:
    level = before(rolling_median(y, LEVEL))
    each = [(e.start, _stop(e, len(y)), e.height, e.sigmas >= CROWD_SIGMA) for e in found]
    starts, stops, heights, plain = map(np.array, zip(*each, strict=True))
    return Around(level, y - level, y - centred_median(y, LEVEL), starts, stops, heights, plain)


@dataclass(frozen=True)
class Around:
    """What the excursions of a series are compared with; from `starts` to `plain` one entry an excursion."""

    level: Floats
    departure: Floats
    residual: Floats
    starts: Ints
    stops: Ints
    heights: Floats
    plain: NDArray[np.bool_]  # so large that each is an event
    yardsticks: dict[tuple[int, int], dict[tuple[tuple[int, int], ...], tuple[float, float, float]]] = field(default_factory=dict)
    """By stretch and by what is left out of it: a spike that is supposed in one place at many heights is measured against the same."""


def _stop(e: Excursion, n: int) -> int:
    return min(e.end if e.end is not None else n, n)


def _row(e: Excursion, around: Around) -> list[float]:
    starts, stops, heights = around.starts, around.stops, around.heights
    n = len(around.departure)
    stop = _stop(e, n)
    lo, hi = max(0, e.start - AROUND), min(n, min(stop, e.peak + AROUND) + AROUND)
    near = (stops > lo) & (starts < hi)
    larger = np.flatnonzero(near & ((heights > 1.2 * e.height) | around.plain) & (starts != e.start)).tolist()
    # a larger event close by is no yardstick, the one below it is
    beside = tuple((int(starts[i]), int(stops[i])) for i in larger if starts[i] > e.start or stops[i] <= e.start)
    of_place = around.yardsticks.setdefault((lo, hi), {})
    if (left_out := ((e.start, min(stop, hi)), *beside)) not in of_place:
        of_place[left_out] = _yardsticks(around, lo, hi, left_out)
    spread, upper, lower = of_place[left_out]
    alike = near & (heights >= 0.5 * e.height) & (np.abs(starts - e.start) <= AROUND)
    crowd = (int(alike.sum()) - 1) / max((hi - lo) / 50, 1.0)
    rank = float((heights[near] > e.height).sum())

    return [
        _log(e.sigmas),
        _log(e.height),
        _log(e.height / max(spread, e.sigma * 0.3, 1e-9)),
        _log(e.height / max(upper, 1e-9)),
        _log(e.height / max(lower, 1e-9)),
        math.log1p(crowd),
        math.log1p(rank),
        _log(float(stop - e.start)),
        _log(1.0 + e.peak - e.start),
        float(min(e.depth, 1)),
        float(e.end is not None),
        _log(60.0 / (e.start + 1)) if e.start < 60 else 0.0,
        math.log1p(min(max(float(around.level[max(e.start - LEVEL, 0)]) - e.level, 0.0) / e.height, 10.0)),
    ]


def _yardsticks(around: Around, lo: int, hi: int, left_out: Sequence[tuple[int, int]]) -> tuple[float, float, float]:
    """Spread, upper and lower tail of the values from `lo` to `hi` without these events and what settles behind them."""
    ours = np.ones(hi - lo, bool)
    for start, stop in left_out:
        ours[max(start - lo, 0) : max(stop + SETTLED - lo, 0)] = False
    d, r = around.departure[lo:hi][ours], around.residual[lo:hi][ours]
    if len(d) < 10:
        d, r = around.departure[lo:hi], around.residual[lo:hi]
    d = np.sort(d)
    middle, ninth = float(d[len(d) // 2]), len(d) // 10
    spread = max(robust_sigma(d, middle), (float(d[-1 - ninth]) - middle) / 1.28)
    r = np.sort(r)
    tail = max(len(d) // 60, 1)
    return spread, max(float(d[-tail]), float(r[-tail])), -float(r[tail - 1])


def _log(x: float) -> float:
    return math.log(min(max(x, 1e-3), 1e4))
