"""How far evaluations scatter, and whether the last of many stand above their lowest."""

from __future__ import annotations

import numpy as np

from forensics.run.robust import error_of_median, robust_sigma
from forensics.run.series import Floats
from forensics.spikes.medians import rolling_median

NOISY = 5  # statistical: second differences; the median of five is off by a factor of two once in ten times
TENTHS = 10  # unit: tenths of a run


def noise_of(x: Floats) -> float:
    """Scatter of one evaluation, smooth trends taken off."""
    return robust_sigma(np.diff(x, 2), 0.0) / float(np.sqrt(6))


def stands_above(x: Floats, rise: float, noises: float) -> bool:
    """Whether the last tenth lies above the lowest stretch of as many evaluations, by a share of it and by so many errors: what two of them leave open,
    medians of many may show."""
    tenth = len(x) // TENTHS
    if tenth < NOISY:
        return False
    levels = rolling_median(x, tenth)[tenth - 1 :]
    lowest, error = float(levels.min()), np.sqrt(2) * error_of_median(noise_of(x), tenth)
    return bool(levels[-1] - lowest >= max(rise * abs(lowest), noises * error))


def noise_after(x: Floats, best: int) -> float:
    """Noise of the changes between evaluations; after the lowest by second differences, which neither the steep way down before it
    nor a steady climb moves."""
    after = np.sqrt(2) * noise_of(x[best:]) if len(x) - best >= NOISY + 2 else np.inf
    return min(robust_sigma(np.diff(x)), float(after))
