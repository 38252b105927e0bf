"""After a restart, without ids: do the ups and downs of the loss say that data came again?

A batch is hard or easy in about the same way whenever it is seen, so the residuals of a stretch of repeated data follow
those of the earlier pass. The residuals after the restart are correlated with every stretch before it; the best match
names the offset in steps. How high the best match of unrelated data would be is measured on surrogates of the new
residuals with the same spectrum (phases drawn at random: Theiler et al., Physica D 58, 1992), whose highest correlations
follow a Gumbel law fitted to 200 of them: smoothed losses, whose neighbours resemble each other, do not cry wolf.

Seen data also give a lower loss, which joins the old curve where new data begin: ``dip``. How deep such a dip would be
without a restart is measured at all other places of the same curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forensics.batches.resume_data import BY_LOSS, Change, moved
from forensics.run.robust import median, robust_sigma
from forensics.run.series import Series
from forensics.spikes import excursions, medians

Floats = NDArray[np.float64]
VALUES, LONGEST = 40, 200  # values compared
EDGE = 15  # values left out at the beginning of an attempt: two attempts that both begin with a decay resemble each other there
LEAST = VALUES + EDGE  # values after a restart, below which nothing is compared
ALPHA, CORRELATION = 0.001, 0.3
ATTEMPTS, BACK = 6, 3000  # earlier attempts looked at besides the first; values at either end of each
DIP_ALPHA, DIP_SIGMA, NEAR = 0.01, 3.0, 3000
SURROGATES, SEED = 200, 1
SAME, OTHER = 0.5, 0.25  # correlation of steps done twice with the same batches at least, with others at most


@dataclass(frozen=True)
class Match:
    """The best match of a stretch: its correlation, where it begins in the earlier pass, and the chance of such a one."""

    correlation: float
    at: int
    p: float


def residuals(values: Floats) -> Floats:
    """What the loss has beside its course: ln(value) less the median of 15 around it, extremes held in, in units of one."""
    y, _ = excursions.scaled(values)
    rest = y - medians.centred_median(y, 15)
    rest = np.clip(rest, *np.percentile(rest, [1, 99]))
    spread = float(rest.std())
    return np.asarray((rest - rest.mean()) / spread if spread > 0 else rest * 0.0)


class Past(NamedTuple):
    """A series made ready to be compared with stretches of n values: its spectrum, and the spread of its stretches."""

    n: int
    width: int
    spectrum: NDArray[np.complex128]
    spread: Floats  # (L - n + 1,)


def prepared(past: Floats, n: int) -> Past:
    width = 1 << (len(past) + n - 1).bit_length()
    sums = np.concatenate([[0.0], np.cumsum(past)])
    squares = np.concatenate([[0.0], np.cumsum(past**2)])
    variance = (squares[n:] - squares[:-n]) - (sums[n:] - sums[:-n]) ** 2 / n
    return Past(n, width, np.fft.rfft(past, width), np.sqrt(np.maximum(variance, 1e-9 * n)))


def correlations(past: Past, now: Floats) -> Floats:
    """Pearson's correlation of `now` with every stretch of the past of its length. Shape (..., n) -> (..., L - n + 1)."""
    x = now - now.mean(axis=-1, keepdims=True)
    crossed = np.fft.irfft(past.spectrum * np.conj(np.fft.rfft(x, past.width)), past.width)[..., : len(past.spread)]
    return np.asarray(crossed / (past.spread * np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)))


def surrogates(x: Floats, how_many: int, rng: np.random.Generator) -> Floats:
    """Noise with the spectrum of x. Shape (n,) -> (how_many, n)."""
    spectrum = np.abs(np.fft.rfft(x))
    phases = np.exp(2j * np.pi * rng.random((how_many, len(spectrum))))
    return np.asarray(np.fft.irfft(spectrum * phases, len(x), axis=1))


def best_match(past: Past, now: Floats, allowed: NDArray[np.bool_] | None = None) -> Match:
    """The stretch of the past that `now` follows best, of the places that are allowed."""
    found = correlations(past, now)
    allowed = np.ones(len(found), bool) if allowed is None else allowed
    if not allowed.any():
        return Match(0.0, 0, 1.0)
    at = int(np.argmax(np.where(allowed, found, -2)))
    z = float(np.arctanh(min(found[at], 0.999))) * (past.n - 3) ** 0.5
    if found[at] <= 0 or len(found) * math.exp(-z * z / 2) > 1:
        return Match(float(found[at]), at, 1.0)  # white noise of this length does as well, and no other noise does less
    rng = np.random.default_rng(SEED)
    drawn = np.array_split(surrogates(now, SURROGATES, rng), max(SURROGATES * past.width >> 20, 1))  # some MiB at a time
    highest = np.concatenate([correlations(past, x)[:, allowed].max(axis=1) for x in drawn])
    z = np.arctanh(np.clip(highest, -0.999, 0.999))
    scale = max(float(z.std()) * 6**0.5 / np.pi, 1e-6)
    middle = float(z.mean()) - 0.5772 * scale
    x = float(np.arctanh(np.clip(found[at], -0.999, 0.999)))
    return Match(float(found[at]), at, float(-np.expm1(-np.exp(-(x - middle) / scale))))


def by_residuals(s: Series, attempt: int, restarts: int, epoch: float | None = None) -> Change | None:
    """What the loss alone says of the restart that begins an attempt; None where nothing, or where it cannot tell.

    `restarts`: how many are judged in this run, for the correction; `epoch`: its length in steps, where known.
    """
    new = np.flatnonzero((s.attempt == attempt) & np.isfinite(s.value))
    if len(new) < LEAST:
        return None
    begin = int(s.step[new[0]])
    now = residuals(s.value[new])[EDGE : EDGE + LONGEST]
    steps = s.step[new][EDGE : EDGE + LONGEST]
    found: list[tuple[Match, int]] = []
    for old in _stretches(s, attempt):
        if len(old) <= len(now):
            continue
        offset = steps[0] - s.step[old[: len(old) - len(now) + 1]]
        past = residuals(s.value[old])
        ready = prepared(past, len(now))
        if (correlations(ready, now)[offset == 0] > SAME).any():
            return None  # the steps that were done twice had the same batches
        match = best_match(ready, now, np.abs(offset) > s.interval)
        place = int(offset[match.at])
        if match.p <= ALPHA and not _before_too(past, s.step[old], begin, place, match, len(now), epoch):
            found.append((match, place))
    if found:
        match, place = min(found, key=lambda x: x[0].p)
        p = min(match.p * len(found) * restarts, 1.0)
        if p <= ALPHA and match.correlation >= CORRELATION:
            return _change(s, attempt, begin, place, match.correlation, p)
    return _others(s, new, attempt, begin)


def _stretches(s: Series, attempt: int) -> list[NDArray[np.int64]]:
    """Rows of the earlier attempts that are searched: the first one and the last six, of long ones both ends."""
    found: list[NDArray[np.int64]] = []
    for earlier in [*range(min(attempt, 1)), *range(max(attempt - ATTEMPTS, 1), attempt)]:
        rows = np.flatnonzero((s.attempt == earlier) & np.isfinite(s.value))
        found += [rows] if len(rows) <= 2 * BACK else [rows[:BACK], rows[-BACK:]]
    return found


def _before_too(past: Floats, step: NDArray[np.int64], begin: int, offset: int, match: Match, n: int, epoch: float | None) -> bool:
    """True where the order repeated like this before the restart as well, or the offset is whole epochs."""
    if offset <= 0:
        return False
    if epoch and abs(offset / epoch - round(offset / epoch)) * epoch <= 1.5 and round(offset / epoch) >= 1:
        return True
    ends = int(np.searchsorted(step, begin))
    earlier = int(np.searchsorted(step, step[ends - 1] - offset)) if ends else 0
    n = min(n, earlier + 1, ends)
    if n < VALUES or step[earlier] != step[ends - 1] - offset:
        return False
    before = float(np.corrcoef(past[ends - n : ends], past[earlier + 1 - n : earlier + 1])[0, 1])
    return bool(before > max(0.5 * match.correlation, 3 / n**0.5))


def _change(s: Series, attempt: int, begin: int, offset: int, correlation: float, p: float) -> Change:
    side = "before" if offset > 0 else "later"
    lines = (
        f"correlation {correlation:.2f} of the ups and downs with those {abs(offset)} steps {side}",
        f"chance that unrelated data agree so well anywhere: {p:.1g}",
    )
    start = offset > 0 and begin - offset <= int(s.step.min()) + s.interval
    return moved(attempt, begin, offset, how=BY_LOSS, p=p, lines=lines, from_start=start)


def _others(s: Series, new: NDArray[np.int64], attempt: int, begin: int) -> Change | None:
    """Steps that were done again from the same state, whose ups and downs are not those of the first time.

    The first of them is done with the very weights of before: an equal loss there is an equal batch. Where the level
    differs the state does, and nothing can be said. Only with one value a step.
    """
    if s.interval > 1 or s.smoothing != "none":
        return None
    old = np.flatnonzero((s.attempt == attempt - 1) & np.isfinite(s.value))
    _, i, j = np.intersect1d(s.step[old], s.step[new], return_indices=True)
    n = len(i)
    if n < VALUES or len(old) < VALUES:
        return None
    was, now = s.value[old][i], s.value[new][j]
    spread = robust_sigma(was - now)
    if abs(was[0] - now[0]) < 0.05 * spread or abs(np.median((was - now)[:VALUES])) > 0.5 * spread:
        return None
    first, second = residuals(s.value[old])[i], residuals(s.value[new])[j]
    if first.std() == 0 or second.std() == 0:
        return None
    c = float(np.corrcoef(first, second)[0, 1])
    if c > OTHER or np.tanh(np.arctanh(c) + 2.6 / (n - 3) ** 0.5) > SAME:
        return None
    text = f"does {n} steps again, and their ups and downs are others: other batches, or another random state"
    lines = (f"correlation {c:.2f} of the same steps in both attempts; the same batches give more than {SAME}",)
    return Change("reshuffled", attempt, begin, text, how=BY_LOSS, lines=lines)


@dataclass(frozen=True)
class Dip:
    """A lower loss from the restart to step `until`, where it joins the old curve; `share` of the loss; `p` of chance."""

    until: int
    share: float
    p: float


def dip(s: Series, attempt: int) -> Dip | None:
    """A stretch from the restart on that lies below the curve before *and* after it; None where there is none."""
    path = np.flatnonzero((s.attempt <= attempt) & np.isfinite(s.value))
    begin = int(s.step[s.attempt == attempt].min())
    path = path[(s.attempt[path] == attempt) | (s.step[path] < begin)]
    path = path[np.argsort(s.step[path], kind="stable")]
    b = int(np.searchsorted(s.step[path], begin))
    path = path[max(b - NEAR, 0) : b + NEAR]
    y, logs = excursions.scaled(s.value[path])
    b = min(b, NEAR)
    side = 25
    lengths = [n for n in (25, 40, 64, 100, 160, 250, 400, 640, 1000) if b + n + side <= len(y)]
    if b < side or not lengths or not logs or len(y) < 8 * side:
        return None
    starts = np.arange(side, len(y) - side)
    beside, eight = medians.rolling_median(y, side), medians.rolling_median(y, 8)
    here = int(b - side)
    away = np.abs(starts - b) > side
    score, deepest = np.full(len(starts), -np.inf), np.full(len(lengths), -np.inf)
    for row, n in enumerate(lengths):
        at = starts[starts + n + side <= len(y)]
        low = medians.rolling_median(y, n)[at + n - 1]
        depth = 0.5 * (beside[at - 1] + beside[at + n + side - 1]) - low
        deepest[row] = depth[here]
        score[: len(at)] = np.maximum(score[: len(at)], _over(depth, away[: len(at)]))
    score = np.minimum(score, _over(eight[starts - 1] - eight[np.minimum(starts + 7, len(y) - 1)], away))
    others = score[away & np.isfinite(score)]
    if len(others) < 100 or not np.isfinite(score[here]):
        return None
    best = int(np.argmax(deepest))
    p = (1 + int((others >= score[here]).sum())) / (1 + len(others))
    if p > DIP_ALPHA or score[here] < DIP_SIGMA:
        return None
    return Dip(int(s.step[path[b + lengths[best] - 1]]), float(-np.expm1(-deepest[best])), p)


def _over(x: Floats, usual: NDArray[np.bool_]) -> Floats:
    """How many robust standard deviations x lies above the median of its usual values."""
    middle = median(x[usual]) if usual.any() else 0.0
    spread = robust_sigma(x[usual], middle) if usual.any() else 0.0
    return (x - middle) / spread if spread > 0 else np.full(len(x), -np.inf)
