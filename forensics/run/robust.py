"""Spread that outliers do not move."""

from __future__ import annotations

from typing import Any

import numpy as np

SIGMA = 1.4826
"""What makes a median absolute deviation the standard deviation of normal noise: 1 / 0.6745 (Rousseeuw and Croux, JASA 88, 1993)."""


def robust_sigma(x: Any, about: Any = None) -> float:
    """SIGMA x median |x - about|; ``about`` is the median of x where it is not given (a number, or an array as long as x)."""
    return SIGMA * float(np.median(np.abs(x - (np.median(x) if about is None else about))))
