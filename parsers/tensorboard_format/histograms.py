"""Histograms as summary rows: quantiles estimated from buckets, thousands of histograms at once.

A bucket says how many values fell between two edges. A quantile is placed inside its bucket by linear interpolation,
as TensorBoard does for its distributions page; edges are first cut to the histogram's own minimum and maximum, since
writers let the outermost buckets reach to the largest float.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.50, "p75": 0.75, "p95": 0.95}


@dataclass(frozen=True)
class Place:
    """Where the quantiles of some histograms lie: ``bucket`` counts from each histogram's first one."""

    rows: Ints  # (m,) histograms that hold anything
    bucket: Ints  # (m, 5)
    fraction: Floats  # (m, 5), from 0 at the bucket's lower edge to 1


def place(weights: Floats, sizes: Ints) -> Place:
    """Buckets of all histograms laid end to end, and how many each has -> where their quantiles lie.

    Empty buckets, and those whose weight is no positive number, hold nothing.
    """
    held = np.flatnonzero((weights > 0) & (weights < np.inf))
    ends = np.cumsum(sizes)
    counts = np.diff(np.searchsorted(held, ends), prepend=0)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return Place(rows, np.zeros((0, 5), np.int64), np.zeros((0, 5)))
    counts = counts[rows]
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    weight = weights[held]
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weight, first)
    if not np.isfinite(total).all():
        weight = weight / np.repeat(np.maximum.reduceat(weight, first), counts)
        total = np.add.reduceat(weight, first)
    share = weight / np.repeat(total, counts)
    reached = np.cumsum(share)  # histogram k climbs from k to k + 1
    wanted = np.arange(len(rows))[:, None] + np.array(list(QUANTILES.values()))
    index = np.clip(np.searchsorted(reached, wanted), first[:, None], last[:, None])
    fraction = np.clip(1 - (reached[index] - wanted) / share[index], 0, 1)
    return Place(rows, held[index] - (ends - sizes)[rows][:, None], fraction)


def moments(count: Floats, total: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """-> mean and standard deviation from a count, a sum and a sum of squares; NaN where there is nothing."""
    with np.errstate(all="ignore"):
        mean = np.where(count != 0, total / count, np.nan)
        variance = np.where(count != 0, squares / count, np.nan) - mean * mean
        return mean, np.sqrt(np.maximum(variance, 0))


def between(lower: Floats, upper: Floats, fraction: Floats, least: Floats, most: Floats) -> Floats:
    """The point at that fraction between two edges, both cut to least and most where these are numbers."""
    with np.errstate(all="ignore"):
        lower = np.fmin(np.fmax(lower, least), most)
        upper = np.fmin(np.fmax(upper, least), most)
        point = lower + fraction * (upper - lower)
    return np.where(np.isnan(point) & (lower == upper), lower, point)


def one(lower: Floats, upper: Floats, weights: Floats, **known: float) -> dict[str, Any]:
    """A row of the histograms table for one histogram; statistics that are not known come from the buckets."""
    spot = place(weights, np.array([len(weights)]))
    held = np.flatnonzero(weights > 0)
    if not known:
        middle, total = (lower + upper) / 2, float(weights.sum())
        mean, std = moments(*(np.array(x) for x in (total, (weights * middle).sum(), (weights * middle**2).sum())))
        known = {"count": total, "min": np.nan, "max": np.nan, "mean": float(mean), "std": float(std)}
        if len(held):
            known |= {"min": float(lower[held[0]]), "max": float(upper[held[-1]])}
    row: dict[str, Any] = dict(known)
    if len(spot.rows):
        bucket = spot.bucket[0]
        least, most = np.array(known["min"]), np.array(known["max"])
        points = between(lower[bucket], upper[bucket], spot.fraction[0], least, most)
        row |= dict(zip(QUANTILES, points.tolist(), strict=True))
    return row
