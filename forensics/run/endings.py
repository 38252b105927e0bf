"""How the run began and how far it got: the label of its first step, its events, and where they stand among its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run.once import once
from forensics.run.series import series
from parsers import arrow
from parsers.console_format.event_lines import WAITS
from parsers.tables import Run

LONG = 1800.0  # seconds that a job lives on after what kills it: the longest default time-out of torch's process groups

Event = dict[str, Any]
Progress = dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]


@once
def step_origin(run: Run) -> int:
    """The label of the first optimizer step: 0 where the log or a manifest counts from 0, else 1."""
    s = series(run, "loss.train") or series(run, "loss.eval")
    first = int(s.step.min()) if s is not None and len(s) else 1
    listed = arrow.known(run.tables["batches"]["step"])
    first = min(first, int(listed.min(initial=first)))
    return 0 if first == 0 else 1


@once
def _all_events(run: Run) -> list[Event]:
    found: list[Event] = run.tables["events"].to_pylist()
    return found


def of_attempt(run: Run, attempt: int) -> list[Event]:
    """The events of an attempt, and those that belong to none, in file order."""
    return [e for e in _all_events(run) if e["attempt"] in (attempt, None)]


def events(run: Run, *kinds: str) -> list[Event]:
    """All events of these kinds, in file order, as rows of the events table."""
    return [e for e in _all_events(run) if e["kind"] in kinds]


@once
def progress(run: Run) -> Progress:
    """File -> the places of its rows that have a step, and their steps."""
    metrics = run.tables["metrics"]
    source, names = arrow.codes(metrics["source"])
    there = arrow.present(metrics["step"]) & arrow.present(metrics["at"])
    rows = np.flatnonzero(there)[np.argsort(source[there], kind="stable")]
    cuts = np.flatnonzero(np.diff(source[rows])) + 1
    at, step = (np.split(arrow.values(metrics[name])[rows], cuts) for name in ("at", "step"))
    return {names[code]: (at[i], step[i]) for i, code in enumerate(source[rows[[0, *cuts]]])} if len(rows) else {}


def steps_after(run: Run, e: Event) -> int:
    """By how many steps its file goes on after an event; a progress bar that is drawn again is no step."""
    at, step = progress(run).get(str(e["source"]), (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    place = e["at"] or 0
    return int(max(step[at > place].max(initial=-1) - step[at <= place].max(initial=-1), 0))


def outlived(run: Run, e: Event) -> bool:
    """Were steps logged long after what a file without steps tells (the kernel's log, a dump), by clocks that are moments?"""
    source = str(e["source"])
    if e["time"] is None or source in progress(run) or any(s.clock for s in run.sources if s.path == source):
        return False
    return _last_moment(run) > float(e["time"]) + LONG


@once
def _last_moment(run: Run) -> float:
    metrics = run.tables["metrics"]
    dated = {s.path for s in run.sources if s.clock == ""}
    source, names = arrow.codes(metrics["source"])
    rows = arrow.present(metrics["step"]) & np.isin(source, [i for i, name in enumerate(names) if name in dated])
    return float(arrow.filled(metrics["time"], -np.inf)[rows].max(initial=-np.inf))


def stands_last(run: Run, e: Event, lines: int) -> bool:
    """No later step follows in its file but the one that its loop writes on leaving; in a file without steps before it, at most so
    many ``lines`` follow. Words from which the run went on before stand last nowhere."""
    if went_on_before(run, e):
        return False
    at, step = progress(run).get(str(e["source"]), (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    place = e["at"] or 0
    if (at <= place).any():
        gaps = np.diff(np.unique(step))
        return steps_after(run, e) <= (int(np.median(gaps)) if len(gaps) else 0)
    last = last_lines(run).get(str(e["source"]))
    return not len(at) and (last is None or place >= (last["at"] or 0) - lines)


def went_on_before(run: Run, e: Event) -> bool:
    """Whether the same words stand further up in the file, of the same attempt, and steps between: what the run went on from then ends nothing now."""
    first = _first_said(run).get(_said(e))
    return first is not None and first is not e and steps_after(run, first) > steps_after(run, e)


@once
def _first_said(run: Run) -> dict[tuple[str, ...], Event]:
    found: dict[tuple[str, ...], Event] = {}
    for e in _all_events(run):
        found.setdefault(_said(e), e)
    return found


def _said(e: Event) -> tuple[str, ...]:
    """File, attempt, kind and words of an event, without the frame of a traceback."""
    return str(e["source"]), str(e["attempt"]), str(e["kind"]), str(e["text"]).partition("  [")[0]


@once
def last_lines(run: Run) -> dict[str, Event]:
    """File -> its last line, of logs that are text."""
    return {str(e["source"]): e for e in _all_events(run) if e["kind"] == "last_line"}


def last_line(run: Run, last: list[Event]) -> Event | None:
    """The last line of a text log: of one that waits, else of that which got furthest; of logs without a step, only where there is one."""
    furthest = {source: int(step.max()) for source, (_, step) in progress(run).items()}
    lines = [e for e in last if e["kind"] == "last_line"]
    if waits := [e for e in lines if WAITS.search(str(e["text"]))]:
        return waits[-1]
    lines = [e for e in lines if e["source"] in furthest] or (lines if len(lines) == 1 else [])
    if not furthest and not lines:
        lines = [e for e in last if e["kind"] == "last_words"]
        return lines[0] if len(lines) == 1 else None
    return max(lines, key=lambda e: furthest.get(str(e["source"]), -1), default=None)
