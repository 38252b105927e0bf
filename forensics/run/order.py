"""The rows of one metric as a curve: by attempt and step, one value a step, whatever order and however often a file has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

OF_SEVERAL = 3  # values of one step side by side that are no value and its second writing
RUN_MEAN = 2e-4  # relative: how near a value is to the mean of all before it, where a log rounds to four digits
LEAST_MEAN = 4  # values: of fewer, a mean is too easily met
PASSES = 0.2  # share of rows whose step comes again in another pass from which on a file counts steps anew instead of writing some again


class Curve(NamedTuple):
    """``row``: the rows that stand for the steps; ``value`` at them, the mean of ``of`` values; ``summary``: rows left out as
    means over the run."""

    row: Ints
    value: Floats
    of: Ints
    summary: Ints = np.zeros(0, np.int64)


def curve(step: Ints, attempt: Codes, value: Floats, source: Codes, *, state: bool = False) -> Curve:
    """One value a step and attempt.

    Values of a step that stand side by side are those of one measurement (the batches of an evaluation, the micro-batches of a step):
    their mean; of a `state` (a rate, a counter) the last. A step that comes again later was written again: the last one counts.
    A second value that is the mean of all before it is the summary of the run (transformers' ``train_loss``, under the
    name of the step's loss): left out. Where the same steps come again and again with other values (each epoch from 0, two
    logs of two launches), no value is another's second writing: all stay, in the order of the file.
    """
    if _grows(step, attempt):
        return Curve(np.arange(len(step)), value, np.ones(len(step), np.int64))
    rows = np.argsort(attempt, kind="stable")
    step, attempt, value, source = step[rows], attempt[rows], value[rows], source[rows]
    starts = np.flatnonzero(np.r_[True, (np.diff(step) != 0) | (np.diff(attempt) != 0)])
    order = np.lexsort((starts, step[starts], attempt[starts]))
    first, ends = starts[order], np.r_[starts[1:], len(step)][order]
    again = np.flatnonzero((np.diff(step[first]) == 0) & (np.diff(attempt[first]) == 0))  # blocks that a later one replaces
    other = again[~np.isclose(value[first[again]], value[first[again + 1]], rtol=0, atol=0, equal_nan=True)]
    apart = other[source[first[other]] != source[first[other + 1]]]  # said by another file
    files = np.bincount(source[starts])
    if (len(other) > PASSES * len(starts) and _is_in_passes(step[starts], attempt[starts])) or len(apart) > PASSES * files[files > 0].min():
        return Curve(rows, value, np.ones(len(step), np.int64))
    keep = np.ones(len(first), bool)
    keep[again] = False
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.add.reduceat(value, starts)[order][keep] / (ends - first)[keep]
    found = _stand_for(first[keep], ends[keep], value, means, attempt, state)
    return found._replace(row=rows[found.row], summary=rows[found.summary])


def _grows(step: Ints, attempt: Codes) -> bool:
    change = np.diff(attempt)
    return bool(((change > 0) | ((change == 0) & (np.diff(step) > 0))).all())


def _is_in_passes(step: Ints, attempt: Codes) -> bool:
    """Do the steps rise, fall back now and then, and rise again?"""
    change = np.diff(step)[np.diff(attempt) == 0]
    return 0 < int((change < 0).sum()) < 0.5 * len(change)


def _stand_for(first: Ints, ends: Ints, value: Floats, means: Floats, attempt: Codes, state: bool) -> Curve:
    """The value of each block of rows ``first`` to ``ends`` that are of one step."""
    of, own, last = ends - first, value[first], value[ends - 1]
    several = ((of >= OF_SEVERAL) | (of > 1) & bool((of > 1).mean() >= 0.5)) & (not state)
    summary = (of == 2) & ~several & (not state) & _is_run_mean(last, own, attempt[first])
    row = np.where(several | summary, first, ends - 1)
    return Curve(row, np.where(several, means, np.where(summary, own, last)), np.where(several, of, 1), ends[summary] - 1)


def _is_run_mean(last: Floats, own: Floats, attempt: Codes) -> NDArray[np.bool_]:
    """Where a second value is the mean of all that the attempt has logged until then."""
    known = np.isfinite(own)
    total, n = np.cumsum(np.where(known, own, 0.0)), np.cumsum(known)
    begins = np.flatnonzero(np.diff(attempt, prepend=attempt[:1] - 1))
    before = np.repeat(begins, np.diff(np.r_[begins, len(own)]))
    total, n = total - np.r_[0.0, total][before], n - np.r_[0, n][before]
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.abs(last - total / n) <= RUN_MEAN * np.abs(last)
    return np.asarray(near & (n >= LEAST_MEAN) & (last != own))


def alive_rows(step: Ints, attempt: NDArray[np.int32]) -> NDArray[np.bool_]:
    """False where a later attempt begins at or before the step: that row's work was done again."""
    alive = np.ones(len(step), bool)
    if (attempt == attempt[:1]).all():
        return alive
    attempts = np.unique(attempt)
    begins = np.array([step[attempt == a].min() for a in attempts])
    for a in attempts[:-1]:
        later = begins[attempts > a].min()
        alive[(attempt == a) & (step >= later)] = False
    return alive


def interval(step: Ints, attempt: NDArray[np.int32]) -> int:
    """The usual distance of two logged steps."""
    gaps = np.diff(step)[np.diff(attempt) == 0]
    gaps = gaps[gaps > 0]
    return max(int(np.median(gaps)), 1) if len(gaps) else 1
