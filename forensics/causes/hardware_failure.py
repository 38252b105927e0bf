"""Hardware failure

What it is
    A device or node failed: an Xid, an uncorrectable memory error (ECC), a GPU that fell off the bus, a node that went down.

How it is weighed
    For it: the driver's, the kernel's or the scheduler's own words. Against it: nothing but a CUDA error, which a wrong index in
    the program makes as well.

What settles it
    The kernel's log of that node (dmesg) and the driver's report (nvidia-smi -q): the same error on the same device again.

Folklore
    Meta's Llama 3 report (2024): 78 % of 419 unexpected interruptions in 54 days were hardware, GPUs and their memory first.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import ending as symptom
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.fatal_lines import HARDWARE
from forensics.run.how_it_ended import ending
from forensics.signs import death
from parsers.tables import Run

TITLE = "Hardware failure"
PRIOR = -6.0
SETTLE = "Read dmesg and nvidia-smi -q of that node, and run the same steps on another one."
INTERVENTIONS = (
    "Take the node out of service.",
    "Resume from the last checkpoint on other nodes.",
    "Run with CUDA_LAUNCH_BLOCKING=1 if the same error comes back elsewhere.",
)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    found = findings_of(findings, symptom.Facts)
    e = ending(run)
    if e.kind != "hardware" or not found:
        return None
    ledger = Ledger(PRIOR)
    if HARDWARE.search(e.says):
        death.quoted(ledger, e, found)
    else:
        death.quoted(ledger, e, found, 8, "A CUDA error ended it")
        ledger.cannot_tell("neither the kernel nor the scheduler speaks of a device; a wrong index makes such errors as well.")
    death.stopped_short(run, ledger, e, found)
    return ledger.hypothesis(__name__, TITLE, steps=span(found))
