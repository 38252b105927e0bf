"""How many steps an epoch has, by the epochs that were logged beside steps."""

from __future__ import annotations

import math

import numpy as np

from forensics.run.series import Series

EXACT = 0.5  # steps by which an estimate may be wrong and still name one whole number


def steps_per_epoch(epoch: Series, planned: int) -> float | None:
    """Steps an epoch, where the log counts epochs in fractions fine enough to tell them, or whole ones beside finer steps; of these not
    where the last planned one was begun, whose end shows by itself."""
    rows = np.flatnonzero(np.isfinite(epoch.value) & (epoch.value > 0))
    if not len(rows):
        return None
    last, digits = float(epoch.value[rows[-1]]), 0
    if last == int(last):
        return _between_ends(epoch) if last < planned - 1 else None
    while digits < 6 and not all(math.isclose(v, round(v, digits), abs_tol=1e-9) for v in epoch.value[rows[-20:]].tolist()):
        digits += 1
    rate = float(epoch.step[rows[-1]]) / last
    return float(round(rate)) if digits and rate * (0.5 * 10**-digits) / last < EXACT else None


def _between_ends(epoch: Series) -> float | None:
    """The same where whole epochs stand beside finer steps: the last rows of all but the last one lie equally far from each other."""
    last = np.flatnonzero(np.diff(epoch.value) > 0)
    ends = np.diff(epoch.step[last])
    return float(ends[0]) if len(ends) > 1 and (ends == ends[0]).all() and (np.diff(epoch.value) <= 1).all() else None
