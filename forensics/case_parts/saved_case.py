"""Parts of a case from its document, as far as what is done to a saved case needs them."""

from __future__ import annotations

from typing import Any

from forensics.case import Clue, Evidence, Finding, Hypothesis


def hypothesis_of(document: dict[str, Any]) -> Hypothesis:
    """A cause of a saved case, ready to be ranked again; what only the page needs is left out."""
    clues = (Clue(c["text"], float(c["weight"]), tuple(c["findings"]), c.get("part", "log")) for c in document["clues"])
    return Hypothesis(document["id"], document["title"], tuple(clues), document["settle"], tuple(document["interventions"]))


def finding_of(document: dict[str, Any]) -> Finding:
    """A symptom of a saved case, as far as the answer needs it."""
    first, last = document.get("axis_steps") or document["steps"]
    shown = tuple(Evidence(e["kind"], e["title"], e["data"], e["where"]) for e in document["evidence"])
    return Finding(document["id"], document["kind"], document["title"], first, last, document["severity"], shown)
