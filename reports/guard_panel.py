"""What would have caught it: the live guards that the case ran over the log, the best first."""

from __future__ import annotations

import shlex
from typing import Any

Case = dict[str, Any]
SHOWN = 5  # guards on the page; all are in the case
COLUMNS = ["Guard", "Metric", "Fires at step", "Against the harm", "False alarms", "Of healthy values"]


def heading(case: Case) -> str:
    best = case["guards"]["best"]
    fired = next((r["fired"] for r in case["guards"]["rows"] if r["guard"] == best), None)
    return f"What would have caught it: {best}, at step {fired}" if best else "What would have caught it: none of the live guards"


def rows(case: Case) -> list[list[Any]]:
    """A table's rows; none where the case has no guards, or none of their metrics was logged. Takes a case that ``schema.complete`` filled."""
    known = case["guards"]["rows"] if case["guards"] else []
    return [[r["guard"], r["tag"], *_when(r), r["false_alarms"], r["healthy_values"]] for r in known[:SHOWN]]


def _when(row: dict[str, Any]) -> tuple[str, str]:
    if row["fired"] is None or row["lead"] is None:
        return "-", "does not catch it"
    lead = row["lead"]
    return str(row["fired"]), f"{lead} steps before" if lead > 0 else f"{-lead} steps into it" if lead else "at its first step"


def command(case: Case) -> str:
    picked = f" --run {shlex.quote(case['run']['id'])}" if case["run"]["siblings"] else ""
    return f"forensics guard {shlex.quote(case['run']['path'] or case['run']['id'])}{picked} --emit hf"
