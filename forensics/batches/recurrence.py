"""Spikes that come back at the same place of every epoch; and which batches a logged value can speak of at all.

Whether spikes share a place is judged against epochs turned by chance: the spikes of each epoch are shifted together by
a random amount, which keeps how they cluster within it, and the statistic is the largest number of epochs that have a
spike within one logging interval of the same place. The p-value is the share of such turns (999 of them, the same at
every call) that reach it. An epoch that begins or ends there is told apart: a last, smaller batch or a loader that
starts anew make a bump at the seam whatever the samples are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.batches.data_passes import contents, passes, surviving
from forensics.run.once import once
from forensics.run.series import Series, series
from parsers.tables import Run

Ints = NDArray[np.int64]
TURNS, SEED = 999, 8
MOST = 200  # spikes
ALPHA = 0.01
SEAM = 0.01  # share of an epoch around its ends
LEFT = 0.1  # an average speaks of the batches that make all but a tenth of it


@dataclass(frozen=True)
class Epochs:
    """`steps`: length of an epoch in optimizer steps; `first`: a step at which one begins; `how` that is known."""

    steps: float
    first: float
    how: str

    def place(self, step: Any) -> Any:
        """Place in the epoch, from 0 to 1 (not included), of a step or an array of steps."""
        return np.mod((np.asarray(step, np.float64) - self.first) / self.steps, 1.0)

    def number(self, step: Any) -> Any:
        return np.floor((np.asarray(step, np.float64) - self.first) / self.steps + 1e-9).astype(np.int64)


@dataclass(frozen=True)
class Recurrence:
    """Spikes of `epochs` of the `covered` epochs lie within `width` steps at `place` (0 to 1) of theirs."""

    place: float
    width: int
    epochs: int
    covered: int
    steps: tuple[int, ...]
    p: float
    seam: bool  # at the very begin or end of the epoch


def window(s: Series, step: int) -> tuple[int, int]:
    """First and last step whose batch a value logged at `step` can speak of.

    One batch where each step is logged as it is. A mean or median of N steps, or a value each N steps, leaves N batches
    open: of a point sample the batch at the step itself made the value, one since the value before may have hit the
    weights. A moving average leaves as many as make nine tenths of it.
    """
    return step - reach(s) + 1, step


def reach(s: Series) -> int:
    """How many batches a logged value leaves open."""
    smoothing = s.smoothing or "none"
    decay = re.search(r"0\.\d+", smoothing)
    if decay:
        return max(s.interval, ceil(log(LEFT) / log(float(decay.group()))))
    counted = re.search(r"\d+", smoothing)
    return max(s.interval, int(counted.group()) if counted else 1)


def blame(s: Series, step: int) -> str:
    """The window in words: what this log can say at best of the batch behind a value."""
    first, last = window(s, step)
    if first == last:
        return f"the batch of step {step}"
    why = s.smoothing if s.smoothing != "none" else f"a value each {s.interval} steps"
    return f"one of the {last - first + 1} batches of steps {first} to {last} ({why})"


@once
def epochs_of(run: Run) -> Epochs | None:
    """Length and begin of the epochs, from the logged epoch or from ids that come again; None where neither tells."""
    return _logged(run) or _from_ids(run)


def _logged(run: Run) -> Epochs | None:
    s = series(run, "epoch")
    if s is None:
        return None
    rows = np.flatnonzero(s.usable)
    rows = rows[np.argsort(s.step[rows], kind="stable")]
    step, epoch = s.step[rows], s.value[rows]
    if len(rows) < 10 or (np.diff(epoch) < 0).any():
        return None
    if (epoch == np.round(epoch)).all():  # whole numbers: the steps at which they change, where they are equally far apart
        turns = step[1:][np.diff(epoch) > 0]
        lengths = np.diff(turns)
        if len(lengths) and (np.diff(epoch).max() == 1) and lengths.max() - lengths.min() <= 2 * s.interval:
            return Epochs(float(lengths.mean()), float(turns[0]), "the logged epoch")
        return None
    span = float(epoch[-1] - epoch[0])
    if span < 0.05:
        return None
    length = float(step[-1] - step[0]) / span
    off = np.abs((epoch - epoch[0]) - (step - step[0]) / length)
    if off.max() > 0.02 * max(span, 1):
        return None  # epochs of several lengths
    return Epochs(length, float(step[0]) - float(epoch[0]) * length + 1, "the logged epoch")


def _from_ids(run: Run) -> Epochs | None:
    """From the surviving batches; a pass that begins with a restart says nothing of the length of an epoch."""
    batches = contents(run)
    restarts = {min(s for b, s in batches if b == a) for a in {a for a, _ in batches}}
    begins = passes(surviving(batches))
    pairs = [(a, b) for a, b in zip(begins, begins[1:], strict=False) if b not in restarts]
    lengths = [b - a for a, b in pairs if a not in restarts or a == begins[0]]
    if not lengths or max(lengths) - min(lengths) > 2:
        return None
    return Epochs(float(np.mean(lengths)), float(pairs[-1][1]), "the ids of the batches")


def recurring(steps: Sequence[int], epochs: Epochs, last: int, width: int = 1) -> Recurrence | None:
    """The place that spikes come back to; None where the spikes of different epochs do not agree better than by chance.

    `last`: the last step of the log; `width`: steps within which two places are the same (the logging interval).
    """
    covered = int(epochs.number(last)) - int(epochs.number(min(steps, default=last))) + 1
    steps = list(steps)[:MOST]
    number, place = epochs.number(np.array(steps)), epochs.place(np.array(steps))
    if len(np.unique(number)) < 2 or epochs.steps < 8 * width:
        return None
    tolerance = (width + 1e-6) / epochs.steps
    _, which = np.unique(number, return_inverse=True)
    epoch = np.eye(int(which.max()) + 1)[which]
    best, at = _agree(epoch, place, tolerance)
    if best < 2 or best < 0.5 * covered:  # the same batch spikes in most epochs, or it is not the batch
        return None
    rng = np.random.default_rng(SEED)
    turned = np.mod(place + rng.random((TURNS, epoch.shape[1]))[:, which], 1.0)
    parts = np.array_split(turned, max(turned.size * len(steps) >> 20, 1))
    reached = sum(int((_counts(epoch, t, tolerance).max(axis=1) >= best).sum()) for t in parts)
    p = (1 + reached) / (1 + TURNS)
    if p > ALPHA:
        return None
    near = np.abs(np.mod(place - at + 0.5, 1.0) - 0.5) <= tolerance
    seam = min(at, 1 - at) <= max(SEAM, tolerance)
    return Recurrence(at, width, best, covered, tuple(int(x) for x in np.array(steps)[near]), p, bool(seam))


def _counts(epoch: NDArray[np.float64], place: NDArray[np.float64], tolerance: float) -> NDArray[np.int64]:
    """How many epochs have a spike near each spike's own place. Shapes (K, E) one-hot, (..., K) -> (..., K)."""
    off = np.abs(np.mod(place[..., :, None] - place[..., None, :] + 0.5, 1.0) - 0.5)
    return np.asarray(((off <= tolerance).astype(np.float64) @ epoch > 0).sum(axis=-1))


def _agree(epoch: NDArray[np.float64], place: NDArray[np.float64], tolerance: float) -> tuple[int, float]:
    """(most epochs with a spike near one place, that place)."""
    counts = _counts(epoch, place, tolerance)
    best = int(np.argmax(counts))
    return int(counts[best]), float(place[best])
