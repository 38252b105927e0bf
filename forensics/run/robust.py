"""Spread that outliers do not move, and the error of a median."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SIGMA = 1.4826
"""What makes a median absolute deviation the standard deviation of normal noise: 1 / 0.6745 (Rousseeuw and Croux, JASA 88, 1993)."""


def robust_sigma(x: Any, about: Any = None) -> float:
    """SIGMA x median |x - about|; ``about`` is the median of x where it is not given (a number, or an array as long as x)."""
    return SIGMA * float(np.median(np.abs(x - (np.median(x) if about is None else about))))


def noise_by_steps(x: Any) -> float:
    """Noise of one value, by the steps between neighbours: a steady trend is none."""
    return robust_sigma(np.diff(x)) / math.sqrt(2)


def error_of_median(noise: float, values: int) -> float:
    """Standard error of a median of normal values: 1.2533, the root of pi / 2, times that of a mean."""
    return 1.2533 * noise / math.sqrt(max(values, 1))
