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
    schedule that was reset; inside an attempt the rate left its own path. It tells the shape (constant, warmup, decay), peak and length of the warmup, too;
    and for information where the rate falls at once, to half and less, from where it stood to where it stays, if it falls in no other way.

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
from forensics.run.rate_cycles import HEIGHT, JUMP, SHARE, cycles, jumps
from forensics.run.robust import median
from forensics.run.series import Series, series
from forensics.run.silent_restarts import with_silent_restarts
from parsers.tables import Run

NEEDS = ["lr"]
HALF, MOST = 0.5, 10  # unit: the mildest step that schedules are told with; bound: more are a decay in stairs
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


@dataclass(frozen=True)
class Drops(BaseFacts):
    """Falls of the rate at once: those of a step schedule, of a plateau rule, of a hand."""

    steps: tuple[int, ...]
    before: float
    after: float  # the last of them


def detect(run: Run) -> Iterator[Finding]:
    s = with_silent_restarts(run, needed(run, "lr"))
    ups = [i for i in jumps(s) if not _inside_warmup(s, i) and not _stairs(s, i) and not _ramp(s, i) and not _climbs_by_epoch(run, s, i)]
    inside = [i for i in ups if s.attempt[i] == s.attempt[i - 1]]
    planned = cycles(s, inside)
    if (top := cycles_up_to(run)) is not None:  # from low to a peak that was set or reached; higher up a cycle does not go by itself
        planned += [i for i in inside if s.value[i] <= (1 + HEIGHT) * max(top, np.max(s.value[:i]))]
    for i in [*(i for i in inside if i not in planned), *(i for i in ups if s.attempt[i] != s.attempt[i - 1]), *_returns(s)]:
        yield _finding(run, s, i)
    if rows := _drops(s):
        yield _told(run, s, rows)


def _drops(s: Series) -> list[int]:
    """Rows at which the rate falls to half and less from where it stood, and stays; none where it also falls in another way."""
    x, one = s.value, np.diff(s.attempt) == 0
    falls = np.flatnonzero((x[1:] < x[:-1]) & one) + 1
    if not 0 < len(falls) <= MOST:
        return []
    rows: list[int] = falls.tolist()
    stands = all(i >= 2 and x[i - 2] == x[i - 1] and 0 < x[i] <= HALF * x[i - 1] and (x[i : i + 2] <= x[i]).all() for i in rows)
    return rows if stands else []


def _told(run: Run, s: Series, rows: list[int]) -> Finding:
    steps, before, after = tuple(int(s.step[i]) for i in rows), float(s.value[rows[0] - 1]), float(s.value[rows[-1]])
    at = f"at step {steps[0]}" if len(rows) == 1 else f"in {len(rows)} drops, the first at step {steps[0]}, the last at step {steps[-1]}"
    marks = [{"step": step, "label": f"{s.value[i]:.3g}", "kind": "event"} for step, i in zip(steps, rows, strict=True)]
    shown = evidence.window(s, steps[0], steps[-1], *marks, title=f"{s.tag}, which falls at once", where=s.place(run, rows[0]))
    title = f"Learning rate falls from {before:.3g} to {after:.3g} {at}"
    return evidence.on_rows(s, (rows[0], rows[-1]), Drops(steps, before, after), title, "info", shown, key="drops")


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
