"""Running medians."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forensics.spikes.once_per_series import once_per_series

Floats = NDArray[np.float64]

SHORT = 1 << 17  # bound: values in all windows of a series together; sorting them takes 1 ms


def rolling_median(x: Floats, window: int) -> Floats:
    """Median of the `window` values up to and with each; shorter at the beginning."""
    return _median(x, window, False).copy()


def centred_median(x: Floats, window: int) -> Floats:
    return _median(x, window, True).copy()


@once_per_series
def _median(x: Floats, window: int, center: bool) -> Floats:
    return of_windows(x, window, center) if len(x) * window <= SHORT else streamed(x, window, center)


def of_windows(x: Floats, window: int, center: bool) -> Floats:
    """Sorts every window: as quick as polars for a short series, and no second table library has to be imported for it."""
    if not len(x):
        return x.copy()
    later = (window - 1) // 2 if center else 0
    earlier = window - 1 - later
    padded = np.concatenate([np.full(earlier, np.nan), x, np.full(later, np.nan)])  # NaN sorts to the end
    rows = np.sort(np.lib.stride_tricks.sliding_window_view(padded, window), axis=1)
    at = np.arange(len(x))
    held = np.minimum(at + later, len(x) - 1) - np.maximum(at - earlier, 0) + 1
    low, high = rows[at, (held - 1) // 2], rows[at, held // 2]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(held % 2, low, low + (high - low) * 0.5))  # as polars rounds it


def streamed(x: Floats, window: int, center: bool) -> Floats:
    """By polars, in time that hardly grows with the window."""
    import polars as pl  # 0.15 s of CPU

    return np.array(pl.Series(x).rolling_median(window, min_samples=1, center=center).to_numpy(), np.float64)
