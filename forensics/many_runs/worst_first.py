"""The runs of one place, each judged by itself and put in order: the worst first, of equals the one that ran last by its own clock.
A launch that died or came to nothing goes behind those of the same log where a later one went further: what was wrong there was mended.
What says nothing and logged one step at most goes behind what trained.

A run that fails to be judged costs itself a line that says so, nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from forensics import pipeline
from forensics.case import utc
from forensics.run import how_it_ended, reach
from parsers import secrets
from parsers.records import cells
from parsers.tables import Run

VERDICTS = ("unhealthy", "inconclusive", "healthy")  # the order of the contract
Tick = Callable[[str, int, int], None]
Line = dict[str, Any]


def judged(runs: Sequence[Run], tick: Tick | None = None) -> list[tuple[Run, Line]]:
    """Each run with its line: ``{"id", "path", "verdict", "status", "answer", "ended"}``; the worst first. What was worked out of
    a run is kept for the worst alone, which the report will need again."""
    found: list[tuple[Run, Line]] = []
    worst: tuple[Run, Line] | None = None
    for i, run in enumerate(runs):
        if tick:
            tick("judging the runs", i, len(runs))
        found.append(pair := (run, line(run)))
        worst, better = (pair, worst) if worst is None or _rank(*pair) < _rank(*worst) else (worst, pair)
        if better is not None:
            better[0].cache.clear()
    found.sort(key=lambda pair: _counted(pair[0].id), reverse=True)  # where the clocks don't tell: the same each time
    idle = {id(run) for run, said in found if said["verdict"] == "inconclusive" and reach.distinct(run) < 2}
    idle = idle if len(idle) < len(found) else set()
    return sorted(found, key=lambda pair: (_outlived(pair[0], pair[1], found) or id(pair[0]) in idle, _rank(*pair)))


def _outlived(run: Run, said: Line, found: Sequence[tuple[Run, Line]]) -> bool:
    """Whether a launch died or tells nothing, and a later launch of the same log went further."""
    if run.launch[1] < 2 or (said["status"] != "crashed" and said["verdict"] != "inconclusive"):
        return False
    log, last = run.path.rpartition("/")[0], reach.last(run) or 0
    later = (r for r, _ in found if r.launch[0] > run.launch[0] and r.path.rpartition("/")[0] == log)
    return any((reach.last(r) or 0) > last for r in later)


def line(run: Run) -> Line:
    """What is said of a run in the report of another: its verdict and the sentence for it."""
    try:
        told = pipeline.judge(run)
        return _line(run, told.verdict, how_it_ended.status(run), told.answer)
    except Exception as e:
        return _line(run, "inconclusive", "unknown", f"Could not be judged: {secrets.mask_text(f'{type(e).__name__}: {e}')}"[:400])


def unjudged(run: Run) -> Line:
    return _line(run, None, None, "")


def _line(run: Run, verdict: str | None, status: str | None, answer: str) -> Line:
    return {"id": run.id, "path": run.path, "verdict": verdict, "status": status, "answer": answer, "ended": utc(_clock(run))}


def _clock(run: Run) -> float | None:
    """When the last attempt ended, in seconds since 1970; None where its log has no date."""
    ended = run.attempts[-1]["ended"] if run.attempts else None
    return ended if cells.time_unit(ended) == 1.0 else None


def _rank(run: Run, said: Line) -> tuple[int, float]:
    clock = _clock(run)
    return VERDICTS.index(said["verdict"]), -clock if clock is not None else float("inf")


def _counted(id: str) -> list[tuple[int, str]]:
    """An id as a sort key in which `version_10` comes behind `version_9`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", id)]
