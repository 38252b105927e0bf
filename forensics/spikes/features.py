"""What tells a spike from noise, measured at one excursion: its size against what this stretch of the series does
anyway.

All features are unitless; heights are compared with five yardsticks, because each of them is blind somewhere:
the local noise (too small on smoothed logs), the spread of the very statistic that was tested (knows smoothing
and drift), the upper tail of the neighbourhood (knows heavy tails and two-sided crowds), its lower tail (noise
is rarely as one-sided as a spike), and the level itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import robust_sigma
from forensics.spikes.excursions import CROWD_SIGMA, LEVEL, Excursion, Floats, Ints, before
from forensics.spikes.medians import centred_median, rolling_median

AROUND = 150  # values on either side that make the neighbourhood; measured: 105 alike, 210 lose recall .921 for .937 (docs/thresholds.md)
SETTLED = 5  # values after the end that still belong to the event; not critical: 4 and 7 score alike (docs/thresholds.md)
NAMES = ("sigmas", "height", "spread", "upper", "lower", "crowd", "rank", "duration", "rise", "depth", "back", "early", "descent")


Extents = tuple[Ints, Ints, Floats, NDArray[np.bool_]]


def features(y: Floats, found: Sequence[Excursion], chosen: Sequence[int] | None = None) -> Floats:
    """One row of NAMES for each chosen excursion of a scaled series (for each one, where none are chosen)."""
    chosen = range(len(found)) if chosen is None else chosen
    if not len(chosen):
        return np.empty((0, len(NAMES)))
    around = surroundings(y, found)
    return _rows([found[i] for i in chosen], around, _tiled(around.each, len(chosen)))


def smoothness(y: Floats, e: Excursion) -> float:
    """Correlation of neighbouring values before an excursion: near 0 for raw losses, 0.6 and more for smoothed ones."""
    past = y[max(e.start - AROUND, 0) : e.start]
    r = past - centred_median(past, 2 * LEVEL + 1)
    return float(r[1:] @ r[:-1]) / max(float(r @ r), 1e-12) if len(r) > 1 else 0.0


def supposed(around: Around, others: Sequence[Excursion]) -> Floats:
    """One row of NAMES for each of `others`, as if it alone stood in the place of the last excursion."""
    each = _tiled(around.each, len(others))
    for k, e in enumerate(others):
        for x, value in zip(each, _extent(e, len(around.level)), strict=True):
            x[k, -1] = value
    return _rows(others, around, each)


def surroundings(y: Floats, found: Sequence[Excursion]) -> Around:
    level = before(rolling_median(y, LEVEL))
    starts, stops, heights, plain = map(np.array, zip(*(_extent(e, len(y)) for e in found), strict=True))
    return Around(level, y - level, y - centred_median(y, LEVEL), (starts, stops, heights, plain))


@dataclass(frozen=True)
class Around:
    """What the excursions of a series are compared with."""

    level: Floats
    departure: Floats
    residual: Floats
    each: Extents
    """Of each excursion: first value, the value behind its last, height, whether it is so large that it is an event by itself."""
    yardsticks: dict[tuple[int, int], dict[tuple[tuple[int, int], ...], tuple[float, float, float]]] = field(default_factory=dict)
    """By stretch and by what is left out of it: a spike that is supposed in one place at many heights is measured against the same."""


def _tiled(each: Extents, rows: int) -> Extents:
    starts, stops, heights, plain = each
    return np.tile(starts, (rows, 1)), np.tile(stops, (rows, 1)), np.tile(heights, (rows, 1)), np.tile(plain, (rows, 1))


def _extent(e: Excursion, n: int) -> tuple[int, int, float, bool]:
    return e.start, _stop(e, n), e.height, e.sigmas >= CROWD_SIGMA


def _stop(e: Excursion, n: int) -> int:
    return min(e.end if e.end is not None else n, n)


def _rows(own: Sequence[Excursion], around: Around, each: Extents) -> Floats:
    """A row for each of `own`; `each` has a row for each of them, and a column for each excursion of the series."""
    starts, stops, heights, plain = each
    n = len(around.departure)
    start, peak, stop = np.array([(e.start, e.peak, _stop(e, n)) for e in own]).T[..., None]
    height, level, noise, sigmas = np.array([(e.height, e.level, e.sigma, e.sigmas) for e in own]).T
    lo, hi = np.maximum(start - AROUND, 0), np.minimum(np.minimum(stop, peak + AROUND) + AROUND, n)
    near, higher = (stops > lo) & (starts < hi), height[:, None]
    # a larger event close by is no yardstick, the one below it is
    beside = near & ((heights > 1.2 * higher) | plain) & (starts != start) & ((starts > start) | (stops <= start))
    alike = (near & (heights >= 0.5 * higher) & (np.abs(starts - start) <= AROUND)).sum(axis=1)
    start, peak, stop, lo, hi = (x[:, 0] for x in (start, peak, stop, lo, hi))
    own_places = zip(lo.tolist(), hi.tolist(), start.tolist(), np.minimum(stop, hi).tolist(), strict=True)
    others = [
        tuple(zip(a[at].tolist(), b[at].tolist(), strict=True)) if at.any() else () for a, b, at in zip(starts, stops, beside, strict=True)
    ]
    of_places = [_yardsticks(around, a, b, ((c, d), *left)) for (a, b, c, d), left in zip(own_places, others, strict=True)]
    spread, upper, lower = np.array(of_places).T
    return np.column_stack(
        [
            _log(sigmas),
            _log(height),
            _log(height / np.maximum(spread, np.maximum(noise * 0.3, 1e-9))),
            _log(height / np.maximum(upper, 1e-9)),
            _log(height / np.maximum(lower, 1e-9)),
            np.log1p((alike - 1) / np.maximum((hi - lo) / 50, 1.0)),
            np.log1p((near & (heights > higher)).sum(axis=1)),
            _log(stop - start),
            _log(1.0 + peak - start),
            np.array([float(min(e.depth, 1)) for e in own]),
            np.array([float(e.end is not None) for e in own]),
            np.where(start < 60, _log(60.0 / (start + 1)), 0.0),
            np.log1p(np.clip((around.level[np.maximum(start - LEVEL, 0)] - level) / height, 0.0, 10.0)),
        ]
    )


def _yardsticks(around: Around, lo: int, hi: int, left_out: tuple[tuple[int, int], ...]) -> tuple[float, float, float]:
    """Spread, upper and lower tail of the values from `lo` to `hi` without these events and what settles behind them."""
    of_place = around.yardsticks.setdefault((lo, hi), {})
    if left_out not in of_place:
        of_place[left_out] = _measured(around, lo, hi, left_out)
    return of_place[left_out]


def _measured(around: Around, lo: int, hi: int, left_out: Sequence[tuple[int, int]]) -> tuple[float, float, float]:
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


def _log(x: NDArray[Any]) -> Floats:
    return np.asarray(np.log(np.clip(x, 1e-3, 1e4)))
