"""What a log could have shown at most: the smallest spike that survives its noise, interval, smoothing and the rules that judge it."""

from __future__ import annotations

import re

import numpy as np

from forensics.run.series import Series
from forensics.spikes import classes, excursions, medians
from forensics.spikes.excursions import Excursion, Floats
from forensics.spikes.features import Around, supposed, surroundings

TIMES = 10.0  # unit: a larger rise is told as a factor; four-digit percentages are hard to read
MARGIN = 2.0  # statistical: standard errors above a limit; an effect of that size passes it 98 times in 100
PLACES = 64  # bound: places of a series at which a spike is supposed; the 95th percentile of 64 is known to 3 %
HALVINGS = 9  # bound: the height is then known to 1.3 %, 2 to the 9th part of a range of e to the 6.7th
LARGEST = 8.0  # bound: in ln; no loss rises 3000 times over and is missed


def smallest_height(values: Floats) -> float | None:
    """The one-value spike that ``classes.judge`` would tell at 19 of 20 places of this series, as a share of its level.

    At each place the least height is sought that the classifier takes for a spike; the value there makes up for its own noise.
    None where the series is too short.
    """
    x = values[np.isfinite(values)]
    if len(x) < 3 * excursions.WARMUP:
        return None
    y, logs = excursions.scaled(x)
    found = excursions.candidates(y)
    level, noise = excursions.before(medians.rolling_median(y, excursions.LEVEL)), excursions.local_noise(y)
    free = np.ones(len(y), bool)
    free[: excursions.WARMUP] = False
    for e in found:
        free[e.start : e.end] = False
    rows = np.flatnonzero(free[:-1])
    if not len(rows):
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, PLACES).astype(int))]
    low = np.maximum(excursions.CANDIDATE_SIGMA * noise[rows], excursions.CANDIDATE_LEAST)
    high = np.full(len(rows), LARGEST)
    low = np.minimum(low, high)
    around = surroundings(y, [*found, Excursion(0, 0, 1, 0.0, 1.0, 1.0)])  # the last one stands for what is supposed
    for _ in range(HALVINGS):
        height = np.sqrt(low * high)
        told = _told(y, around, rows, level[rows], noise[rows], height)
        low, high = np.where(told, low, height), np.where(told, height, high)
    short = high + level[rows] - y[rows]
    needed = float(np.percentile(short, 100 * excursions.SEEN))
    return max(float(np.expm1(needed)) if logs else needed, excursions.CANDIDATE_LEAST)


def _told(y: Floats, around: Around, rows: excursions.Ints, level: Floats, noise: Floats, height: Floats) -> np.ndarray:
    """Whether a value of such a height would be told at each row."""
    here = [Excursion(i, i, i + 1, *of) for i, *of in zip(*(x.tolist() for x in (rows, level, noise, height)), strict=True)]
    return classes.is_spike(y, here, supposed(around, here))


def smallest_spike(s: Series) -> str:
    """The smallest spike this series would have shown, in words; '' where it is too short to say.

    A spike of a single step has to be that many times larger where a value is the mean of several steps, and may be of any
    size where values between are not logged, or where a median eats it.
    """
    share = smallest_height(s.value[s.alive])
    if share is None:
        return ""
    up = f"+{share:.1%}" if share < TIMES else f"{1 + share:.0f} times the level"
    smoothing, window = s.smoothing or "none", s.interval
    counted = re.search(r"\d+", smoothing)
    decay = re.search(r"0\.\d+", smoothing)
    if "median" in smoothing:
        width = int(counted.group()) if counted else max(window, 2)
        return f"{up} for at least {width // 2 + 1} steps (a median of {width} hides what is shorter)"
    if decay:
        gain = 1 - float(decay.group())
        one = f"+{share / gain:.0%} in one step"
        return f"{up} in the smoothed value: {one} (moving average, decay {decay.group()})"
    if smoothing != "none":
        steps = int(counted.group()) if counted and "." not in smoothing else window
        return f"{up} in one logged value: +{share * steps:.0%} in one step ({smoothing} over {steps} steps)"
    if window > 1:
        return f"{up} in one value, if it falls on a logged step (every {window}), or lasts {window} steps"
    return f"{up} in one value, at 19 of 20 places of the log"
