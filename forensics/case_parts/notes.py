"""The author's word in a saved case: remarks, and causes ruled out by what the log does not hold.

A ruled-out cause keeps its clues and stays in the case, at the end of the list and with probability 0; the others are
ranked again over what is left. Nothing else of the analysis changes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from forensics import ranking
from forensics.case_parts import headline, run_again
from forensics.case_parts.saved_case import finding_of, hypothesis_of
from forensics.certainty import certainty, of_cause
from forensics.errors import ForensicsError
from forensics.run.how_it_ended import of_case

Document = dict[str, Any]


@dataclass(frozen=True)
class Note:
    """A remark, or why a cause is ruled out (``cause`` is its id) or taken up again (``reinstated``)."""

    text: str
    cause: str = ""
    reinstated: bool = False


def noted(document: Document, notes: list[Note]) -> Document:
    """The case with these notes beside its earlier ones. Raises ForensicsError for a cause that is not in the case."""
    out = copy.deepcopy(document)
    known = {h["id"]: h for h in out["hypotheses"]}
    for note in notes:
        if not note.cause:
            out.setdefault("notes", []).append({"text": note.text})
            continue
        if note.cause not in known or note.cause == "unknown":
            there = ", ".join(i for i in known if i != "unknown") or "none"
            raise ForensicsError(f"the case weighs no cause {note.cause!r}", f"It weighs: {there}.")
        if note.reinstated:
            known[note.cause].pop("ruled_out", None)
        else:
            known[note.cause]["ruled_out"] = {"because": note.text}
    return _ranked(out) if any(n.cause for n in notes) else out


def carried(document: Document, earlier: Document) -> Document:
    """A new analysis of a run with the author's word of the earlier one; causes that are no longer weighed drop out."""
    known = {h["id"] for h in document["hypotheses"]}
    ruled = {h["id"]: h["ruled_out"] for h in earlier.get("hypotheses", []) if h.get("ruled_out")}
    notes = [Note(str(n["text"])) for n in earlier.get("notes", [])]
    notes += [Note(str(why["because"]), cause) for cause, why in ruled.items() if cause in known]
    return noted(document, notes) if notes else document


def _ranked(document: Document) -> Document:
    ruled = [h for h in document["hypotheses"] if h.get("ruled_out")]
    left = {h["id"]: h for h in document["hypotheses"] if not h.get("ruled_out")}
    before = document["hypotheses"][0]["id"]
    ranked = ranking.rank([hypothesis_of(h) for h in left.values()])
    for r in ranked:
        left[r.id] |= {"probability": round(r.probability, 6), "certainty": of_cause(r.title, r.probability, r is ranked[0])}
    for h in ruled:
        h |= {"probability": 0.0, "certainty": certainty(0.0, False)}
    document["hypotheses"] = [left[r.id] for r in ranked] + ruled
    for rank, h in enumerate(document["hypotheses"], 1):
        h["rank"] = rank
    if document["verdict"] == "unhealthy":
        document["answer"] = headline.unhealthy([finding_of(f) for f in document["findings"]], ranked, of_case(document["run"]))
    if document["run"].get("again"):  # a case of an earlier version has none
        document["run"]["again"] = run_again.ranked_anew(document["verdict"], document["run"], ranked)
    aside = document.pop("set_aside", None)
    if aside and aside["cause"] == ranked[0].id:
        document["culprits"] = aside["culprits"]
    elif aside:
        document["set_aside"] = aside
    elif ranked[0].id != before and document["culprits"] and not document.get("replay"):
        # the batches were blamed by a cause that leads no longer
        document["set_aside"] = {"cause": before, "culprits": document["culprits"]}
        document["culprits"] = []
    return document
