"""Published spike rules on one loss series, re-stated from their sources; benchmarks/spikes.py scores them beside
ours.

Each returns the flagged values. Flags at most three values apart are one event; end and class follow the same
operational definition for all, so the comparison is about finding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.spikes import excursions, medians, plain_rule, tops

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def _before(x: Floats, window: int, what: str, least: int | None = None) -> Floats:
    s = pl.Series(x).shift(1)
    least = least or window
    rolled = {"mean": s.rolling_mean, "std": s.rolling_std, "median": s.rolling_median}[what](window, min_samples=least)
    return np.nan_to_num(np.array(rolled.to_numpy(), dtype=np.float64), nan=np.inf)


def olmo_core(x: Floats) -> Flags:
    """x > mean + 6 standard deviations of the 128 values before (olmo_core/train/callbacks/stability_monitor.py)."""
    return x > _before(x, 128, "mean", 64) + 6 * _before(x, 128, "std", 64)


def olmo_2(x: Floats) -> Flags:
    """x at least 7 standard deviations above the mean of the 1000 values before (OLMo 2, spike score)."""
    return x > _before(x, 1000, "mean", 100) + 7 * _before(x, 1000, "std", 100)


def trainscope(x: Floats) -> Flags:
    """z above 3.5 over the 200 values before, upwards (trainscope/core/detectors/z_score.py)."""
    return x > _before(x, 200, "mean", 30) + 3.5 * _before(x, 200, "std", 30)


def wortsman(x: Floats) -> Flags:
    """x above running mean + 3.2 running deviations, twice within ten values (arXiv 2304.13013)."""
    mean, var = float(x[0]), 0.0
    out = np.zeros(len(x), bool)
    for i, v in enumerate(x):
        out[i] = i > 20 and v > mean + 3.2 * var**0.5
        var, mean = 0.99 * var + 0.01 * (v - mean) ** 2, 0.99 * mean + 0.01 * v
    count = np.convolve(out, np.ones(10, int))[: len(x)]
    return out & (count >= 2)


def runmedic(x: Floats) -> Flags:
    """Residual to an exponential mean above 8 robust deviations and 1.5 times the mean (runmedic/checks.py)."""
    span = max(5, len(x) // 20)
    ema = np.array(pl.Series(x).ewm_mean(span=span, adjust=False).shift(1).to_numpy(), dtype=np.float64)
    r = np.nan_to_num(x - ema, nan=0.0)
    mad = 1.4826 * float(np.median(np.abs(r - np.median(r))))
    return (r - float(np.median(r)) > 8 * max(mad, 1e-12)) & (x > 1.5 * ema)


def soup(x: Floats) -> Flags:
    """Not finite, or more than twice the median of the 20 values before (Soup, rewind)."""
    return x > 2 * _before(x, 20, "median")


def lightning(x: Floats) -> Flags:
    """Worse than the last value, and off the mean of ten by twice that mean (lightning/fabric/utilities/spike.py)."""
    mean = _before(x, 10, "mean")
    return (x > np.concatenate([x[:1], x[:-1]])) & (np.abs(x - mean) >= 2 * mean) & np.isfinite(mean)


def median_rule(x: Floats) -> Flags:
    """The plain median and MAD rule of forensics.spikes.excursions (6 sigma, 1 %, no crowd)."""
    out = np.zeros(len(x), bool)
    for e in plain_rule.find(x):
        out[e.start : e.peak + 1] = True
    return out


RULES: dict[str, Callable[[Floats], Flags]] = {
    "OLMo-core, 6 sigma over 128": olmo_core,
    "OLMo 2, 7 sigma over 1000": olmo_2,
    "trainscope, z 3.5 over 200": trainscope,
    "Wortsman et al., 3.2 sigma, twice": wortsman,
    "runmedic, MAD 8 and 1.5 times": runmedic,
    "Soup, twice the median of 20": soup,
    "Lightning, rtol 2": lightning,
    "running median and MAD, 6 sigma": median_rule,
}


def events(rule: Callable[[Floats], Flags], step: NDArray[np.int64], value: Floats, length: float) -> list[dict[str, Any]]:
    """Flags of a rule as events with the end and class of the operational definition."""
    x = np.where(np.isfinite(value), value, np.nanmax(value[np.isfinite(value)]) * 10)
    hits = np.flatnonzero(rule(x))
    if not len(hits):
        return []
    level = excursions.before(medians.rolling_median(x, excursions.LEVEL))
    sigma = excursions.local_noise(x)
    interval = float(np.median(np.diff(step)))
    settled = np.maximum(x, excursions.middle_of_three(x))
    out: list[dict[str, Any]] = []
    past = -1
    for group in np.split(hits, np.flatnonzero(np.diff(hits) > 3) + 1):
        start = int(group[0])
        if start < past:
            continue
        end = tops.first_at_most(settled, start + 1, level[start] + 2 * sigma[start])
        peak = start + int(np.argmax(x[start : max(int(group[-1]), start) + 1]))
        past = end if end is not None else int(group[-1]) + 1
        took = step[end] - step[start] if end is not None else None
        kind = "non_recovering" if took is None else "fast" if took <= max(0.004 * length, 3 * interval, 20) else "slow"
        out.append({"start": step[start], "peak": step[peak], "end": step[end] if end is not None else None, "class": kind})
    return out
