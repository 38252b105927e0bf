"""After a restart, without ids: does the loss say that the data begin again with the very first batch?

A loader that lost its place begins at its beginning. That is one offset, known beforehand, so that far fewer values tell than the
search over all offsets needs (``resume_loss``): what each value has beside its two neighbours is compared, at equal distances from the
first step of the run and from the step of the restart. Smooth courses leave nothing there, so that two decays do not resemble each other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from forensics.batches.resume_data import BY_LOSS, Change, moved
from forensics.batches.resume_loss import ALPHA
from forensics.run.series import Series

Floats = NDArray[np.float64]
LEAST = 12  # values; bound: at 0.9 of a correlation fewer cannot reach ALPHA
SAME = 0.5  # correlation of steps done twice with the same batches at least (forensics.batches.resume_loss)
SHARED = 1.94  # neighbours share values: 1 + 2 (4/9 + 1/36), the squared autocorrelations of white noise less the mean beside it


def again(s: Series, attempt: int, restarts: int, epoch: float | None = None) -> Change | None:
    """What the loss says of the restart that begins an attempt: repeated from the first batch on, or None.

    `restarts`: how many are judged in this run, for the correction; `epoch`: its length in steps, where known.
    """
    old, new = (_beside_neighbours(s, rows) for rows in (s.attempt == 0, s.attempt == attempt))
    if len(new) < LEAST or len(old) < LEAST:
        return None
    first, begin = int(s.step[s.attempt == 0].min()), int(s.step[s.attempt == attempt].min())
    found = [(_agree(old, new, offset), offset) for offset in _offsets(first, begin, s.interval)]
    if not found:
        return None
    (r, n), offset = max(found, key=lambda x: _z(*x[0]))
    p = 0.5 * math.erfc(_z(r, n) / 2**0.5) * len(found) * restarts
    if p > ALPHA or r < SAME or _whole_epochs(offset, epoch, s.interval) or _each_epoch(old, new, offset, r, s.interval):
        return None
    lines = (
        f"correlation {r:.2f} of {n} values, each less its neighbours, with those {offset} steps before",
        f"chance that other batches agree so well there: {p:.1g}",
    )
    return moved(attempt, begin, offset, how=BY_LOSS, p=p, lines=lines, from_start=True)


def _offsets(first: int, begin: int, interval: int) -> list[int]:
    """Steps of the restart, by what the first attempt may begin with: the same place of its logging interval, or step 0 before it."""
    return [o for o in (begin - first, begin - first - interval) if o > 0]


def _beside_neighbours(s: Series, rows: NDArray[np.bool_]) -> dict[int, float]:
    """Step -> logarithm of the value, less the mean of those of its neighbours, extremes held in."""
    keep = rows & s.usable & (s.value > 0)
    step, order = np.unique(s.step[keep], return_index=True)
    y = np.log(s.value[keep][order])
    if len(y) < 3:
        return {}
    rest = y[1:-1] - (y[:-2] + y[2:]) / 2
    return dict(zip(step[1:-1].tolist(), np.clip(rest, *np.percentile(rest, [2, 98])).tolist(), strict=True))


def _agree(old: dict[int, float], new: dict[int, float], offset: int) -> tuple[float, int]:
    """Correlation of the steps that both have at this offset, and their number."""
    both = [(old[step - offset], x) for step, x in new.items() if step - offset in old]
    if len(both) < LEAST:
        return 0.0, len(both)
    a, b = (np.array(x) for x in zip(*both, strict=True))
    return (float(np.corrcoef(a, b)[0, 1]), len(both)) if a.std() > 0 and b.std() > 0 else (0.0, len(both))


def _z(r: float, n: int) -> float:
    """Fisher's z of a correlation, in its standard errors."""
    return math.atanh(min(r, 0.999)) * math.sqrt(max(n / SHARED - 3, 0.0))


def _whole_epochs(offset: int, epoch: float | None, interval: int) -> bool:
    """Whether an order that is the same in each epoch comes round by itself."""
    return bool(epoch) and abs(offset / (epoch or 1) - round(offset / (epoch or 1))) * (epoch or 1) <= max(interval, 1.5)


def _each_epoch(old: dict[int, float], new: dict[int, float], offset: int, r: float, interval: int) -> bool:
    """Where no log says how long an epoch is: whether the order repeats at a whole part of the offset, too."""
    parts = (offset // k for k in range(2, offset // max(3 * interval, 1) + 1) if offset % k == 0)
    return any(_agree(old | new, new, part)[0] > r / 2 and _z(*_agree(old | new, new, part)) > 3 for part in parts)
