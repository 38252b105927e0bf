"""The slow side of a loss curve: a rise without a spike, measured against every rise the run has had before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.spikes.excursions import Excursion, Floats, noise_floor, scaled
from forensics.spikes.medians import centred_median, rolling_median

WINDOW, REFERENCE = 25, 100  # values of a level; of the old level. Measured: at 0.7 of WINDOW macro-F1 .904, at 1.4 of REFERENCE .920
LEAST_RISE = 0.007  # not critical: 0.7 and 1.4 of it score alike (docs/thresholds.md)
TIMES_BEFORE, ERRORS, KEPT = 4.0, 15.0, 0.4  # measured: 0.7 of them alike, 1.4 macro-F1 .904, .919, .904 (docs/thresholds.md)
MANY = 10_000  # values that are enough to see a trend by; bound: a hundred values a percent of the run
# statistical: four values in any order give back nothing once in 24, five no more than a quarter once in 20, nine once in 500, whatever their
# tail (test_short_logs); a fall is visible from where the plateau ends
ORDERED, GIVES_BACK, VISIBLE = 4, 0.25, 0.05
HALF = 0.5  # unit: half of the rise; statistical: five values fall in order by chance once in 120
TAKEN_BACK = (
    3  # measured: of 55 runs with a divergence none of those that had one rose so often before; two healthy ones and one that wanders did
)
BELOW = 1000.0  # bound: times its first values, below zero; a log-likelihood of numbers falls below zero by as much as it began with, or ten times
ENDS = 5  # statistical: values whose median is off by half a sigma
IN_ORDER = f"a rise by more than {GIVES_BACK:.0%} of all that the loss had fallen"
FOOT = 0.25  # the turn is where a quarter of the rise was last undercut; not critical: decides where it is said to begin
STRONG = 8.0  # excursions of so many sigma are taken out before the trend is drawn; not critical (docs/thresholds.md)


def falls_in_order(x: Floats) -> bool:
    """Whether a few values fall and never give back more than a quarter of it, four nothing: that leaves no room for a spike or a turn."""
    if len(x) < ORDERED or not np.isfinite(x).all():
        return False
    y, logs = scaled(x)
    fall = float(y[0] - y.min())
    return (
        fall > (np.log1p(VISIBLE) if logs else 0.0)
        and float((y - np.minimum.accumulate(y)).max()) <= (GIVES_BACK if len(y) > ORDERED else 0.0) * fall
    )


def wanders(level: Floats) -> bool:
    """Whether a level that ends above its best one rose half as far before, from its best until then, and came back, time and again, and once stayed
    up there as long."""
    above = level - np.minimum.accumulate(level)
    rise = above[-1]
    sides = np.where(above >= HALF * rise, 1, np.where(above <= FOOT * rise, -1, 0))
    told = np.flatnonzero(sides)
    stretches = np.split(told, np.flatnonzero(np.diff(sides[told])) + 1)
    up = [int(stretch[-1] - stretch[0]) for stretch in stretches if len(stretch) and sides[stretch[0]] > 0]
    return len(up) > TAKEN_BACK and up[-1] <= max(up[:-1])


@dataclass(frozen=True)
class Turn:
    """A lasting rise of the level: index where it begins and where it is highest; heights in the unit of ``scaled``."""

    start: int
    peak: int
    level: float  # before
    rise: float  # of the smoothed series, at the highest
    last: float  # what is left of it at the end
    noise: float  # of one value
    before: float  # largest rise of the smoothed series until then


def without(y: Floats, found: Sequence[Excursion]) -> Floats:
    """The series with its strong, finished excursions cut off at their level."""
    calm = y.copy()
    for e in found:
        if e.end is not None and e.sigmas > STRONG:
            calm[e.start : e.end] = e.level
    return calm


def turn(y: Floats, found: Sequence[Excursion]) -> Turn | None:
    """The largest rise of the smoothed series, if it lasts and is several times any rise before it; else None."""
    if len(y) < 4 * WINDOW:
        return None
    calm = without(y, found)
    if len(y) >= 2 * MANY:  # a long log is looked at in blocks
        each = len(y) // MANY
        slow = _turn(np.median(calm[: len(y) // each * each].reshape(-1, each), axis=1))
        slow = slow and replace(slow, start=slow.start * each, peak=slow.peak * each)
    else:
        slow = _turn(calm)
    return None if slow is None or _comes_down(y, slow.start) else slow


def _comes_down(y: Floats, start: int) -> bool:
    """Whether what looks like a rise from ``start`` on is the tail of an excursion that was cut off: the values right before it stand above the end."""
    return start >= WINDOW and median(y[start - WINDOW : start]) > median(y[-WINDOW:])


def _turn(calm: Floats) -> Turn | None:
    if not np.isfinite(calm).any():
        return None
    smooth = rolling_median(calm, WINDOW)[WINDOW - 1 :]
    lowest = np.minimum.accumulate(smooth)
    rise = smooth - lowest
    top = int(np.argmax(rise))
    low = int(np.flatnonzero(smooth[: top + 1] <= lowest[top])[-1])
    before = float(rise[: low - WINDOW].max()) if low > WINDOW else 0.0
    off = np.abs(calm - centred_median(calm, 9))
    corner = low + WINDOW  # the first value that the lowest level does not contain
    parts = (off, off[max(corner - REFERENCE, 0) : corner], off[low : top + WINDOW])  # a loss near zero scatters more, as a share
    noise, *near = (max(robust_sigma(x, 0.0), noise_floor(calm)) for x in parts)
    error = error_of_median(max(noise, *near), WINDOW)
    height, last = float(rise[top]), float(rise[-1])
    if height < max(LEAST_RISE, ERRORS * error, TIMES_BEFORE * max(before, 2 * error)) or last < KEPT * height:
        return None
    centred = centred_median(calm, WINDOW)
    level = median(calm[max(0, corner - REFERENCE) : corner])
    reach = centred[low : top + WINDOW]
    peak = low + int(np.argmax(reach))
    feet = np.flatnonzero(centred[: peak + 1] <= level + FOOT * (float(reach.max()) - level))
    start = int(feet[-1]) + 1 if len(feet) else low
    return Turn(min(start, peak), peak, level, height, last, noise, before)


def falls_without_end(x: Floats) -> bool:
    """Whether a loss ends far below zero: what it is the error of has no lowest value, as a cross entropy of targets outside of 0 to 1 has none."""
    return median(x[-ENDS:]) < far_below_zero(x)


def far_below_zero(x: Floats) -> float:
    """The value that is called so of a loss that began as this one."""
    return -BELOW * max(1.0, float(np.abs(x[:ENDS]).max()))
