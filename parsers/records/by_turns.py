"""Lines of several processes in one log, as their epochs tell it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BY_TURNS = 3  # bound: a gap in the log behind a restart leaps once, another one twice


def leaps_back(epochs: Sequence[float] | NDArray[np.float64]) -> int:
    """How often the epoch leaps up over those between to where it was before it fell: a training that goes on from an earlier state passes through
    them, so that from `BY_TURNS` on two processes write by turns."""
    x = np.asarray(epochs, np.float64)
    return int(np.sum((np.diff(x) > 1) & (x[1:] <= np.maximum.accumulate(x)[:-1])))
