"""How much work a step is, where a batch that grows or gradients that are added up over more micro-batches make it more.

A log that names neither tells it by its epochs: over the same data, an epoch of half as many steps has steps of twice the samples.
"""

from __future__ import annotations

import numpy as np

from forensics.run.series import Floats, Ints, names, parts, series
from parsers.tables import Run

CHANGES = 1.25  # bound: a batch or an accumulation changes by a factor of two, seldom less; counters of padded batches wobble by less
COUNTERS = ("samples.seen", "tokens.seen")
# bound: of epochs; more lengths, or one that stands alone, come of rows that do not stand where an epoch begins
MOST_LENGTHS, LEAST_ALIKE = 4, 2


def of_steps(run: Run, step: Ints) -> Floats | None:
    """Samples of each step up to a factor, at these steps (in order); None where nothing tells, or all are alike."""
    sizes = [at for name in ("batch.size", "batch.accumulation") if (at := _held(run, name, step)) is not None]
    told = [np.prod(sizes, axis=0)] if sizes else []
    told += [grown for name in COUNTERS if (grown := _grown(run, name, step)) is not None]
    told += [grown] if (grown := _by_epochs(run, step)) is not None else []
    return next((w for w in told if (w > 0).all() and w.max() >= CHANGES * w.min()), None)


def begins(run: Run, before: int, step: int) -> str:
    """Which metrics are measured from a step on, and to the end, and not before: a loop that goes into another phase does more. Nothing where none is,
    or where the log begins there."""
    whole = [s for name in names(run) for s in parts(run, name)]
    first, last = min((int(s.step.min()) for s in whole), default=step), max((int(s.step.max()) for s in whole), default=step)
    late = [s.tag for s in whole if first < before < int(s.step.min()) <= step and int(s.step.max()) >= last - s.interval]
    return f", where {late[0]} is measured for the first time" if late else ""


def _held(run: Run, name: str, step: Ints) -> Floats | None:
    """The value of a setting that was logged by step, at other steps: that of the last row until there."""
    s = series(run, name)
    if s is None or not s.usable.any():
        return None
    at = np.searchsorted(s.step[s.usable], step, "right") - 1
    return np.asarray(s.value[s.usable][np.maximum(at, 0)])


def _grown(run: Run, name: str, step: Ints) -> Floats | None:
    """What a counter grows by a step, before each of these steps."""
    s = series(run, name)
    if s is None or s.usable.sum() < 2 or len(step) < 2:
        return None
    count = np.interp(step, s.step[s.usable], s.value[s.usable])
    grown = np.diff(count) / np.maximum(np.diff(step), 1)
    return np.concatenate([grown[:1], grown])


def _by_epochs(run: Run, step: Ints) -> Floats | None:
    """One over the steps of the epoch that each of these steps is in, where these are a few lengths, each of several epochs in a row."""
    s = series(run, "epoch")
    if s is None or not s.usable.any() or (np.diff(s.step) < 0).any():
        return None
    epoch, begins = np.unique(np.floor(s.value[s.usable]), return_index=True)
    if len(epoch) < 2 * LEAST_ALIKE or (np.diff(epoch) != 1).any():
        return None
    rows = s.step[s.usable]
    for edge in (rows[begins], rows[np.r_[begins[1:] - 1, -1]]):  # rows stand where an epoch begins, or where it ends
        length = np.diff(edge)[:-1]  # the last epoch may have been left
        alike = np.diff(np.r_[0, np.flatnonzero(np.diff(length)) + 1, len(length)])
        if length.min() > 0 and len(alike) <= MOST_LENGTHS and alike.min() >= LEAST_ALIKE:
            return np.asarray(1 / length[np.clip(np.searchsorted(edge, step) - 1, 0, len(length) - 1)])
    return None
