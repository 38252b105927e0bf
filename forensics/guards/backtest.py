"""Every guard over the recorded log of a run: where it would have fired, how long before the harm, and how often for nothing.

A guard begins anew with each attempt, as a process does. Its harm is the first symptom among those that it is there for, of severity
warning or worse. It caught it if it fired from `EARLY` values before until `LATE` values after it began (or until the symptom
ends). What fires before the healthy part of the run ends is a false alarm; alarms `EARLY` values apart are two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.findings import GRAVE
from forensics.guards.guard_table import GUARDS, GuardRule
from forensics.guards.replayed import fires
from forensics.run import pace
from forensics.run.series import Floats, Ints, Series, series
from parsers.tables import Run

EARLY = 20  # values; bound: a warning that is older is another one
LATE = 100  # values; bound: who is told later than this has read it off the curve


@dataclass(frozen=True)
class Backtest:
    """One guard on one run. Steps are in the run's own labels."""

    guard: str
    metric: str
    tag: str  # as logged; "" where it was not
    rule: str
    every: int  # steps between two logged values
    first: int  # step that was logged
    fired: int | None  # the step at which it would have caught the harm
    harm: str | None  # the finding
    lead: int | None  # steps from there to the first step of the harm; negative: after it
    went_on: int | None  # steps that the run did after it
    false_alarms: int
    healthy_values: int  # among which they were counted

    def says(self, harm: str) -> str:
        """What it did on this run; ``harm``: the title of the finding."""
        alarms = f"{self.false_alarms or 'no'} false alarm{'s' * (self.false_alarms != 1)} in {self.healthy_values} healthy values"
        seen = alarms if self.healthy_values else "no healthy values before it in which to count false alarms"
        if self.fired is None or self.lead is None:
            return f"It would not have caught the harm; {seen}."
        when = f"{self.lead} steps before" if self.lead > 0 else f"{-self.lead} steps into" if self.lead else "at the first step of"
        return f"It fires at step {self.fired}, {when} the harm ({harm}), with {seen}; the run went on for {self.went_on} more steps."


def backtests(run: Run, findings: Sequence[Finding[Any]]) -> list[Backtest]:
    """The guards whose metric was logged, the best first: those that caught it, with the fewest false alarms, the earliest. On a run
    without a harm every alarm is a false one."""
    harm = harms(findings)
    rows = [row for rule in GUARDS if (row := _row(run, rule, harm)) is not None]
    return sorted(rows, key=lambda r: (r.fired is None, r.false_alarms, -(r.lead or 0)))


def harms(findings: Sequence[Finding[Any]]) -> list[Finding[Any]]:
    """The grave symptoms that some guard is there for, in step order. Others, such as an end above the beginning, span the whole run."""
    caught = {kind for rule in GUARDS for kind in rule.catches}
    found = (f for f in findings if f.severity in GRAVE and f.first_step is not None and f.kind in caught)
    return sorted(found, key=lambda f: f.first_step or 0)


def _row(run: Run, rule: GuardRule, all_harms: Sequence[Finding[Any]]) -> Backtest | None:
    known = _values(run, rule.metric)
    if known is None:
        return None
    tag, every, attempt, step, value = known
    hit = np.concatenate([fires(rule, part) for part in np.split(value, np.flatnonzero(np.diff(attempt)) + 1)])
    at = step[hit]
    harm = next((f for f in all_harms if f.kind in rule.catches), None)
    begins = all_harms[0].first_step if all_harms else None
    healthy = step < begins - EARLY * every if begins is not None else np.ones(len(step), bool)
    caught, lead = None, None
    if harm is not None and harm.first_step is not None:
        last = max(harm.last_step or 0, harm.first_step + LATE * every)
        within = at[(at >= harm.first_step - EARLY * every) & (at <= last)]
        if len(within):
            caught, lead = int(within[0]), harm.first_step - int(within[0])
    return Backtest(
        rule.name, rule.metric, tag, rule.says, every, int(step.min()), caught, harm.id if harm and caught is not None else None, lead,
        int(step.max()) - caught if caught is not None else None, _apart(np.flatnonzero(hit & healthy)), int(healthy.sum()),
    )  # fmt: skip


def _values(run: Run, metric: str) -> tuple[str, int, np.ndarray, Ints, Floats] | None:
    """Tag, interval, attempts, steps and values, by attempt and step. Where they are not logged, the time of a step is worked out from the
    clock, and the ratio of updates to weights from their norms."""
    s = series(run, metric)
    if s is not None and len(s):
        return s.tag, s.interval, s.attempt, s.step, s.value
    if metric == "upd.ratio":
        return _quotient(series(run, "upd.norm"), series(run, "param.norm"))
    s = series(run, "loss.train") if metric == "time.step" else None
    if s is None or len(s) < 2:
        return None
    p = pace.pauses(s)
    keep = np.flatnonzero(np.isfinite(p.a_step) & ~pace.stopped(run, s, p))
    rows = p.row[1:][keep]
    return ("clock of the log", s.interval, s.attempt[rows], s.step[rows], p.a_step[keep]) if len(rows) else None


def _quotient(a: Series | None, b: Series | None) -> tuple[str, int, np.ndarray, Ints, Floats] | None:
    """One series over another, where both were logged at a step of an attempt."""
    if a is None or b is None:
        return None
    x, y = ({(t, n): i for i, (t, n) in enumerate(zip(s.attempt.tolist(), s.step.tolist(), strict=True))} for s in (a, b))
    both = [(i, y[k]) for k, i in x.items() if k in y and b.value[y[k]] > 0]
    if not both:
        return None
    i, j = np.array(both).T
    return f"{a.tag} / {b.tag}", a.interval, a.attempt[i], a.step[i], a.value[i] / b.value[j]


def _apart(rows: Ints) -> int:
    """How many alarms these rows are."""
    return int(np.sum(np.diff(rows) > EARLY)) + 1 if len(rows) else 0
