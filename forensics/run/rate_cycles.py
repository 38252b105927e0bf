"""Jumps of the learning rate, and those that a cycle makes: warm restarts, triangles, cycles of any shape."""

from __future__ import annotations

import numpy as np

from forensics.run.rate_shape import asked_twice
from forensics.run.robust import median, walked_digit
from forensics.run.series import Series

# of the row before; of the peak. Measured: at 0.7 of JUMP two more faulty runs, at 1.4 one less, healthy alike
JUMP, SHARE, OFTEN = 1.5, 0.02, 4  # bound: so many jumps, and one in as many rows
SAME = 0.95  # share of the values that a cycle takes again; bound: one of twenty may be a corner between two logged steps
MOVES = 0.5  # bound: of its values, from one to the next; half of a period that is seen again
REGULAR = 0.1  # distances of warm restarts agree this well; not critical: logs that miss every tenth row still do
LOW = 0.4  # of the peak: from below this a warm restart comes; measured: at 0.56 one of 15 faulty runs is lost
HEIGHT = 0.1  # of the peak; bound: six rows of a cycle or more show its top, and a cosine loses 7 % in its first sixth


def jumps(s: Series) -> list[int]:
    """Rows whose rate is more than JUMP times that of the row before (in step order within an attempt)."""
    before, after = s.value[:-1], s.value[1:]
    ok = (before > 0) & np.isfinite(before) & np.isfinite(after) & (np.diff(s.step) > 0)
    least = max(SHARE * float(known.max()), 1.5 * walked_digit(known)) if len(known := s.value[np.isfinite(s.value)]) else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.flatnonzero(ok & (after > JUMP * before) & (after - before > least)) + 1
    return [i for i in rows.tolist() if not asked_twice(s, i)]


def restarts(s: Series) -> list[int]:
    """Rows of a rate at which its schedule begins another cycle: warm restarts, cycles that are no fault."""
    return cycles(s, [i for i in jumps(s) if s.attempt[i] == s.attempt[i - 1]])


def cycles(s: Series, inside: list[int]) -> list[int]:
    """Those of the jumps inside attempts that belong to a cycle."""
    if (len(inside) >= 3 and _regular(s.step[inside])) or len(inside) >= max(OFTEN, len(s) / OFTEN):
        return inside  # cosine with warm restarts, cyclic; or of a cycle that is shorter than the rows are apart
    again = {*_periodic(s, inside), *_repeats(s, inside), *_triangles(s, inside), *(i for i in inside if _cycle(s, i))}
    # from low to where a warm restart went before, too near the end to show its way down
    high = [i for i in inside if s.value[i - 1] <= LOW * s.value[i]]
    later = [i for i in high if any(c < i and 0.95 <= s.value[i] / s.value[c] <= 1.05 for c in again)]
    return [i for i in inside if i in again or i in later]


def _repeats(s: Series, inside: list[int]) -> list[int]:
    """All jumps, where each comes again one period later or was made one earlier, by a rate that never rests and goes up and down through the same values
    over and over: a cycle of any shape."""
    x, n = s.value, len(s)
    if not inside or np.ptp(np.diff(s.step)) > 0 or not np.isfinite(x).all() or (np.diff(x) != 0).mean() < MOVES:
        return []
    turns = int((np.diff(np.sign(np.diff(x))) != 0).sum())
    near, i = HEIGHT * np.abs(x), inside[0]
    alike = np.flatnonzero((np.abs(x[1:] - x[i]) <= near[i]) & (np.abs(x[:-1] - x[i - 1]) <= near[i - 1])) + 1
    for p in sorted({abs(i - j) for j in alike.tolist()} - {0, 1}):
        again = np.abs(x[p:] - x[:-p]) <= near[:-p]
        once = turns <= 2 * (n / p + 1)  # a top and a bottom each
        if once and len(again) >= MOVES * p and again.mean() >= SAME and all(j >= p or j + p < n for j in inside):
            return inside
    return []


def _triangles(s: Series, inside: list[int]) -> list[int]:
    """All jumps, where the rate climbs three times from its bottoms at even distances, no steeper and no higher than at first: a triangular
    cycle (arXiv:1506.01186), whose corners fall between the logged steps."""
    moves = np.diff(s.value)
    bottoms = [0, *np.flatnonzero((moves[:-1] < 0) & (moves[1:] > 0)) + 1]
    falls = np.flatnonzero(moves < 0)
    if len(bottoms) < 3 or not len(falls) or np.ptp(np.diff(s.step[bottoms])) > 2 * s.interval:
        return []
    slopes = moves / np.maximum(np.diff(s.step), 1)
    first = slopes[: falls[0]]
    steep = all(slopes[i - 1] <= (1 + HEIGHT) * first.max() for i in inside) if len(first) else False
    return inside if steep and s.value.max() <= (1 + HEIGHT) * s.value[: falls[0] + 1].max() else []


def _periodic(s: Series, inside: list[int]) -> list[int]:
    """Jumps from low to one height, or to heights that shrink by one factor (timm), at even distances, or distances that grow by a whole factor
    (SGDR, arXiv:1608.03983), counted from the first row or the first top. A step is known to an interval: two are a distance's slack."""
    up = [i for i in inside if s.value[i - 1] <= LOW * s.value[i]]
    if len(up) < 2:
        return []
    top = int(np.nanargmax(s.value[: up[0]]))
    heights = s.value[up]
    even = np.ptp(heights) <= HEIGHT * heights.max() and s.value[top] <= (1 + HEIGHT) * heights.max()  # a warmup may hide the first top
    factors = heights / s.value[[top, *up[:-1]]]
    if not even and (factors.max() > 1 or np.ptp(factors) > HEIGHT * factors.max()):
        return []
    slack = 2 * s.interval
    for start in (0, top):
        gaps = np.diff(s.step[[start, *up]])
        factor = max(round(median(gaps[1:] / np.maximum(gaps[:-1], 1))), 1)
        off = np.abs(gaps[1:] - factor * gaps[:-1])
        exact = (off == 0).all() and np.ptp(s.value[[top, *up]]) == 0  # of a rate that is logged by epoch, where it is set
        if (gaps.min() >= 3 * slack and (off <= slack * factor).all()) or (gaps.min() >= 3 * s.interval and exact):
            return up
    return []


def _cycle(s: Series, i: int) -> bool:
    """A warm restart: from low back to the very peak, and down again the way the first cycle went."""
    attempt = np.flatnonzero(s.attempt == s.attempt[i])
    top = attempt[0] + int(np.argmax(s.value[attempt[0] : i]))
    if not 0.95 <= s.value[i] / max(float(s.value[top]), 1e-30) <= 1.05 or s.value[i - 1] > LOW * s.value[i]:
        return False
    n = min(i - top, len(s) - i)
    first, again = s.value[top : top + n], s.value[i : i + n]
    same = n > 1 and np.ptp(first) > 0 and np.allclose(again, first, rtol=1e-6, atol=0)  # to the last digit
    moved = n >= 5 and float(np.ptp(first)) > 0.1 * float(first.max())
    return same or (moved and bool(np.median(np.abs(again - first)) <= 0.1 * float(np.ptp(first))))


def _regular(steps: np.ndarray) -> bool:
    gaps = np.diff(steps)
    growth = gaps[1:] / np.maximum(gaps[:-1], 1)
    factor = median(growth)  # equal periods, or periods that grow by one factor; of two alone by a whole one
    whole = len(growth) > 1 or abs(factor - max(round(factor), 1)) <= REGULAR * factor
    return bool(whole and np.ptp(growth) <= REGULAR * max(factor, 1e-9))
