"""Code error

What it is
    An uncaught exception of the program or of a library: a missing module, a shape, an index, a key, a failed compile.

How it is weighed
    For it: the last exception that nothing follows in its file; an exit code, or steps missing to the plan. Against it: an
    exception that was raised because a value was not finite, which is the guard and not the fault.

What settles it
    The traceback, read from its last line upwards to the first line of your own code.

Folklore
    "Assume a bug", and read the last lines first: the traceback names file and line.
"""

from __future__ import annotations

import re

from forensics.case import Hypothesis
from forensics.detectors import ending as symptom
from forensics.detectors import nonfinite
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.how_it_ended import ending
from forensics.signs import death
from parsers.tables import Run

TITLE = "Code error"
PRIOR = -6.0
SETTLE = "Read the traceback upwards to the first line of your own code, and run that line alone with the same input."
INTERVENTIONS = (
    "Fix the line that the traceback names.",
    "Resume from the last checkpoint.",
    "Run ten steps, one evaluation and one save before a long job.",
)
SILENT = re.compile(r"(?i)exit code|\W*failed\b|traceback without")  # that it failed, not of what
GUARD = re.compile(r"\b(?:nan|inf|non-?finite|not finite)\b", re.I)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    found = findings_of(findings, symptom.Facts)
    e = ending(run)
    if e.kind != "exception" or not found:
        return None
    ledger = Ledger(PRIOR)
    if SILENT.match(e.says):
        death.quoted(ledger, e, found, 5, "It failed")
        ledger.cannot_tell("the exception itself was not logged.")
    else:
        death.quoted(ledger, e, found, what="An exception that nobody caught")
    death.stopped_short(run, ledger, e, found)
    if GUARD.search(e.says):
        ledger.add(-18, "It was raised because a value was not finite: the guard, not the fault.", findings_of(findings, nonfinite.Facts))
    what = e.says.split(":", 1)[0]
    return ledger.hypothesis(__name__, f"{TITLE}: {what}" if 0 < len(what) < 60 else TITLE, steps=span(found))
