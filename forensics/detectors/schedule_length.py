"""Schedule length

What it sees
    A learning rate that reaches its end long before the run does, or comes round again.

How it decides
    Against the planned steps, or where the plan is not known against those that were done: a decay that reaches its lowest
    value (1 % of the peak, or the configured minimum) before 60 % of them, and stays there; or one that falls
    to less than half of the peak and then stands at one and the same value to the end; or one that turns below a tenth of the
    peak and comes back to it, where the config names a schedule that has one way down (cosine). The factor is plan over end. Where the
    first logged rate is below a tenth of the configured one and none is higher, the configured one is the peak. Warm
    restarts and cycles, steps (a fall in fewer than four strides), a decay that goes on to the last rate, a length of the decay that the
    config names (5 % of the plan at least), and a rate that is low because a restart began its warmup anew (``lr_schedule``) are left alone.

Cannot tell
    Where the rate was not logged, or fewer than eight times; where the log tells of a scheduler that watches an evaluation (ReduceLROnPlateau).

Folklore
    Gradient accumulation of N with the scheduler stepped per micro-batch ends the schedule at 1/N of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import endings, settings
from forensics.run.configured_rate import DOWN, in_cycles, is_endless
from forensics.run.inputs import needed, surviving
from forensics.run.plan import planned_steps
from forensics.run.series import Series
from forensics.run.silent_restarts import with_silent_restarts
from parsers.tables import Run

NEEDS = ["lr"]
INPUTS = ["config"]
EARLY = 0.6  # of the plan; measured: at 0.42 one of 11 faulty runs is lost, at 0.84 two more are found, healthy alike (docs/thresholds.md)
LOW = 0.01  # of the peak: what a cosine has left in its last 6 %; not critical (docs/thresholds.md)
NOTHING = 1e-6  # of the peak; unit: a millionth, which moves no weight of 24 bits
TURNS, PEAK_AGAIN = 0.1, 0.9  # of the peak; bound: rates that are logged ten times a cycle show its turn within a tenth
GONE = 0.1  # of the configured peak; bound: a tenth of a warmup, or of the batch by which some scale the rate, is less far below it
SHORTEST = 0.05  # of the plan; bound: the shortest decay at the end of a run that anybody uses (cooldowns take 10 to 20 %)
LEAST = 8  # bound: four logged rates on the way down and four that stand
# bound: fewer strides are a step schedule, fewer equal rates a pause; unit: a decay takes half of the peak
STRIDES, STANDS, HALF = 4, 4, 0.5
DECAY_STEPS = "lr_decay_iters lr_decay_steps lr_decay_iterations decay_iters decay_steps cooldown_steps"  # Megatron, nanoGPT, NeMo, OLMo
SMALLEST_EFFECT = f"a schedule that ends before {EARLY:.0%} of the plan, or of the steps done where no plan is known"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The end of a schedule, in steps."""

    end: int
    plan: int
    factor: float  # plan over end
    again: bool  # the rate comes round again


def detect(run: Run) -> Iterator[Finding]:
    s = with_silent_restarts(run, needed(run, "lr"))
    rows = surviving(s)
    if len(rows) < LEAST:
        raise CannotTell(f"the rate was logged {len(rows)} times")
    known = planned_steps(run)
    plan = known or int(s.step[rows[-1]])
    kind = settings.setting(run, "schedule")
    if kind is not None and is_endless(kind):
        return
    if endings.events(run, "rate_cut"):
        raise CannotTell("the rate is cut where an evaluation stands still, so that its schedule has no length")
    x, step = s.value[rows], s.step[rows]
    peak, least = _peak(run, x), settings.number(run, "min_lr") or 0.0
    if least >= 0.9 * peak:
        return  # no decay is meant
    tops = np.flatnonzero(x >= 0.99 * peak)
    top = int(tops[0]) if len(tops) else 0  # a later cycle may reach as high
    one_way = kind is not None and any(c in str(kind.value).lower() for c in DOWN) and not in_cycles(run)
    turn = _turn(x, least + TURNS * (peak - least)) if one_way else None
    low = np.flatnonzero(x[top:] <= least + LOW * (peak - least))
    if turn is not None:
        top, low = 0, np.array([turn])
    floor = _floor(x[top:])
    first_low = int(low[0]) if len(low) else floor
    if first_low is None or peak <= 0 or _is_stair(x[top : top + first_low + 1]):
        return
    end = int(step[top + first_low])
    if _is_configured(run, end, int(step[top]), s.interval, plan):
        return
    if end <= 0 or end >= EARLY * plan or int(step[-1]) <= 1.15 * end:
        return
    again = bool(x[top + first_low :].max() > 0.3 * peak)
    stands = bool((x[top + first_low :][:STANDS] == x[top + first_low]).all())  # a cycle turns at once
    if again and (not (stands or turn is not None) or not known or _begins_attempt(s, rows, top + first_low)):
        return  # a cycle that was meant, for nothing says that the rate has one way down; or a restart's warmup
    if not again and _goes_on(x[top + first_low :], NOTHING * peak):
        return
    how = "and comes round again" if again else "and stays there"
    title = f"The learning rate reaches its end at step {end} of {plan} {how}"
    facts = Facts(end, plan, plan / end, again)
    row, first, last = rows[top + first_low], int(step[0]), int(step[-1])
    marks = [{"step": end, "label": f"end of the schedule: {end}", "kind": "event"}]
    shown = evidence.window(s, first, last, *marks, title=s.tag, where=s.place(run, row), margin=0)
    yield evidence.found(facts, title, (end, last), "warning", shown, times=(s.clock(row), None))


def _begins_attempt(s: Series, rows: np.ndarray, i: int) -> bool:
    """Whether the rate did not fall to row `i` of the surviving ones but began an attempt there."""
    return bool(s.attempt[rows[i]] != s.attempt[rows[i - 1]])


def _turn(x: np.ndarray, low: float) -> int | None:
    """The row of the lowest rate, below `low`, from which it climbs back stride by stride to nine tenths of the highest: a jump is a restart."""
    high = x >= PEAK_AGAIN * x.max()
    first = int(np.argmax(high))
    back = np.flatnonzero(high[first:] & (np.minimum.accumulate(x[first:]) <= low))
    if not len(back) or not back[0]:  # it is not once above `low`
        return None
    turn = first + int(np.argmin(x[first : first + back[0]]))
    return turn if first + back[0] - turn >= STRIDES else None


def _goes_on(x: np.ndarray, nothing: float) -> bool:
    """Whether the rate, low as it is, halves once more in the second half of what is left, to above `nothing`: a decay by a factor has no end."""
    return len(x) >= LEAST and nothing < x[-1] <= HALF * x[len(x) // 2]


def _floor(x: np.ndarray) -> int | None:
    """The row from which on the rate stands at one value to the end, after a decay in many strides to less than half of the peak."""
    moves = _moves(x)
    if len(moves) < STRIDES or x[-1] > HALF * x.max():
        return None
    floor = int(moves[-1]) + 1
    return floor if len(x) - floor >= STANDS else None


def _is_stair(x: np.ndarray) -> bool:
    """Whether the rate came down in a few strides and stood before the last of them: a step schedule, whose last stair has no end."""
    moves = _moves(x)
    return 0 < len(moves) < STRIDES and int(moves[-1]) - int(moves[-2] if len(moves) > 1 else -1) >= STANDS


def _moves(x: np.ndarray) -> np.ndarray:
    """Rows after which the rate changes by more than what a console that prints four digits rounds away."""
    return np.flatnonzero(np.abs(np.diff(x)) > 1e-3 * np.abs(x[:-1]))


def _is_configured(run: Run, end: int, top: int, interval: int, plan: int) -> bool:
    """Whether config names a length of the decay that ends there, and is long enough to be meant."""
    told = [settings.as_number(s.value) for s in settings.named(run, DECAY_STEPS)]
    return any(n is not None and n >= SHORTEST * plan and min(abs(n - end), abs(n + top - end)) <= 2 * interval for n in told)


def _peak(run: Run, x: np.ndarray) -> float:
    """The highest rate that was logged; the configured one, where the first row lies far below it and none is higher: the way down, or most of it,
    was over before anything was logged."""
    logged, told = float(x.max()), settings.number(run, "lr") or 0.0
    gone = x[0] == logged < GONE * told and x[-1] <= LOW * told and (x[-1] < logged or not logged)
    return told if gone else logged
