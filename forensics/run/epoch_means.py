"""Running means that begin anew with each epoch, as Keras and many a meter print them: the first values of an epoch are means of few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forensics.run.series import Series, series
from parsers.tables import Run

EPOCHS, ROWS = 3, 20  # bound: epochs, and values in one, of which the first and the second half can be compared
# statistical: the k-th mean moves by 1/k of what one value scatters; of 20 the second half eight times less than the first two
CALMER = 5.0
QUARTER = 0.25  # of an epoch; there a mean still moves by more than twice what it does at the end
SLOW = 5  # statistical: values that a rise takes; one batch lifts a mean at once, and a mean that was low by chance rises for long


def few_make_it(run: Run, s: Series) -> NDArray[np.bool_]:
    """Where a value is the mean of few, since an epoch has only begun; nowhere if the series is no running mean of each epoch."""
    nowhere, place = np.zeros(len(s), bool), _places(run, s)
    if place is None:
        return nowhere
    within, length = place
    moves = np.abs(np.diff(s.value, prepend=np.nan))
    long = np.isfinite(moves) & (length >= ROWS)
    early, late = moves[long & (within > 0) & (within <= 2)], moves[long & (within > length / 2)]
    if len(early) < 2 * EPOCHS or not len(late) or np.median(early) < CALMER * np.median(late):
        return nowhere
    return np.asarray((within < QUARTER * length) & (length >= ROWS))


def of_whole_epochs(run: Run, s: Series) -> NDArray[np.bool_]:
    """Where a value is the last of its epoch."""
    place = _places(run, s)
    return place[0] == place[1] - 1 if place is not None else np.ones(len(s), bool)


def only_wanders(run: Run, s: Series, start: int, peak: int) -> bool:
    """Whether a slow rise from one row to another, of a series that is a running mean of each epoch, leaves the epoch with no higher mean
    than the three before it had: the mean was low for a while."""
    place = _places(run, s) if peak - start >= SLOW else None
    if place is None or not few_make_it(run, s).any():
        return False
    within, length = place
    ends = np.flatnonzero(within == length - 1)
    mine = int(np.searchsorted(ends, peak))
    before = s.value[ends[max(mine - EPOCHS, 0) : mine]]
    return len(before) == EPOCHS and bool(s.value[ends[mine]] <= before.max())


def _places(run: Run, s: Series) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """(place of each value in its epoch, values of that epoch); None where no epochs were logged beside finer steps."""
    epoch = series(run, "epoch")
    rows = np.flatnonzero(epoch.usable) if epoch is not None else np.zeros(0, np.int64)
    if epoch is None or not len(rows) or len(s) < EPOCHS * ROWS:
        return None
    rows = rows[np.argsort(epoch.step[rows], kind="stable")]
    at = np.maximum(np.searchsorted(epoch.step[rows], s.step, side="right") - 1, 0)
    number = np.floor(epoch.value[rows])[at]
    begins = np.flatnonzero(np.diff(number, prepend=np.nan) != 0)
    lengths = np.diff([*begins, len(s)])
    if len(begins) < EPOCHS:
        return None
    return np.arange(len(s)) - np.repeat(begins, lengths), np.repeat(lengths, lengths)
