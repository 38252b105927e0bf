"""Whether an excursion is one of many of its kind that come and go all through a run: the tail of its noise, not an event.

Losses of single batches, of few samples, of points drawn anew or of an adversary have such tails. What sets an event apart is
that the run shows nothing as high and as wide elsewhere, or only in one part of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forensics.run.robust import EXCEEDS, error_of_median, median
from forensics.spikes.excursions import Excursion, Floats, candidates
from forensics.spikes.medians import rolling_median

ALIKE = 0.5  # unit: half as high, and half as wide; a tail that falls off by any usual law has more of these than of the height itself
PARTS, IN = 4, 3  # quarters of the run, and how many of them have to show one
THREE = 3  # bound: values that make a median
LEVEL = 100  # bound: values of a level, as many as the detector of level shifts takes; the odd ones of a noisy loss do not move it
QUARTILES = (
    1.349  # sigmas of normal noise that the quartiles lie apart; of two levels they are the levels, of which the median deviation sees one
)
MANY = 8  # statistical: eight that may fall anywhere all lie in two quarters once in 43


def like_each(y: Floats, events: Sequence[Excursion]) -> list[int]:
    """How many other excursions of a scaled series that come back are at least half as high and half as wide as each event; 0 where they
    are few, or missing in half of the series."""
    if not events:
        return []
    others = _shapes(y)
    return [_like_it(y, e, others) for e in events]


def _like_it(y: Floats, e: Excursion, others: Floats) -> int:
    until, wide = level_again(y, e), ALIKE * _width(y, e)
    start, end, peak, height, width = others.T
    at = peak[((end <= e.start) | (start >= until)) & (height >= ALIKE * e.height) & (width >= wide)]
    parts = len(np.unique(at.astype(np.int64) * PARTS // len(y)))
    return len(at) if len(at) >= MANY and parts >= IN else 0


def level_again(y: Floats, e: Excursion) -> int:
    """Where an event is over: its end, or, of one that has none, where the level of later values first is down at that before it; the length of the
    series where it never is. A loss that wanders with its data comes by there."""
    if e.end is not None:
        return e.end
    down = np.flatnonzero(rolling_median(y[e.peak :], LEVEL)[LEVEL:] <= e.level)
    return e.peak + LEVEL + int(down[0]) if len(down) else len(y)


def stays_level(y: Floats, e: Excursion) -> bool:
    """Whether the level of the hundred values after an event without an end is that of the hundred before it, which had no trend, as far as they scatter:
    a run of low values right before it, as a loss of two kinds of batches has, is no level to come back to."""
    before, after = y[max(e.start - LEVEL, 0) : e.start], y[e.peak + 1 : e.peak + 1 + LEVEL]
    if e.end is not None or min(len(before), len(after)) < LEVEL // 2 or not (np.isfinite(before).all() and np.isfinite(after).all()):
        return False
    early, late = np.array_split(before, 2)
    noise = float(np.diff(np.percentile(before, (25, 75)))[0]) / QUARTILES
    trend, change = abs(median(late) - median(early)), median(after) - median(before)
    return bool(trend <= _error(noise, early, late) and change <= _error(noise, before, after))


def _error(noise: float, a: Floats, b: Floats) -> float:
    """What two medians differ by, by chance, once in 370."""
    return EXCEEDS * math.hypot(error_of_median(noise, len(a)), error_of_median(noise, len(b)))


def _shapes(y: Floats) -> Floats:
    """Start, end, peak, height and width of each excursion that comes back, one a row."""
    known = [(o.start, o.end, o.peak, o.height, _width(y, o)) for o in candidates(y) if o.end is not None]
    return np.array(known, np.float64).reshape(-1, 5)


def _width(y: Floats, e: Excursion) -> int:
    """Values in the upper half of an excursion; of one without an end, those until three in a row are mostly below it."""
    half = e.level + 0.5 * e.height
    if e.end is None:
        below = np.flatnonzero(rolling_median(y[e.peak :], THREE)[THREE - 1 :] < half)
        return e.peak - e.start + (int(below[0]) + 1 if len(below) else len(y) - e.peak)
    return 1 if e.end == e.start + 1 else int((y[e.start : e.end] >= half).sum())
