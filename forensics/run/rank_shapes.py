"""How the ranks' values of one metric part: equal until a step, one rank apart, all drifting; pure functions on a matrix.

Notation: x[i, j] is the value of rank j at step i. What is common to all ranks (the curve) is taken off by the median over
ranks, so that d[i, j] holds what is a rank's own; its robust spread is the noise against which a rank may be apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from forensics.run.robust import median, robust_sigma
from forensics.run.series import Floats

EQUAL = 1e-5  # relative: rounding of logs that print six digits
LEAST, SIDE = 20, 10  # common steps: two sides; steps on each side of a change
HALF_AGAIN = 0.5  # unit: of two ranks, the one that costs half as much again; less may be what each of them reads
NOISES, SURE = 2.0, 8.0  # noises of one value that a lasting difference must have; standard errors
SPIKE, TALL = 15.0, 0.5  # noises and share by which a rank stands out alone for a few steps
OWN = 2.0  # unit: twice; of eight ranks the range of one step is 2.9 noises, and neighbours of one rank differ by 1
DRIFT, RISES = 3.0, 6  # the ranks' spread in the last eighth against the first; how many of the seven changes rise


@dataclass(frozen=True)
class Shape:
    pattern: (
        str  # parts (equal until then) | jump (one rank, from a step on) | apart (one rank, always) | drift (all) | spike (one, briefly)
    )
    column: int | None  # the rank's column; None where no single rank is to blame
    row: int  # where it begins
    size: float  # how far apart, with its sign: a difference of logarithms, else a share of the usual value
    relative: float  # the same against the ranks' median
    noises: float  # the same in noises of one value


def equal_share(x: Floats) -> float:
    """Share of steps at which all ranks logged the same number."""
    return float((np.ptp(x, axis=1) <= EQUAL * np.abs(x).max(axis=1)).mean())


def parts(x: Floats) -> Shape | None:
    """Ranks that logged the same numbers for at least a fifth of the run, in one stretch from the start, and then other ones."""
    same = np.ptp(x, axis=1) <= EQUAL * np.abs(x).max(axis=1)
    different = np.flatnonzero(~same)
    if not len(different):
        return None
    first = int(different[0])
    after = same[first:]
    if first < max(SIDE, 0.1 * len(x)) or len(after) < SIDE or float(after.mean()) > 0.5:
        return None
    gap = np.ptp(x[first:], axis=1)
    level = np.abs(np.median(x[first:], axis=1)) + 1e-30
    return Shape("parts", _odd_one(x, first), first, median(gap), median(gap / level), np.inf)


def _odd_one(x: Floats, first: int) -> int | None:
    """With three ranks or more, the one that left the others, where the others stay equal."""
    if x.shape[1] < 3:
        return None
    tail = x[first:]
    middle = np.median(tail, axis=1, keepdims=True)
    off = (np.abs(tail - middle) > EQUAL * np.abs(middle)).mean(axis=0)
    return int(np.argmax(off)) if (off > 0.5).sum() == 1 else None


def one_apart(x: Floats, floor: float) -> Shape | None:
    """One rank whose own part steps to another level, or stands apart from the first step on; `floor`: relative, at least.

    Positive values are compared by their ratios: noise shrinks with a loss that falls.
    """
    ratios = bool((x > 0).all())
    y = np.log(x) if ratios else x / (median(np.abs(x)) + 1e-30)
    two = x.shape[1] == 2
    d = np.column_stack([y[:, 0] - y[:, 1], y[:, 1] - y[:, 0]]) if two else y - np.median(y, axis=1, keepdims=True)
    found = []
    for j in range(x.shape[1]):
        row = split(d[:, j])
        before, after = d[:row, j], d[row:, j]
        rest = np.r_[before - np.median(before), after - np.median(after)]
        found.append(_shift(d, j, row, float(np.median(after) - np.median(before)), rest, min(len(before), len(after))))
        if not two:
            level = median(d[:, j])
            found.append(_shift(d, j, 0, level, d[:, j] - level, len(d)))
    shapes = [(replace(s, relative=float(np.expm1(s.relative)) if ratios else s.relative), errors) for s, errors in found]
    known = [s for s, errors in shapes if s.noises >= NOISES and errors >= SURE and s.relative >= floor]
    if not known:
        return _always_above(d) if two and ratios else None
    best = max(known, key=lambda s: (s.pattern == "jump", s.noises))
    if not two:
        return best
    moved = _who_moved(y, best.row)
    return replace(best, column=moved, size=best.size if moved in (best.column, None) else -best.size)


def _always_above(d: Floats) -> Shape | None:
    """Of two ranks the one that costs half as much again in the middle, and no less than the other at any step: by chance once in 2^20."""
    for j in range(2):
        level = float(np.expm1(median(d[:, j])))
        if level >= HALF_AGAIN and d[:, j].min() > 0:
            noise = robust_sigma(d[:, j])
            return Shape("apart", j, 0, level, level, median(d[:, j]) / noise if noise > 0 else np.inf)
    return None


def alone(x: Floats) -> Shape | None:
    """One of three ranks or more that stands far above all others for less than SIDE steps: its batch, or its device."""
    if x.shape[1] < 3 or not (x > 0).all():
        return None
    d = np.log(x) - np.median(np.log(x), axis=1, keepdims=True)
    row, j = np.unravel_index(int(d.argmax()), d.shape)
    size, noise = float(d[row, j]), robust_sigma(d.ravel())
    high = d[:, j] > size / 2
    others = float(np.delete(d, j, axis=1)[high].max())
    if size < max(SPIKE * noise, np.log1p(TALL)) or int(high.sum()) >= SIDE or others > size / 2:
        return None
    return Shape("spike", int(j), int(row), size, float(np.expm1(size)), size / noise if noise > 0 else np.inf)


def _shift(d: Floats, j: int, row: int, shift: float, rest: Floats, n: int) -> tuple[Shape, float]:
    """How rank j's own part is off, from `row` on (0: throughout), and in how many standard errors; `rest`: what the rank does
    besides, `n`: steps on the shorter side."""
    noise = _noise(d, j, row or None)
    noises = abs(shift) / noise if noise > 0 else np.inf
    errors = float(noises * np.sqrt(max(n / _memory(rest), 0.0)) / 2)
    return Shape("jump" if row else "apart", j, row, shift, abs(shift), noises), errors


def _memory(rest: Floats) -> float:
    """Steps after which a value is new: (1 + r) / (1 - r) with the lag-one correlation r, as for an AR(1) process."""
    z = np.clip(rest, *np.percentile(rest, [1, 99]))
    spread = float((z**2).sum())
    r = float((z[1:] * z[:-1]).sum()) / spread if spread > 0 else 0.0
    r = min(max(r, 0.0), 0.999)
    return (1 + r) / (1 - r)


def _noise(d: Floats, j: int, row: int | None) -> float:
    """Of one value of a rank's own part: the larger of the others' and its own before it moved; of two ranks also after it, for what both scatter by
    grows, as a share, with a loss that comes near zero."""
    others = np.delete(d, j, axis=1) if d.shape[1] > 2 else d[row or 0 :, j : j + 1]
    own = d[:row, j] if row else d[:, j]
    return max(robust_sigma(others.ravel()), robust_sigma(own))


def split(y: Floats) -> int:
    """The split that leaves the smallest sum of squares, at least SIDE values on each side; values cut at 1 % and 99 % first."""
    z = np.clip(y, *np.percentile(y, [1, 99]))
    total, n = np.cumsum(z), len(z)
    k = np.arange(SIDE, n - SIDE + 1)
    left, right = total[k - 1], total[-1] - total[k - 1]
    return int(k[np.argmax(left**2 / k + right**2 / (n - k))])


def _who_moved(x: Floats, row: int) -> int | None:
    """Of two ranks, the one whose own curve breaks at `row`; None where both do, or neither is clearly the one."""
    width = max(SIDE, len(x) // 20)
    before, after = x[max(row - width, 0) : row], x[row : row + width]
    moved = np.abs(np.median(after, axis=0) - np.median(before, axis=0))
    return int(np.argmax(moved)) if moved.max() > 3 * moved.min() else None


def drift(x: Floats, floor: float) -> Shape | None:
    """The spread between all ranks grows with the run: replicas that no longer share their weights."""
    relative = np.ptp(x, axis=1) / (np.abs(np.median(x, axis=1)) + 1e-30)
    if len(relative) < 8 * SIDE:
        return None
    eighths = np.array([median(q) for q in np.array_split(relative, 8)])
    times = eighths[-1] / max(eighths[0], 1e-30)
    if times < DRIFT or eighths[-1] < floor or int((np.diff(eighths) > 0).sum()) < RISES:
        return None
    last = x[-(len(x) // 8) :]  # what neighbouring batches of one rank differ by, those of two ranks do as well
    if median(np.ptp(last, axis=1)) < OWN * median(np.abs(np.diff(last, axis=0))):
        return None
    return Shape("drift", None, len(x) // 8, float(eighths[-1]), float(eighths[-1]), float(times))
