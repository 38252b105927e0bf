"""Schedule length

What it sees
    A learning rate that reaches its end long before the run does, or comes round again.

How it decides
    Against the planned steps: a decay that reaches its lowest value (1 % of the peak, or the configured minimum) before 60 % of the plan, and
    stays there or rises again. The factor is plan over end. Warm restarts and cycles that the config names are left alone.

Cannot tell
    Where the rate was not logged, or the plan is not known.

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
from forensics.run import settings
from forensics.run.inputs import needed, surviving
from forensics.run.plan import planned_steps
from parsers.tables import Run

NEEDS = ["lr"]
EARLY = (
    0.6  # of the plan; measured: at 0.42 one of nine faulty runs is lost, at 0.84 two more are found, healthy alike (docs/thresholds.md)
)
LOW = 0.01  # of the peak: what a cosine has left in its last 6 %; not critical (docs/thresholds.md)
LEAST = 20  # bound: the end is then known to a 20th of the run; measured: at 28 two of nine faulty runs and the one healthy are lost
CYCLES = ("restart", "cyclic", "cycle", "sgdr", "wsd", "inverse", "step", "plateau")
SMALLEST_EFFECT = f"a schedule that ends before {EARLY:.0%} of the plan"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The end of a schedule, in steps."""

    end: int
    plan: int
    factor: float  # plan over end
    again: bool  # the rate comes round again


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "lr")
    plan = planned_steps(run)
    if plan is None:
        raise CannotTell("the planned number of steps is not known")
    kind = settings.setting(run, "schedule")
    rows = surviving(s)
    if len(rows) < LEAST or (kind is not None and any(c in str(kind.value).lower() for c in CYCLES)):
        return
    x, step = s.value[rows], s.step[rows]
    peak, least = float(x.max()), settings.number(run, "min_lr") or 0.0
    if least >= 0.9 * peak:
        return  # no decay is meant
    top = int(np.flatnonzero(x >= 0.99 * peak)[0])  # a later cycle may reach as high
    low = np.flatnonzero(x[top:] <= least + LOW * (peak - least))
    if not len(low) or peak <= 0:
        return
    end = int(step[top + int(low[0])])
    if end <= 0 or end >= EARLY * plan or int(step[-1]) <= 1.15 * end:
        return
    again = bool(x[top + int(low[0]) :].max() > 0.3 * peak)
    how = "and comes round again" if again else "and stays there"
    title = f"The learning rate reaches its end at step {end} of {plan} {how}"
    facts = Facts(end, plan, plan / end, again)
    row, first, last = rows[top + int(low[0])], int(step[0]), int(step[-1])
    marks = [{"step": end, "label": f"end of the schedule: {end}", "kind": "event"}]
    shown = evidence.window(s, first, last, *marks, title=s.tag, where=s.place(run, row), margin=0)
    yield evidence.found(facts, title, (end, last), "warning", shown, times=(s.clock(row), None))
