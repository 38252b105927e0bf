"""Finds upward excursions of a noisy, drifting series: pure numpy in, plain records out.

The level before an event is the median of the 15 values before it, the noise 1.4826 x the median absolute
deviation of 80 values from their running median of 9, never less than 0.35 x the median step between
neighbours. An excursion begins where it leaves level + 3 sigma and ends where a value and the median of it and
the two after it are back within 2 sigma, or within a twentieth of the height where the noise is smaller still.
``candidates`` lists whatever reaches 5 sigma, with what rides on the tail of a long one. Positive series are judged on the log scale, where noise is multiplicative. Values that are not finite
count as the highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import SIGMA, last_digit, median
from forensics.spikes.medians import centred_median, rolling_median
from forensics.spikes.once_per_series import once_per_series
from forensics.spikes.tops import first_at_most, top_of_hump

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Windows: docs/thresholds.md, and docs/spikes.md for the scores on annotated curves that they were chosen by.
LEVEL, NOISE, RESIDUAL = 15, 80, 9  # statistical: medians with errors of 1/3 and 1/7 sigma; nine values carry no trend
PEAK_SIGMA = 6.0  # statistical: of a million normal values none; heavy tails are what CROWD_SIGMA and the classes are for
START_SIGMA, END_SIGMA = 3.0, 2.0  # statistical: chance is above once in 740, below 2 sigma 98 times in 100
CANDIDATE_SIGMA, CANDIDATE_LEAST = 5.0, 0.007  # measured: docs/thresholds.md; the classes judge what passes
LEAST = 0.01  # unit: a percent, which curves show to the eye; what is smaller costs no run
CROWD_SIGMA = 25.0  # measured: docs/thresholds.md; above it the tail of no logged noise reaches
WARMUP = 8  # values needed before anything can be judged: half of LEVEL, a median with an error of half a sigma
END_SHARE, TOUCHING, TOUCHED = 0.05, 1, 0.5  # back: a 20th of the height (3 time constants of a decay); one event: neighbours, half as high
TAIL, DEEPEST = 4, 3  # bound: fewer values make no level and no return; deeper than this no annotated curve goes
NEGLIGIBLE = 1e-3  # unit: a thousandth of the first loss; below it a ratio of losses says nothing
HEAD = 1000  # unit: values looked at first, for time alone; where LEVEL of them are positive the others need no look
LEAST_SIGMA = 0.0005  # bound: what a loss of 1 printed with three digits is rounded by; no loss is less noisy
NOT_FINITE = 5.0  # bound: what a NaN stands above the highest value, in ln: 150 times, above every finite spike
FEW = 600  # bound: more candidates in one series are noise of a kind that no single one can be told from, and take seconds
SEEN = 0.95  # of the values can carry a spike of the size that a check says it could have seen


@dataclass(frozen=True)
class Excursion:
    """Indices into the series; ``end`` is None where the series never came back."""

    start: int
    peak: int
    end: int | None
    level: float  # of the values before it
    sigma: float  # local noise there, in the unit of the values
    height: float  # peak - level; inf for a non-finite peak
    censored: bool = False  # the series ends (or a restart cuts it) before it could come back
    depth: int = 0  # 1: on the tail of another one, 2: on the tail of that

    @property
    def sigmas(self) -> float:
        return self.height / self.sigma if self.sigma > 0 else float("inf")


def before(x: Floats) -> Floats:
    """Each value replaced by the one before it; the first stands for itself."""
    return np.concatenate([x[:1], x[:-1]])


def noise_floor(x: Floats) -> float:
    """0.35 x the median absolute difference of neighbours: what no local estimate may fall below."""
    steps = np.abs(np.diff(x[np.isfinite(x)]))
    return 0.35 * median(steps) if len(steps) else 0.0


@once_per_series
def local_noise(x: Floats) -> Floats:
    """Noise of the values before each one (that one not included), robust against drift and spikes."""
    residual = np.abs(x - centred_median(x, RESIDUAL))
    mad = SIGMA * rolling_median(residual, NOISE)
    return np.maximum(before(mad), max(noise_floor(x), LEAST_SIGMA))


def scaled(values: Floats) -> tuple[Floats, bool]:
    """(series to judge, whether it is the log): ln where most are positive and none negative, else over their size.

    Values that are not finite are put above the highest one.
    """
    finite = np.isfinite(values)
    x = values[finite]
    y = np.full(len(values), np.nan)
    if not len(x):
        return y, False
    logs = bool((x >= 0).all()) and int((x > 0).sum()) * 2 > len(x)
    if logs:
        y[finite] = np.log(x + negligible(x))
    else:
        y[finite] = x / unit(x)
    if not finite.all():
        y[~finite] = y[finite].max() + NOT_FINITE
    return y, logs


@once_per_series
def negligible(x: Floats) -> float:
    """What is added before the log: a thousandth of where the series began, or the last printed digit, below which all values are alike."""
    for values in (x[:HEAD], x):
        positive = values[np.isfinite(values) & (values > 0)][:LEVEL]
        if len(positive) == LEVEL:
            break
    return max(NEGLIGIBLE * median(positive), last_digit(x)) if len(positive) else 0.0


def unit(x: Floats) -> float:
    """The size that values which can be negative are measured by: their median absolute value, or the mean of it."""
    size = np.abs(x[np.isfinite(x)])
    return max(median(size) or float(size.mean()), 1e-12)


@once_per_series
def candidates(y: Floats) -> tuple[Excursion, ...]:
    """Everything that stands 5 sigma and 0.7 % above its local level, in order of its start; `y` from ``scaled``."""
    if len(y) < WARMUP + 2:
        return ()
    level, noise = before(rolling_median(y, LEVEL)), local_noise(y)
    found = _scan(y, level, noise, WARMUP)
    finished = [e for e in found if e.end is not None and e.sigmas > 8]
    if finished:  # again, with level and noise of what is left without these
        calm = np.ones(len(y), bool)
        for e in finished:
            calm[e.start : e.end] = False
        last = np.maximum(np.cumsum(calm) - calm - 1, 0)  # the last calm value before each one
        quiet = y[calm]
        spread = SIGMA * rolling_median(np.abs(quiet - centred_median(quiet, RESIDUAL)), NOISE)
        sigma = np.maximum(spread[last], max(noise_floor(y), LEAST_SIGMA))
        found = _scan(y, rolling_median(quiet, LEVEL)[last], sigma, WARMUP)
    todo = list(found)
    while todo and len(found) < FEW:
        e = todo.pop()
        first, stop = e.peak + 1, e.end if e.end is not None else len(y)
        if stop - first < TAIL or e.depth >= DEEPEST:
            continue
        tail = y[first:stop]
        inner = _scan(tail, before(rolling_median(tail, LEVEL)), noise[first:stop], TAIL - 1)
        moved = [_shifted(i, first, e.depth + 1, e.end) for i in inner]
        found += moved
        todo += moved
    return tuple(sorted(found, key=lambda e: (e.start, e.depth)))


def _shifted(e: Excursion, by: int, depth: int, end: int | None) -> Excursion:
    """A find in a tail as one of the whole series; what does not come back in the tail ends where the tail ends."""
    return replace(e, start=e.start + by, peak=e.peak + by, end=e.end + by if e.end is not None else end, depth=depth)


def _scan(y: Floats, level: Floats, sigma: Floats, first: int) -> list[Excursion]:
    high = np.flatnonzero((y > level + CANDIDATE_SIGMA * sigma) & (y > level + CANDIDATE_LEAST))
    settled = np.maximum(y, middle_of_three(y))
    found: list[Excursion] = []
    past = first
    for i in high:
        if i < past:
            continue
        start = int(i)
        while start > past and y[start - 1] > level[i] + START_SIGMA * sigma[i]:
            start -= 1
        base, noise = float(level[start]), float(sigma[start])
        end = first_at_most(settled, start + 1, base + END_SIGMA * noise)
        peak = top_of_hump(y, settled, start, base, end)
        height = float(y[peak]) - base
        if end is None or end - peak > TAIL:
            end = first_at_most(settled, peak + 1, base + max(END_SIGMA * noise, END_SHARE * height))
        past = end if end is not None else len(y)
        if found and found[-1].end is not None and start - found[-1].end <= TOUCHING and height < TOUCHED * found[-1].height:
            found[-1] = replace(found[-1], end=end, censored=end is None)
            continue  # the last breath of the one before
        found.append(Excursion(start, peak, end, base, noise, height, end is None))
    return found


def middle_of_three(y: Floats) -> Floats:
    """Median of each value and the two after it; the last two stand for what is left of them."""
    if len(y) < 3:
        return np.full(len(y), median(y) if len(y) else 0.0)
    a, b, c = y[:-2], y[1:-1], y[2:]
    inner = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    return np.concatenate([inner, [(y[-2] + y[-1]) / 2, y[-1]]])


def in_units(found: Sequence[Excursion], x: Floats, place: NDArray[np.int64], logs: bool) -> list[Excursion]:
    """Excursions of ``scaled`` values in the unit of the values themselves, at their own places."""
    size = size_of(x, logs)

    def of(e: Excursion) -> Excursion:
        level = level_in_units(e, size, logs)
        sigma = float(np.exp(e.level)) * e.sigma if logs else e.sigma * size
        height = float(x[e.peak]) - level if np.isfinite(x[e.peak]) else float("inf")
        end = int(place[e.end]) if e.end is not None else None
        return replace(e, start=int(place[e.start]), peak=int(place[e.peak]), end=end, level=level, sigma=sigma, height=height)

    return [of(e) for e in found]


def size_of(x: Floats, logs: bool) -> float:
    """What ``scaled`` adds to these values, or divides them by."""
    return negligible(x) if logs else unit(x)


def level_in_units(e: Excursion, size: float, logs: bool) -> float:
    """The level before an excursion of ``scaled`` values of such a size, in the unit of the values themselves."""
    return float(np.exp(e.level)) - size if logs else e.level * size


def smallest_visible(values: Floats, sigmas: float = PEAK_SIGMA, least: float = LEAST) -> float | None:
    """The one-value spike that reaches so many sigmas, put on top of nearly any value of this series, as a share of its level.

    It has to make up for a value that lies below the level: 19 of 20 values are high enough for it. None if too short.
    """
    x = values[np.isfinite(values)]
    if len(x) < 3 * WARMUP:
        return None
    y, logs = scaled(x)
    short = sigmas * local_noise(y) + before(rolling_median(y, LEVEL)) - y
    height = float(np.percentile(short[WARMUP:], 100 * SEEN))
    return max(float(np.expm1(height)) if logs else height, least)
