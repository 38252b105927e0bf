"""Where a curve begins and ends, as medians that one odd value does not move."""

from __future__ import annotations

import math

import numpy as np

from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.series import Floats
from forensics.spikes.visible import MARGIN

LEVEL = 3  # bound: three values make a median
LEAST_FALL = 0.05  # measured: 87 healthy runs fell by 18 % or more, a real one by 8 % (DPO); at 0.03 six more faulty ones are missed
ROOM = 0.15  # measured: with two standard errors of the fall; less than what healthy runs show at the least (18 %)
RISES = 0.05  # unit: above the first level; a loss that rises by more is what divergence looks at


def levels(x: Floats) -> tuple[float, float, float]:
    """The loss at the beginning, at the end, and at its best. The first tenth of a long log may hold all that was learnt."""
    few = tenth(x)
    falls = x[0] > x[1] > x[2] and x[0] - x[2] > MARGIN * noise_by_steps(x)  # three values of a level do so once in six by chance
    first = float(x[0]) if falls else median(x[:LEVEL])
    last, best = median(x[-few:]), median(np.sort(x)[:few])
    early = median(x[:few])
    thrown = x[0] > 0 and best >= (1 - LEAST_FALL) * x[0] and early > (1 + RISES) * x[0]  # off at once, and back to where it began
    return float(x[0]) if thrown else max(first, early), last, best


def tenth(x: Floats) -> int:
    return max(len(x) // 10, LEVEL)


def error_of_fall(x: Floats) -> float:
    """Standard error of the fall, the difference of two medians."""
    return math.sqrt(2) * error_of_median(noise_by_steps(x), tenth(x))
