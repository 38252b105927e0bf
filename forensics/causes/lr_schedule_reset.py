"""Learning-rate schedule reset

What it is
    The restart did not bring the scheduler's state back: the rate begins again from its first value.

How it is weighed
    For it: a rate that jumps, or warms up again, at a restart. Against it: a restart where the rate goes on as it was; a rate
    that another config asked for.

What settles it
    The scheduler's step count in a checkpoint after the restart.

Folklore
    Half of all resume bugs are a state dict that nobody loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from parsers.tables import Run

TITLE = "Learning-rate schedule reset at the restart"
PRIOR = -5.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    resets = [f for f in of(findings, "lr_schedule") if f.facts["at_resume"]]
    anew = [f for f in of(findings, "checkpoint_state") if f.facts.get("what") == "scheduler_anew"]
    if not resets and not anew:
        return None
    ledger = Ledger(PRIOR)
    if resets:
        ledger.add(16, f"{resets[0].title}.", resets)
    if anew:
        ledger.add(16, f"{anew[0].title}.", anew)
    if resets and resets[0].facts.get("as_first"):
        ledger.add(6, "It starts again with the same values as the first attempt.", resets)
    changed = [f for f in of(findings, "config_change") if any("lr" in k.lower() or "rate" in k.lower() for k in f.facts["keys"])]
    if changed:
        ledger.add(-16, "Config asks for another rate since then.", changed)
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span([*resets, *anew]),
        settle="Read the scheduler's step count from a checkpoint after the restart.",
        interventions=[
            "Save and load the scheduler's state with the model's.",
            "Go back to the restart and run on with the rate where it was.",
        ],
    )
