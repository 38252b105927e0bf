"""The statistics of ``live`` over a whole series at once: the same numbers, and at each value only those before it count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forensics.guards import live
from forensics.guards.guard_table import GuardRule
from forensics.run.robust import SIGMA
from forensics.run.series import Floats
from forensics.spikes.medians import rolling_median

BLOCK = 1 << 13  # unit: rows whose windows are in memory at once, 8 MB of them
SMALLEST, TINY = 0.005, 1e-12  # unit: as in `live`, whose source has to stand alone


def fires(rule: GuardRule, x: Floats) -> NDArray[np.bool_]:
    """Where the guard fires on these values, in the order of one process."""
    if rule.statistic is live.NotFinite:
        hit = ~np.isfinite(x)
        hit[: rule.least] = False
        return _in_a_row(hit, rule.patience)
    out = np.zeros(len(x), bool)
    known = np.flatnonzero(np.isfinite(x))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        score = _STATISTICS[rule.statistic](x[known], rule.window, rule.least)
        score[: rule.least] = -np.inf
        out[known] = _in_a_row(score >= rule.threshold, rule.patience)
    return out


def _in_a_row(hit: NDArray[np.bool_], patience: int) -> NDArray[np.bool_]:
    total = np.cumsum(np.r_[np.zeros(patience, np.int64), hit.astype(np.int64)])
    return np.asarray(total[patience:] - total[:-patience] >= patience)


def _median_before(x: Floats, window: int) -> Floats:
    return np.concatenate([[np.nan], rolling_median(x, window)[:-1]])


def _deviations(x: Floats, window: int, least: int) -> Floats:
    out = np.full(len(x), -np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.zeros(window), x[:-1]]), window) if len(x) else x
    for start in range(max(least, 1), len(x), BLOCK):
        past = windows[start : start + BLOCK]
        count = np.minimum(np.arange(start, start + len(past)), window)
        mean = past.sum(axis=1) / count
        off = past - mean[:, None]
        if start < window:
            off[np.arange(window) < window - count[:, None]] = 0  # what stands before the first value
        spread = np.sqrt((off**2).sum(axis=1) / count)
        out[start : start + len(past)] = (x[start : start + len(past)] - mean) / np.maximum(
            np.maximum(spread, SMALLEST * np.abs(mean)), TINY
        )
    return out


def _robust_deviations(x: Floats, window: int, least: int) -> Floats:
    if len(x) < 2:
        return np.full(len(x), -np.inf)
    middle = _median_before(x, window)
    spread = SIGMA * np.r_[np.nan, _median_before(np.abs(x - middle)[1:], window)]
    score = (x - middle) / np.maximum(np.maximum(spread, SMALLEST * np.abs(middle)), TINY)
    return np.asarray(np.nan_to_num(score, nan=-np.inf, posinf=np.inf, neginf=-np.inf))


def _times_median(x: Floats, window: int, least: int) -> Floats:
    middle = _median_before(x, window)
    return np.where(middle > 0, x / middle, -np.inf)


def _times_lowest(x: Floats, window: int, least: int) -> Floats:
    lowest = np.r_[np.inf, np.minimum.accumulate(x)[:-1]] if len(x) else x.copy()
    return np.where((lowest > 0) & np.isfinite(lowest), x / lowest, -np.inf)


_STATISTICS = {
    live.Above: lambda x, window, least: x.copy(),
    live.Below: lambda x, window, least: np.where(x < x[:1], -x, -np.inf),
    live.Deviations: _deviations,
    live.RobustDeviations: _robust_deviations,
    live.TimesMedian: _times_median,
    live.TimesLowest: _times_lowest,
}
