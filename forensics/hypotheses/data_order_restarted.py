"""Data order restarted

What it is
    The restart brought weights and optimizer back, but not the position in the data: samples come again.

How it is weighed
    For it: batches after the restart that repeat earlier ones at other steps; a lower loss after the restart. Against it: the
    manifest goes on where it was.

What settles it
    The sampler's state in the checkpoint; the first batches of both lives side by side.

Folklore
    "You will re-see early data": llm-foundry#1277, accelerate#2016.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from parsers.tables import Run

TITLE = "Data order restarted"
PRIOR = -4.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    again = of(findings, "repeated_data")
    if not again:
        return None
    ledger = Ledger(PRIOR)
    exact = again[0].facts["how"] == "by its samples"
    ledger.add(18 if exact else 12, f"{again[0].title}.", again)
    if again[0].facts["from_start"]:
        ledger.add(3, "It begins again with the very first batch.", again)
    lower = [f for f in of(findings, "resume_break") if not f.facts["up"]]
    if lower:
        ledger.add(4, "The loss is lower after the restart, as for data seen before.", lower)
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span(again),
        settle="Print the first batches after the restart beside those of the first life.",
        interventions=[
            "Save and load the sampler's state, or skip the batches already seen.",
            "Go back to the restart if the repeated share is large.",
        ],
    )
