"""Out of memory

What it is
    The device or the host had no memory left: a long batch, an evaluation, a leak, fragmentation.

How it is weighed
    For it: a line that says so, memory that grows until the end. Against it: a run that went on after the line.

What settles it
    The line itself; for its kind, the memory curve and the shape of the last batch.

Folklore
    Reserved far above allocated is fragmentation; growth by the step is a graph that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from forensics.lives import status
from forensics.series import series
from parsers.tables import Run

TITLE = "Out of memory"
PRIOR = -6.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    found = of(findings, "memory")
    if not found:
        return None
    ledger = Ledger(PRIOR)
    said, grown = [f for f in found if f.facts["said"]], [f for f in found if not f.facts["said"]]
    if said:
        ledger.add(22, "The log says so.", said)
        if status(run) == "finished":
            ledger.add(-12, "The run finished all the same.", [])
    if grown:
        ledger.add(8, f"Memory grew by {grown[0].facts['growth']:.0%}, and was growing still: a leak.", grown)
    elif said and series(run, "mem.alloc") is None:
        ledger.cannot_tell("memory was not logged: a leak or one large batch is open.")
    elif said:
        ledger.add(0, "Memory did not grow before: one large batch or an evaluation asked for more at once.", [])
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span(found),
        settle="Log allocated and reserved memory every step and run to the same place.",
        interventions=[
            "Halve the micro-batch and double the accumulation.",
            "Cap the sequence length, and sort out the longest samples.",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation.",
        ],
    )
