"""Disk full

What it is
    A file system had no space left, or a quota was reached: a checkpoint, a cache or a log could not be written.

How it is weighed
    For it: the error of the system (ENOSPC, EDQUOT) as the last words of the run, and a checkpoint that is torn.

What settles it
    Free space and quota of the output folder, and the size of one checkpoint times the number that is kept.

Folklore
    A checkpoint that was being written when the disk filled up is torn: resume from the one before.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import checkpoint_damage
from forensics.detectors import ending as symptom
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.how_it_ended import ending
from forensics.signs import death
from parsers.tables import Run

TITLE = "Disk full"
PRIOR = -6.0
SETTLE = "Look at free space, free inodes and the quota of the folder that the failed write went to."
INTERVENTIONS = (
    "Free space or raise the quota, then resume from the last whole checkpoint.",
    "Keep fewer checkpoints.",
    "Write the checkpoint under another name and rename it when it is whole.",
)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    found = findings_of(findings, symptom.Facts)
    e = ending(run)
    if e.kind != "disk" or not found:
        return None
    ledger = Ledger(PRIOR)
    death.quoted(ledger, e, found)
    death.stopped_short(run, ledger, e, found)
    torn = findings_of(findings, checkpoint_damage.Facts)
    if torn:
        ledger.add(3, f"{torn[0].title}.", torn[:1])
    return ledger.hypothesis(__name__, TITLE, steps=span(found))
