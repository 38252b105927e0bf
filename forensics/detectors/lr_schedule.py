"""Learning-rate schedule

What it sees
    The rate jumps, warms up hardly at all, or begins again from the start.

How it decides
    A step of the rate by more than half, and by 2 % of its peak, within one logging interval is a jump; the first values of a warmup, its even stairs or
    those from epoch to epoch, the even way up of a cycle, the drops of a step schedule, values that were all taken before one period earlier, and jumps that
    come again at regular distances, or back to the peak and down the same way (warm restarts) are schedule: two jumps from low to the same height suffice
    where the distances agree as well as the logged steps can tell, and one to no higher than before where config names a cycle. A rate that jumps in every
    fourth row has a cycle shorter than its rows are apart. A jump at the beginning of a new attempt (or of one that only a silence tells, or a rate that is
    cut off on its way down and begins again with its first values, a warmup among them or a line that tells of a loaded checkpoint beside them) is a
    schedule that was reset; inside an attempt the rate left its own path. It tells the shape (constant, warmup, decay), peak and length of the warmup, too.

Cannot tell
    Where the rate was not logged; or was rounded by the console (1e-7 prints as 0.000000).

Folklore
    "Verify that the scheduler's steps are counted in optimizer steps, not micro-batches."
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run import settings
from forensics.run.configured_rate import cycles_up_to
from forensics.run.inputs import needed
from forensics.run.plan import planned_steps
from forensics.run.rate_shape import asked_twice
from forensics.run.robust import median, walked_digit
from forensics.run.series import Series, series
from forensics.run.silent_restarts import with_silent_restarts
from parsers.tables import Run

NEEDS = ["lr"]
# of the row before; of the peak. Measured: at 0.7 of JUMP two more faulty runs, at 1.4 one less, healthy alike (docs/thresholds.md)
JUMP, SHARE, OFTEN = 1.5, 0.02, 4  # bound: so many jumps, and one in as many rows
SAME = 0.95  # share of the values that a cycle takes again; bound: one of twenty may be a corner between two logged steps
MOVES = 0.5  # bound: of its values, from one to the next; half of a period that is seen again
REGULAR = 0.1  # distances of warm restarts agree this well; not critical: logs that miss every tenth row still do (docs/thresholds.md)
LOW = 0.4  # of the peak: from below this a warm restart comes; measured: at 0.56 one of 15 faulty runs is lost (docs/thresholds.md)
HEIGHT = 0.1  # of the peak; bound: six rows of a cycle or more show its top, and a cosine loses 7 % in its first sixth
SMALLEST_EFFECT = f"a rise by more than a factor of {JUMP} and {SHARE:.0%} of the peak between two logged values, after the warmup"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A jump of the rate."""

    step: int
    before: float
    after: float
    ratio: float | None  # after over before
    at_resume: bool  # at the beginning of an attempt: a schedule that was reset
    lasts: int | None  # steps until the rate is back
    planned: int | None  # steps of the run
    attempt: int


def detect(run: Run) -> Iterator[Finding]:
    s = with_silent_restarts(run, needed(run, "lr"))
    ups = [i for i in _jumps(s) if not _inside_warmup(s, i) and not _stairs(s, i) and not _ramp(s, i) and not _climbs_by_epoch(run, s, i)]
    inside = [i for i in ups if s.attempt[i] == s.attempt[i - 1]]
    planned = _restarts(s, inside)
    if (top := cycles_up_to(run)) is not None:  # from low to a peak that was set or reached; higher up a cycle does not go by itself
        planned += [i for i in inside if s.value[i] <= (1 + HEIGHT) * max(top, np.max(s.value[:i]))]
    for i in [*(i for i in inside if i not in planned), *(i for i in ups if s.attempt[i] != s.attempt[i - 1]), *_returns(s)]:
        yield _finding(run, s, i)


def restarts(s: Series) -> list[int]:
    """Rows of a rate at which its schedule begins another cycle: warm restarts, cycles that are no fault."""
    return _restarts(s, [i for i in _jumps(s) if s.attempt[i] == s.attempt[i - 1]])


def _restarts(s: Series, inside: list[int]) -> list[int]:
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


def _jumps(s: Series) -> list[int]:
    """Rows whose rate is more than JUMP times that of the row before (in step order within an attempt)."""
    before, after = s.value[:-1], s.value[1:]
    ok = (before > 0) & np.isfinite(before) & np.isfinite(after) & (np.diff(s.step) > 0)
    least = max(SHARE * float(known.max()), 1.5 * walked_digit(known)) if len(known := s.value[np.isfinite(s.value)]) else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = np.flatnonzero(ok & (after > JUMP * before) & (after - before > least)) + 1
    return [i for i in jumps.tolist() if not asked_twice(s, i)]


def _inside_warmup(s: Series, i: int) -> bool:
    """Linear or exponential growth from the first row of the attempt up to here: no jump."""
    attempt = np.flatnonzero(s.attempt[: i + 1] == s.attempt[i])
    x, step = s.value[attempt], s.step[attempt]
    if len(attempt) < 2 or s.attempt[i] != s.attempt[i - 1]:
        return False
    per_step = np.diff(x) / np.maximum(np.diff(step), 1)
    growing = bool((np.diff(x) >= 0).all())
    return growing and (len(per_step) < 2 or float(per_step[-1]) <= 3 * median(per_step[:-1]) or len(attempt) <= 3)


def _stairs(s: Series, i: int) -> bool:
    """A warmup in stairs, one an epoch: two equal rises or more at even distances, counted from the first row of the attempt; the peak may cut the last."""
    rows = np.flatnonzero(s.attempt == s.attempt[i])
    steps, x = s.step[rows], s.value[rows]
    changes = np.flatnonzero(np.diff(x)) + 1
    falls = changes[x[changes] < x[changes - 1]]
    rises = changes[changes < (falls[0] if len(falls) else len(x))]
    if len(rises) < 2 or i not in rows[rises]:
        return False
    gaps, heights = np.diff(steps[[0, *rises]]), x[rises] - x[rises - 1]
    least = heights[:-1].min() if x[rises[-1]] >= x.max() else heights.min()
    return bool(np.ptp(gaps) <= 2 * s.interval and heights.max() - least <= HEIGHT * heights[:-1].max())


def _climbs_by_epoch(run: Run, s: Series, i: int) -> bool:
    """A warmup by a schedule that steps with the epochs: the rate changes between epochs alone, has not fallen yet, and never passes what config names."""
    epoch, peak = series(run, "epoch"), settings.number(run, "lr")
    if epoch is None or peak is None or s.attempt[i] != s.attempt[0] or s.value.max() > (1 + HEIGHT) * peak or not epoch.usable.any():
        return False
    order = np.argsort(epoch.step[epoch.usable], kind="stable")
    steps, values = epoch.step[epoch.usable][order], epoch.value[epoch.usable][order]
    number = values[np.clip(np.searchsorted(steps, s.step, "right") - 1, 0, None)]
    moves = np.diff(s.value[: i + 1])
    return bool((moves >= 0).all() and (np.diff(number[: i + 1])[moves > 0] > 0).all())


def _ramp(s: Series, i: int) -> bool:
    """A way up: the rises after it are as steep, and lead no higher than the rate has been (a cycle), or are equal to it (a line)."""
    if i + 2 >= len(s) or not (s.attempt[i - 1 : i + 3] == s.attempt[i]).all():
        return False
    rises = np.diff(s.value[i - 1 : i + 3]) / np.maximum(np.diff(s.step[i - 1 : i + 3]), 1)
    known = s.value[:i][np.isfinite(s.value[:i])]
    as_steep = rises[1:].min() * JUMP >= rises[0] and s.value[i + 2] <= (1 + HEIGHT) * known.max()
    return bool(as_steep or np.ptp(rises) <= HEIGHT * rises[0])


def _returns(s: Series) -> list[int]:
    """First rows of an attempt whose rate warms up again from far *below* where it stood, or to far above it although it was on its way down."""
    found = []
    for i in np.flatnonzero(np.diff(s.attempt)) + 1:
        same = np.flatnonzero((s.attempt == s.attempt[i - 1]) & (s.step <= s.step[i]))
        if not len(same):
            continue
        old, new = float(s.value[same[-1]]), float(s.value[i])
        ahead = s.value[(s.attempt == s.attempt[i])][: max(len(s) // 5, 5)]
        anew = new <= JUMP * old and old < float(s.value[same].max()) / (1 + HEIGHT) and float(ahead.max()) > JUMP * old
        if old > 0 and new >= 0 and len(ahead) > 2 and (anew or (new < old / JUMP and float(ahead.max()) > 2 * max(new, 1e-30))):
            found.append(int(i))
    return found


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


def _finding(run: Run, s: Series, i: int) -> Finding:
    step, resumed = int(s.step[i]), bool(s.attempt[i] != s.attempt[i - 1])
    same = np.flatnonzero((s.attempt == s.attempt[i - 1]) & (s.step <= step))
    old, new = float(s.value[same[-1]] if resumed and len(same) else s.value[i - 1]), float(s.value[i])
    back = np.flatnonzero(s.value[i:][s.attempt[i:] == s.attempt[i]] < old * JUMP)
    length = int(s.step[i + int(back[0])] - step) if len(back) and new > old else None
    title = f"Learning rate goes from {old:.3g} to {new:.3g} at step {step}, {'at the restart' if resumed else 'without a restart'}"
    facts = Facts(step, old, new, new / old if old else None, resumed, length, planned_steps(run), int(s.attempt[i]))
    marks = [{"step": step, "label": f"{old:.3g} to {new:.3g}", "kind": "event"}]
    last = step + (length or 0)
    shown = evidence.window(s, step, last, *marks, title=f"{s.tag} around step {step}", where=s.place(run, i))
    return evidence.found(facts, title, (step, last), "warning", shown, times=(s.clock(i - 1), s.clock(i)))
