"""The attempts of a run as a table, for the page and Markdown alike: which steps, when, why each ended, what shows that it continues."""

from __future__ import annotations

from typing import Any

from reports import text_format

Case = dict[str, Any]
OPEN = 6  # attempts that are shown at once
KNOWN = {
    "attempt": "attempt", "steps": "steps", "started": "started", "ended": "ended", "why": "why it ended",
    "evidence": "what shows that it continues the run",
}  # fmt: skip


def table(case: Case) -> tuple[list[str], list[list[str]]]:
    """Headings, and one row for each attempt; nothing for a run of one attempt. A column that is empty in all rows is left out:
    a log without a clock, a case of before the evidence was told. Takes a case that ``schema.complete`` filled."""
    attempts = case["run"]["attempts"]
    if len(attempts) < 2:
        return [], []
    heads = KNOWN | {"steps": f"{text_format.axis_unit(case['run'])}s"}
    told = [a | {"attempt": str(a["index"]), "steps": text_format.steps(a["steps"]).removeprefix("steps ")} for a in attempts]
    told = [a | {key: text_format.moment(a[key]) for key in ("started", "ended")} for a in told]
    shown = [key for key in KNOWN if any(a[key] for a in told)]
    return [heads[key] for key in shown], [[a[key] for key in shown] for a in told]
