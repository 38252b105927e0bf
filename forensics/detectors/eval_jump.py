"""Evaluation jump

What it sees
    An evaluation metric steps to another level between two evaluations, and stays there, while training goes on as before.

How it decides
    The change between neighbouring evaluations is held against the usual change: more than eight times its median absolute
    deviation and 15 % of the level (15 points of an accuracy; five times that of its ten neighbours where that one
    change makes 70 % of the way from there to the end, which no slow turn does), lasting to the end or for five evaluations, with a training loss that
    moves by less than a third of that in the same direction.

Cannot tell
    With fewer than eight evaluations.

Folklore
    "A better number can mean worse learning": somebody changed the evaluation set, the tokenizer, or the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.inputs import surviving
from forensics.run.robust import robust_sigma
from forensics.run.series import Series, series
from parsers.tables import Run

NEEDS = ["loss.eval|acc.eval"]
LEAST, TIMES, SHARE, LASTS = 8, 8.0, 0.15, 5
ALONE, ALONE_TIMES, STEADY = 0.7, 5.0, 4.0
SMALLEST_EFFECT = f"a lasting step of {SHARE:.0%}"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The step of the evaluation."""

    step: int
    before: float
    after: float
    size: float  # difference of the logs of a loss, of the shares of a metric of hits
    metric: str  # canonical name
    alone: bool  # hits step, the evaluation loss beside them does not


def detect(run: Run) -> Iterator[Finding]:
    judged = False
    for name in ("loss.eval", "acc.eval"):
        s = series(run, name)
        rows = surviving(s) if s is not None else np.array([], np.int64)
        if s is None or len(rows) < LEAST:
            continue
        judged = True
        x = s.value[rows]
        y = np.log(x) if (x > 0).all() and name == "loss.eval" else x  # a share of hits is no ratio scale
        i = _jump(y)
        if i is None or _train(run, s, rows, i) * np.sign(y[i + 1] - y[i]) > abs(y[i + 1] - y[i]) / 3:
            continue
        size = float(y[i + 1] - y[i])
        step = int(s.step[rows[i + 1]])
        title = f"{s.tag} steps from {x[i]:.4g} to {x[i + 1]:.4g} at step {step} and stays, while training continues as before"
        first, last = int(s.step[rows[max(i - 6, 0)]]), int(s.step[rows[min(i + 7, len(rows) - 1)]])
        marks = [{"step": step, "label": "another level", "kind": "event"}]
        shown = evidence.window(s, first, last, *marks, title=s.tag, where=s.place(run, rows[i + 1]), margin=0)
        alone = name == "acc.eval" and _loss_goes_on(run, int(s.step[rows[i]]), step)
        title += "; the evaluation loss does not" if alone else ""
        facts = Facts(step, before=float(x[i]), after=float(x[i + 1]), size=size, metric=name, alone=alone)
        severity = "info" if alone else "warning"  # learning makes steps of a share of hits; another evaluation moves both
        steps, times = (step, int(s.step[rows[-1]])), (s.clock(rows[i + 1]), None)
        yield evidence.found(facts, title, steps, severity, shown, times=times)
        return
    if not judged:
        raise CannotTell(f"fewer than {LEAST} evaluations were logged")


def _jump(y: np.ndarray) -> int | None:
    """The evaluation before a lasting step out of the usual changes; None where there is none."""
    change = np.diff(y)
    usual = robust_sigma(change) + 1e-9
    i = int(np.argmax(np.abs(change)))
    size = float(change[i])
    before, after = y[max(i - LASTS, 0) : i + 1], y[i + 1 : i + 1 + LASTS]
    times = TIMES
    if _alone(y, i):  # held against its neighbours, not against the steep beginning
        beside = np.delete(change, i)[max(i - LASTS, 0) : i + LASTS]
        times, usual = ALONE_TIMES, robust_sigma(beside) + 1e-9
        if abs(size) < STEADY * _scatter(y[i + 1 :]):
            return None
    lasting = len(after) >= 2 and abs(np.median(after) - before[-1]) >= 0.6 * abs(size)
    return i if abs(size) >= max(times * usual, SHARE) and i >= 2 and lasting else None


def _scatter(y: np.ndarray) -> float:
    """Robust scatter of the evaluations after a step about their trend; 0 where they are too few to tell."""
    if len(y) < LASTS + 1:
        return 0.0
    at = np.arange(len(y))
    return robust_sigma(y, np.polyval(np.polyfit(at, y, 1), at))


def _loss_goes_on(run: Run, before: int, after: int) -> bool:
    """Whether the evaluation loss, logged at both steps, changes there no more than elsewhere; False where it was not logged."""
    s = series(run, "loss.eval")
    if s is None:
        return False
    rows = surviving(s)
    change = np.diff(s.value[rows])
    here = (s.step[rows][:-1] == before) & (s.step[rows][1:] == after)
    if not here.any() or len(change) < LEAST - 1:
        return False
    return bool(abs(change[here][0]) <= 3 * np.median(np.abs(change)))


def _alone(y: np.ndarray, i: int) -> bool:
    """Whether one change makes nearly all of the way from the level before it to the end, with four values after it at least."""
    way = float(np.median(y[-3:]) - np.median(y[max(i - 1, 0) : i + 1]))
    return len(y) - i > 4 and way * (y[i + 1] - y[i]) > 0 and abs(y[i + 1] - y[i]) >= ALONE * abs(way)


def _train(run: Run, held: Series, rows: np.ndarray, i: int) -> float:
    """Change of the training loss (log) across the same two evaluations; 0 where it was not logged."""
    s = series(run, "loss.train")
    if s is None:
        return 0.0
    a, b = int(held.step[rows[i]]), int(held.step[rows[i + 1]])
    width = max(b - a, 10 * s.interval)
    old = s.value[(s.step > a - width) & (s.step <= a) & np.isfinite(s.value)]
    new = s.value[(s.step > a) & (s.step <= b + width) & np.isfinite(s.value)]
    if not len(old) or not len(new) or np.median(old) <= 0 or np.median(new) <= 0:
        return 0.0
    return float(np.log(np.median(new) / np.median(old)))
