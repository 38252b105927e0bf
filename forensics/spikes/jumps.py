"""Jumps that a short log shows: the lowest of the next three values stands clear of the highest of the five before.

The regression in ``classes`` compares an excursion with 150 values on either side, and a level of 15 values lags behind a
curve that still falls; neither is there in a log of 20 to 100 values. What the eye uses there is the gap between two
neighbouring stretches. By chance it is hardly ever above zero, and it does not ask how long the stretch lasts, so that a
pocket of three values and a level that stays are seen alike. Pure numpy in, plain records out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.run.robust import median, robust_sigma
from forensics.spikes.excursions import END_SHARE, END_SIGMA, LEAST_SIGMA, Excursion, Floats, middle_of_three
from forensics.spikes.tops import HUMP, first_at_most, top_of_hump

BEFORE, AFTER = 5, 3  # statistical: values; the fewest with a median that two outliers, or one, do not move
SHORT = 300  # bound: values; from there on the regression has its whole neighbourhood, 150 on either side
# Of 2,000 simulated series without a jump (falling; white, t3 and first-order noise of 0.6) 99.9 % have no gap above -0.1 sigma
# at 25 values, 2.1 at 60 and 3.6 at 200. The limit leaves another sigma; measured: of 105 healthy runs the nearest has a gap of
# 3.2 sigma at 80 values, where the limit is 3.5.
GAP, GAP_MORE, USUAL_LENGTH = 3.1, 1.3, 60
LEAST_GAP = 2.0  # measured: with a random walk for noise, the worst case, 3 % of 1,000 simulated series of 25 values show one
MOST = 3  # unit: events that a page tells one by one; a short log with more of them swings
TWICE = 2.0  # unit: double the other gaps of the series; noise that is slower than its steps makes many of one size
SURE, PLACES = 2.0, 0.03  # measured: of steps promised so 98 to 100 % are found in white and heavy-tailed noise, without SURE 63 to 97 %


@dataclass(frozen=True)
class Jump:
    """A step up between two values, in the unit of ``scaled``."""

    at: int  # index of the first high value
    level: float  # median of the values before
    gap: float  # lowest of the next values less the highest of those before
    sigma: float  # noise of one value


def jumps(y: Floats) -> list[Jump]:
    """The jumps of a short scaled series, in order; none where it is long (other rules see more there) or not finite."""
    if len(y) > SHORT or len(y) < BEFORE + 2 * AFTER or not np.isfinite(y).all():
        return []
    gaps = _gaps(y)
    sigma, limit = noise_of(y), smallest_gap(y)
    found: list[Jump] = []
    while gaps.max() >= limit:
        i = int(np.argmax(gaps))
        found.append(Jump(i + BEFORE, median(y[i : i + BEFORE]), float(gaps[i]), sigma))
        gaps[max(i - AFTER, 0) : i + BEFORE + AFTER] = -np.inf
    other = float(gaps.max())
    return sorted((j for j in found if j.gap >= TWICE * other), key=lambda j: j.at) if len(found) <= MOST else []


def smallest_gap(y: Floats) -> float:
    """The smallest gap that chance does not make in a series of such length and noise."""
    return max(GAP + GAP_MORE * float(np.log(len(y) / USUAL_LENGTH)), LEAST_GAP) * noise_of(y)


def smallest_step(y: Floats) -> float:
    """The step that makes a gap that counts nearly anywhere on a level curve, though it adds to the noise that gaps are held against."""
    return smallest_gap(y) + SURE * noise_of(y) - float(np.quantile(_gaps(y), PLACES))


def noise_of(y: Floats) -> float:
    """Noise of one value, by the steps between neighbours."""
    return max(robust_sigma(np.diff(y), 0.0) / 2**0.5, LEAST_SIGMA)


def _gaps(y: Floats) -> Floats:
    """For each place with five values before it and three from it on: the lowest of these less the highest of those."""
    windows = np.lib.stride_tricks.sliding_window_view
    return np.asarray(windows(y, AFTER).min(axis=1)[BEFORE:] - windows(y, BEFORE).max(axis=1)[:-AFTER])


def excursion(y: Floats, j: Jump) -> Excursion | None:
    """A jump as an excursion: how high it goes, and where a value and the median of it and the next two are back.

    None where the first values are not half as high as the top: that is a climb, no jump.
    """
    settled = np.maximum(y, middle_of_three(y))
    end = first_at_most(settled, j.at + 1, j.level + END_SIGMA * j.sigma)
    peak = top_of_hump(y, settled, j.at, j.level, end)
    height = float(y[peak]) - j.level
    if float(y[j.at : j.at + AFTER].max()) - j.level < HUMP * height:
        return None
    if end is None:
        end = first_at_most(settled, peak + 1, j.level + END_SHARE * height)
    return Excursion(j.at, peak, end, j.level, j.sigma, height, end is None)
