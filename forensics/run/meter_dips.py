"""Losses that a meter made: at steps of one distance the value is zero, or off by one factor, and nothing else moves.

The mean of a meter that nothing was added to is zero; a meter that begins anew with each evaluation or epoch and is still divided by a
full window is too low by the share that it lacks; a sum in place of a mean is too high by the number of its terms.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice

import numpy as np

from forensics.run.inputs import is_policy
from forensics.run.once import once
from forensics.run.robust import ROUNDED, last_digit, median, robust_sigma
from forensics.run.series import Floats, Ints, Series, names, parts, series
from forensics.spikes.medians import centred_median
from parsers.tables import Run

TERM = "loss.aux"
LEAST = 4  # bound: dips, whose three distances are one
WINDOW = 11  # values: a dip and five on either side
APART = 4  # bound: logging intervals between two dips, so that most of the neighbours are none
PAIR = 2  # bound: one zero may be the end of something; two of two metrics are four
SIGMAS = 5.0  # statistical: what stands so far off its neighbours is a candidate for a spike, too (forensics.detectors.loss_spike)
CLEAR = 0.5  # unit: in logs, half of the way down to a dip: no other value comes so low
LOOKED = 400  # bound: tags of experts and layers are many
SUMS = 10.0  # unit: an order of magnitude; a sum has more terms than that, and a hard batch seldom costs as much; less where a norm tells them apart
PINNED = 0.999  # unit: rounding of logs that print three digits
SHARED = 0.25  # bound: of that way; a batch that is easier moves the gradient norm, too (for a squared error by half of the way)


@dataclass(frozen=True)
class Dips:
    """Rows of the loss, and the factor that all of them have over their neighbours (0: exact zeros; above one: sums)."""

    rows: Ints
    factor: float
    apart: int  # steps
    level: float


def dips(run: Run, s: Series) -> Dips | None:
    """The dips of a loss that come back at even distances; a policy's loss is zero at its first update for a reason. Of a term of the loss only what is
    too high while the loss is as before: some are computed at every so many steps alone."""
    rows = np.flatnonzero(s.usable)
    x = s.value[rows]
    signed = len(x) > 0 and float(x.min()) < 0
    if len(x) < LEAST * APART or (signed and x.all()) or is_policy(run):
        return None
    x = np.abs(x)  # of a loss that goes below zero the zeros are looked for, which have no sign
    level = centred_median(x, WINDOW)
    ratio = np.divide(x, level, out=np.ones(len(x)), where=level > 0)
    term = s.name == TERM
    witness = series(run, "loss.train") if term else _norm(run)
    low = None if term else _lowest(x, ratio)
    if low is None and x.min() > 0:  # in logs a peak is a dip upside down
        low = _lowest(1 / x, 1 / np.maximum(ratio, np.finfo(float).tiny))
        if low is None or median(ratio[low]) < (SUMS if witness is None else 1 / CLEAR):
            return None
    if low is None:
        return None
    gaps = np.diff(s.step[rows[low]])
    if np.ptp(gaps) > s.interval or gaps.min() < APART * s.interval:
        return None
    factor = median(ratio[low])
    return None if _shared(run, witness, s.step[rows[low]], factor) else Dips(rows[low], factor, int(np.median(gaps)), median(level[low]))


def lifted(run: Run, s: Series) -> list[int]:
    """The rows that a meter lifted: sums; and those right behind dips, where every one lies far above its neighbours: what a meter did not print it
    prints with the next value."""
    found = dips(run, s)
    if found is None or found.factor > 1:
        return found.rows.tolist() if found is not None else []
    rows = np.flatnonzero(s.usable)
    at = np.searchsorted(rows, found.rows)
    at = at[at + 1 < len(rows)] + 1
    ratio = s.value[rows[at]] / np.maximum(centred_median(s.value[rows], WINDOW)[at], np.finfo(float).tiny)
    return rows[at].tolist() if len(at) >= LEAST and ratio.min() > 1 / CLEAR else []


def zero_at_once(run: Run) -> list[tuple[Series, Ints]]:
    """(metric, its rows) of two metrics or more that are exactly zero in the same two rows or more, however far apart, and in none other, between
    neighbours of one size: no two measurements are so by chance, what failed to read them wrote zeros."""
    zero = [(s, rows) for s in often_logged(run) if (rows := _lone_zeros(s)) is not None]
    together = Counter(tuple(s.step[rows].tolist()) for s, rows in zero)
    return [(s, rows) for s, rows in zero if together[tuple(s.step[rows].tolist())] > 1]


@once
def often_logged(run: Run) -> list[Series]:
    """The metrics that would show such zeros."""
    often = (p for n in names(run, LEAST * APART) for p in parts(run, n) if p.usable.sum() >= LEAST * APART)
    return list(islice(often, LOOKED))


def _lone_zeros(s: Series) -> Ints | None:
    rows = np.flatnonzero(s.usable)
    x = np.abs(s.value[rows])
    at = np.flatnonzero(x == 0)
    if len(at) < PAIR or np.diff(at).min() < APART or at[0] < APART or at[-1] == len(x) - 1:
        return None
    sides = np.sort([x[at - 1], x[at + 1]], axis=0)
    return rows[at] if bool((sides[0] > CLEAR * sides[1]).all()) else None


def _lowest(x: Floats, ratio: Floats) -> Ints | None:
    """The values that lie below their neighbours by one factor, clear of all others; None where there are no such."""
    zero = np.flatnonzero(x == 0)
    if len(zero):
        fine = float(np.quantile(x[x > 0], CLEAR)) > ROUNDED * last_digit(x) if (x > 0).any() else False
        return zero if len(zero) >= LEAST and fine else None
    inner = np.arange(WINDOW // 2, len(x))  # the first values fall too fast to be anyone's neighbours
    down = -np.log(ratio[inner])
    sigma = robust_sigma(down)
    low = inner[down > CLEAR * down.max()]
    if len(low) < LEAST:
        return None
    off = -np.log(ratio[low])
    alike = np.ptp(off) <= 2 * SIGMAS * sigma and off.min() > 2 * SIGMAS * sigma
    return low if alike else None


def _norm(run: Run) -> Series | None:
    """The gradient norm, or that of the one part of the model of which it was logged."""
    alone = parts(run, "grad.norm_layer")
    return series(run, "grad.norm") or (alone[0] if len(alone) == 1 else None)


def _shared(run: Run, norm: Series | None, step: Ints, factor: float) -> bool:
    """Whether the gradient norm (of a term: the loss), or else the evaluation loss, goes down or up with it, or was not logged where only it could tell
    that the batch is no easier or harder."""
    if norm is None and factor > 1:
        norm = series(run, "loss.eval")  # of the same epochs
    if norm is None:
        return factor > 0
    rows = np.flatnonzero(norm.usable & (norm.value >= 0))
    x = norm.value[rows]
    if len(x) and median(x) > PINNED * float(x.max()):
        return factor > 0  # cut to one length before it was logged
    level = centred_median(x, WINDOW)
    there = np.flatnonzero(np.isin(norm.step[rows], step) & (level > 0))
    if len(there) < LEAST:
        return factor > 0
    moved = median(x[there] / level[there])
    if factor > 1:
        return bool(moved > factor**SHARED)
    return bool(moved < (CLEAR if not factor else factor**SHARED))
