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

from forensics.case import Hypothesis
from forensics.detectors import checkpoint_state, config_change, lr_schedule
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Learning-rate schedule reset at the restart"
PRIOR = -5.0
SETTLE = "Read the scheduler's step count from a checkpoint after the restart."
INTERVENTIONS = ("Save and load the scheduler's state with the model's.", "Go back to the restart and run on with the rate where it was.")
EXPECTS = "configs:same counters:scheduler samples:sound raw_loss:there replay:any"
NEEDS_TO_SPEAK = ("lr",)
ARMS = ("rate held", "warmup again")
OUTCOMES = {"rate x 0.1": 4.0, "rate held": 12.0, "rate as logged": 18.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    resets = [f for f in findings_of(findings, lr_schedule.Facts) if f.facts.at_resume]
    anew = [f for f in findings_of(findings, checkpoint_state.Facts) if f.facts.what == "scheduler_anew"]
    if not resets and not anew:
        return None
    ledger = Ledger(PRIOR)
    if resets:
        ledger.add(16, f"{resets[0].title}.", resets)
    if anew:
        ledger.add(16, f"{anew[0].title}.", anew)
    changed = [f for f in findings_of(findings, config_change.Facts) if any("lr" in k.lower() or "rate" in k.lower() for k in f.facts.keys)]
    if changed:
        ledger.add(-16, "Config asks for another rate since then.", changed)
    return ledger.hypothesis(__name__, steps=span([*resets, *anew]))
