"""A log that stops with work left and no word of why: its process was killed, hangs, or goes on; or the log was copied while it ran."""

from __future__ import annotations

from forensics.run import endings
from forensics.run.how_it_ended import ending
from parsers.runs.attempts import RESTORED
from parsers.tables import Run


def breaks_off(run: Run) -> bool:
    """Whether the log stops with work left and no word of why. A state saved in the middle does not: training may have gone on behind it."""
    kinds = {s.path: s.format for s in run.sources}
    return ending(run).kind == "cut" and any(kinds.get(source) != RESTORED for source in endings.progress(run))
