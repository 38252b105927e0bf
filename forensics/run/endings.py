"""How the run began and ended: the label of its first step, planned length, what its lines tell."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from forensics.run.once import once
from forensics.run.plan import planned_steps
from forensics.run.series import series
from parsers import arrow
from parsers.tables import Run

CLOSING = ("finished", "train_end")  # kinds of lines that say so
DONE = re.compile(r"\b(?:FINISHED|COMPLETED)\b", re.I)


@once
def step_origin(run: Run) -> int:
    """The label of the first optimizer step: 0 where the log or a manifest counts from 0, else 1."""
    s = series(run, "loss.train") or series(run, "loss.eval")
    first = int(s.step.min()) if s is not None and len(s) else 1
    listed = run.tables["batches"]["step"].drop_null()
    if len(listed):
        first = min(first, int(arrow.values(listed).min()))
    return 0 if first == 0 else 1


def last_step(run: Run) -> int | None:
    return max((a["steps"][1] for a in run.attempts), default=None)


def finished(run: Run) -> bool:
    """A closing line, an exit record of 0, a tracker's word, or the planned length says that the last attempt came to its end."""
    final = of_attempt(run, len(run.attempts) - 1)
    closed = any(e["kind"] in CLOSING for e in final)
    done = any((e["kind"] == "exit" and "code 0" in e["text"]) or (e["kind"] == "status" and DONE.search(e["text"])) for e in final)
    return closed or done or reached_plan(run)


def reached_plan(run: Run) -> bool:
    """Whether the last step is the planned one, within a logging interval; False where no plan is known."""
    planned, last = planned_steps(run), last_step(run)
    if planned is None or last is None:
        return False
    step = run.tables["metrics"]["step"].drop_null().to_numpy()
    gaps = np.diff(np.unique(step[-20000:]))
    interval = int(np.median(gaps)) if len(gaps) else 1
    return planned - max(interval, 1) <= last <= planned * 1.02 + interval


@once
def _all_events(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.tables["events"].to_pylist()
    return found


def of_attempt(run: Run, attempt: int) -> list[dict[str, Any]]:
    """The events of an attempt, and those that belong to none, in file order."""
    return [e for e in _all_events(run) if e["attempt"] in (attempt, None)]


def events(run: Run, *kinds: str) -> list[dict[str, Any]]:
    """All events of these kinds, in file order, as rows of the events table."""
    return [e for e in _all_events(run) if e["kind"] in kinds]
