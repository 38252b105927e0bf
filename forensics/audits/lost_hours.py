"""What a run cost that nobody has anything of, and whose it was."""

from __future__ import annotations

from forensics.case import Case
from forensics.detectors import stall
from forensics.findings import findings_of
from forensics.run import hang_ranks, settings
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_OWNER = lazy_re(r"(?i)(?:^|[./_-])(?:owner|user(?:_?name)?|author|entity)$")


def of(run: Run, case: Case) -> float | None:
    """GPU-hours of work that a later attempt repeated and of silence in which no step was logged; None where the log has no clock, or how many
    processes trained is not known. Time between attempts is not counted: nobody knows who held the GPUs then."""
    good = case.run["goodput"]
    running, share, processes = good["seconds_running"], good["share_time"], good["processes"]
    if not running or share is None or not processes:
        return None
    repeated = running - share * (running + (good["seconds_down"] or 0.0))
    silent = sum(f.facts.seconds or 0.0 for f in findings_of(case.findings, stall.Facts))
    silent = max(silent, hang_ranks.waited(hang_ranks.said(run)) or 0.0)
    return round(float(processes * max(repeated + silent, 0.0) / 3600), 3)


def owner(run: Run) -> str | None:
    """Who started it, as config says."""
    found = [str(s.value) for s in settings.every(run) if _OWNER.search(s.key) and isinstance(s.value, str) and s.value.strip()]
    return found[0][:80] if found else None
