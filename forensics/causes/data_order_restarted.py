"""Data order restarted

What it is
    The restart brought weights and optimizer back, but not the position in the data: samples come again.

How it is weighed
    For it: batches after the restart that repeat earlier ones at other steps, or leave some out, or deal the epoch anew; a
    lower loss after the restart that joins the old curve. Ids weigh more than the ups and downs of the loss, a repeated
    stretch more than a new order. Against it: the manifest goes on where it was.

What settles it
    The sampler's state in the checkpoint; the first batches of both attempts side by side.

Folklore
    "You will re-see early data": llm-foundry#1277, accelerate#2016.
"""

from __future__ import annotations

from forensics.case import Finding, Hypothesis
from forensics.detectors import repeated_data, resume_break
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Data order restarted"
PRIOR = -4.0
SETTLE = "Compare the first batches after the restart with those of the first attempt."
INTERVENTIONS = (
    "Save and load the sampler's state, or skip the batches already seen.",
    "Go back to the restart if the repeated share is large.",
)
EXPECTS = "configs:same counters:samples"
NEEDS_TO_SPEAK = ("batch ids",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    again = findings_of(findings, repeated_data.Facts)
    if not again:
        return None
    ledger = Ledger(PRIOR)
    best = max(again, key=_weight)
    ledger.add(_weight(best), f"{best.title}.", [best])
    if best.facts.from_start:
        ledger.add(3, "It begins again with the very first batch.", [best])
    lower = [f for f in findings_of(findings, resume_break.Facts) if not f.facts.up]
    if best.facts.lower is not None:
        # 5: found at a place and of a length that nothing but the restart names; 4 for a level that is lower only
        ledger.add(5, f"The loss is lower until step {best.facts.joins}, where it joins the old curve.", [best])
    elif lower and best.facts.what == "repeated":
        ledger.add(4, "The loss is lower after the restart, as for data seen before.", lower)
    return ledger.hypothesis(__name__, steps=span([best]))


def _weight(f: Finding) -> float:
    """How much a finding says that the position in the data was lost.

    18 for batches in a row with the samples of others: nothing else does that. 12 where the loss says it: p below 0.001,
    but other things come again, too. 10 for skipped batches and 12 for samples that come again within the epoch: proven, but
    skipping is at times meant so. 0 for steps done again with other samples: most loops deal anew after a rollback.
    """
    sure = f.facts.how == "by its samples"
    if f.facts.what == "repeated":
        return 18 if sure else 12
    if f.facts.what == "skipped":
        return 10 if sure else 8
    return 12 if f.facts.share else 0
