"""What a look at a growing run says that the one before did not, a line for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.findings import GRAVE

Document = dict[str, Any]
OVER = ("finished", "crashed", "stopped")  # statuses of a run that has ended
GUESSED = ("guess", "")  # how a proper end is known where no word says so


class News:
    """What was told of a run, look by look. A finding of severity critical is told at once. A warning, or another verdict, has to
    stand in two looks in a row: a young run looks like a plateau, and half an evaluation like a gap."""

    def __init__(self) -> None:
        self._known: list[Document] = []  # findings that were told, or that the case said before
        self._last: Document | None = None
        self._verdict = ""
        self.unsure = False  # is there something that another look has to confirm?
        self.resumed = False  # is what the earlier case said known to whoever listens?

    def of(self, now: Document, earlier: Document | None) -> tuple[list[str], list[Document]]:
        """Lines for a person, and the new findings; ``earlier``: the case that stood there before the first look."""
        first, last = self._last is None, self._last or now
        if first:
            self._known = _grave(earlier or {})
            self._verdict = (earlier or {}).get("verdict", "") if self.resumed else ""
        before = _grave(last)
        new = [f for f in _grave(now) if not _any_same(f, self._known) and (f["severity"] == "critical" or _any_same(f, before))]
        run = now["run"]
        told = [f"{f['severity']}: {f['title']} ({f['id']})" for f in new]
        if (first and not self._verdict) or new or (now["verdict"] == last["verdict"] != self._verdict):
            self._verdict = now["verdict"]
            told.append(f"{now['verdict']} at {run['step_unit']} {run['steps'][1]}: {now['answer']}")
        if len(run["attempts"]) > len(last["run"]["attempts"]):
            told.append(f"restarted: {run['attempts'][-2]['why']}")
        self._known += new
        self.unsure = now["verdict"] != self._verdict or any(not _any_same(f, self._known) for f in _grave(now))
        self._last = now
        return told, new


def _grave(case: Document) -> list[Document]:
    return [f for f in case.get("findings", ()) if f["severity"] in GRAVE]


def _any_same(f: Document, known: Sequence[Document]) -> bool:
    """Is one of them the same finding? Where a symptom begins and ends is seen better as a run goes on, so steps that overlap are enough."""
    return any(_same(f, k) for k in known)


def _same(a: Document, b: Document) -> bool:
    if a["id"] == b["id"]:
        return True
    (first, last), (begins, ends) = a["steps"], b["steps"]
    if a["kind"] != b["kind"] or first is None or begins is None:
        return False
    return bool(first <= (begins if ends is None else ends) and begins <= (first if last is None else last))


def over(now: Document) -> str:
    """Why the run counts as ended; "" where it may go on. A log that just ends, or looks finished, may."""
    ending = now["run"]["ending"]
    status = now["run"]["status"]
    if status not in OVER or (status == "finished" and ending["how"] in GUESSED):
        return ""
    return f"{status}: {ending['says']}".rstrip(": ")
