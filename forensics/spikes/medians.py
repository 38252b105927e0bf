"""Running medians."""

from __future__ import annotations

import bottleneck
import numpy as np
from numpy.typing import NDArray

from forensics.spikes.once_per_series import once_per_series

Floats = NDArray[np.float64]


def rolling_median(x: Floats, window: int) -> Floats:
    """Median of the `window` values up to and with each; shorter at the beginning. NaN is no value."""
    return _median(x, window, 0).copy()


def centred_median(x: Floats, window: int) -> Floats:
    """Median of the `window` values around each; shorter at both ends, and one more before than after where it is even."""
    return _median(x, window, (window - 1) // 2).copy()


@once_per_series
def _median(x: Floats, window: int, later: int) -> Floats:
    if not len(x):
        return x.copy()
    padded = np.concatenate([x, np.full(later, np.nan)])
    return np.asarray(bottleneck.move_median(padded, min(window, len(padded)), min_count=1)[later:])
