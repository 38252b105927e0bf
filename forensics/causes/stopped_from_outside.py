"""Stopped from outside

What it is
    Somebody or something else ended a process that could have gone on: a person at the keyboard (Ctrl-C, scancel), the scheduler
    at its time limit, a preemption, a signal.

How it is weighed
    For it: the line that says so. It explains the end and nothing that was measured, so the line outweighs the prior and no more:
    with sound metrics it ties with "not on our list", and a cause of what went wrong in the metrics leads. A process that was
    killed (SIGKILL) without a word of who did it weighs less: the kernel does so for want of memory.

What settles it
    The scheduler's record of the job, or whoever held the terminal.

Folklore
    A time limit that comes before the plan is done is no fault of the run; a run without a checkpoint before it is.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import ending as symptom
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.how_it_ended import ending
from forensics.signs import death
from parsers.tables import Run

TITLE = "Stopped from outside"
PRIOR = -6.0
SETTLE = "Ask the scheduler's record of the job (sacct, scontrol show job), or whoever held the terminal."
INTERVENTIONS = (
    "Resume from the last checkpoint.",
    "Have the scheduler send a signal before the limit (Slurm: --signal=USR1@120) and save on it.",
    "Ask for a longer limit, or save more often than once a limit.",
)
WHO = {"interrupt": "a person", "scheduler": "the scheduler", "signal": "a signal"}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    found = findings_of(findings, symptom.Facts)
    e = ending(run)
    if e.kind not in WHO or not found:
        return None
    ledger = Ledger(PRIOR)
    if e.status == "stopped":
        death.quoted(ledger, e, found, -PRIOR, f"The log names {WHO[e.kind]}")
    else:
        death.quoted(ledger, e, found, -PRIOR / 2, "It was killed")
        ledger.cannot_tell("who sent the signal was not logged.")
    return ledger.hypothesis(__name__, TITLE, steps=span(found))
