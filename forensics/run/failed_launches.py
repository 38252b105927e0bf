"""Launches that ended before their first step, in a log that others trained in: they are no attempt, for they have no step."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forensics.run import endings, fatal_lines
from forensics.run.endings import Event
from parsers.console_format.openings import SAYS, UNSTARTED
from parsers.tables import Run

_DEATHS = {"signal", "traceback", "oom"}


class Failed(NamedTuple):
    """What ended a launch, and where that stands."""

    says: str
    where: str


def failed(run: Run) -> list[Failed]:
    """In the order of the files: those that died of an exception that nothing caught before steps follow, and those that began a log anew and died
    without a step; before them those of which only the first line of the log, come again and again, tells."""
    found = [Failed(f"the log begins again: {e['text']}", run.where(e["source"], e["at"])) for e in endings.events(run, UNSTARTED)]
    for source, (at, _) in endings.progress(run).items():
        mine = [e for e in endings.events(run, "not_begun", "start", *_DEATHS) if e["source"] == source]
        told = [e for e in mine if e["kind"] == "not_begun" and (at > _place(e)).any()]
        begun = [_place(e) for e in mine if e["kind"] == "start" and str(e["text"]).startswith(SAYS)]
        for first, behind in pairwise([*begun, np.iinfo(np.int64).max]):
            deaths = [e for e in mine if e["kind"] in _DEATHS and first < _place(e) < behind and fatal_lines.kind(e) is not None]
            if deaths and not ((at > first) & (at < behind)).any():
                told.append(deaths[-1])
        found += [Failed(fatal_lines.words(e), run.where(source, e["at"])) for e in sorted(told, key=_place)]
    return found


def _place(e: Event) -> int:
    return int(e["at"] or 0)
