"""Spread that outliers do not move, and the error of a median."""

from __future__ import annotations

import math
from typing import Any

import bottleneck
import numpy as np

MOST_DIGITS = 8  # bound: behind the point; float32 has seven in all, so that what was not rounded has more
WHOLE, WHOLE_SHARE = 1e-6, 1e-9  # bound: what is further from a whole number was not rounded; a share of it, for the errors of large floats
WALKED = 5  # bound: values one digit apart; a schedule in even stairs has fewer
ROUNDED = 10  # unit: last digits; what is smaller and varies by a twentieth is printed as one number
EXCEEDS = 3.0  # statistical: of normal noise, chance does it once in 370
SIGMA = 1.4826
"""What makes a median absolute deviation the standard deviation of normal noise: 1 / 0.6745 (Rousseeuw and Croux, JASA 88, 1993)."""


def robust_sigma(x: Any, about: Any = None) -> float:
    """SIGMA x median |x - about|; ``about`` is the median of x where it is not given (a number, or an array as long as x)."""
    return SIGMA * median(np.abs(x - (median(x) if about is None else about)))


def median(x: Any) -> float:
    """As `np.median` of all values, in a tenth of its time; NaN where one is NaN, or of none."""
    return float(bottleneck.median(x))


def noise_by_steps(x: Any) -> float:
    """Noise of one value, by the steps between neighbours: a steady trend is none."""
    return robust_sigma(np.diff(x)) / math.sqrt(2)


def error_of_median(noise: float, values: int) -> float:
    """Standard error of a median of normal values: 1.2533, the root of pi / 2, times that of a mean."""
    return 1.2533 * noise / math.sqrt(max(values, 1))


def mean_exceeds(high: Any, low: Any) -> bool:
    """Whether the mean of one stretch lies more than three standard errors above that of another. Of values of a few kinds (won or lost,
    whole numbers) the median moves by a whole one or not at all."""
    return bool(high.mean() - low.mean() > EXCEEDS * math.sqrt(high.var() / len(high) + low.var() / len(low)))


def last_digit(x: Any) -> float:
    """The unit of the last digit that the values were printed with: 1e-4 for 2.3456 and 0.0002; 0 where they have all their digits."""
    x = x[np.isfinite(x)]
    first = x[:WALKED]  # enough to rule most numbers of digits out
    return next((10.0**-digits for digits in range(MOST_DIGITS + 1) if _whole(first * 10.0**digits) and _whole(x * 10.0**digits)), 0.0)


def _whole(x: Any) -> bool:
    near = np.round(x)
    return bool((np.abs(x - near) <= WHOLE + WHOLE_SHARE * np.abs(near)).all())


def walked_digit(x: Any) -> float:
    """The same where values walk from one digit to the next, so that it is seen that they were rounded; else 0."""
    unit = last_digit(x)
    return unit if unit and (np.diff(np.unique(np.round(x[np.isfinite(x)] / unit))) == 1).sum() >= WALKED - 1 else 0.0
