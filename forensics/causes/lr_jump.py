"""Learning rate jump

What it is
    The rate leaves its own path inside one attempt of the run: a wrong boundary, a second scheduler, a hand on the knob.

How it is weighed
    For it: a jump of the logged rate that is no warmup, no warm restart, no resume; trouble that begins right after it.
    Against it: nothing happens after the jump.

What settles it
    The same steps at the rate before the jump.

Folklore
    "Plot the learning rate": the schedule you wrote is not always the schedule that ran.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.detectors import divergence, loss_spike, lr_schedule, nonfinite
from forensics.ledger import Findings, Ledger, all_of, findings_of, span
from parsers.tables import Run

TITLE = "Learning rate jump"
PRIOR = -6.0
EXPECTS = "configs:same counters:go_on samples:sound rate:leaves raw_loss:there both_sides:neither replay:any clip:back third:away"
NEEDS_TO_SPEAK = ("lr",)
ARMS = ("rate held", "rate x 0.1")
OUTCOMES = {"rate x 0.1": 4.0, "rate held": 16.0, "rate as logged": 18.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    jumps = [f for f in findings_of(findings, lr_schedule.Facts) if not f.facts.at_resume]
    if not jumps:
        return None
    ledger = Ledger(PRIOR)
    ratio = max(f.facts.ratio or 1 for f in jumps)
    ledger.add(13 if ratio >= 3 else 9, f"The rate jumps by a factor of {ratio:.3g} at step {jumps[0].first_step}.", jumps[:3])
    trouble = all_of(findings, loss_spike.Facts, divergence.Facts, nonfinite.Facts)
    harm = [f for f in trouble if _follows(f, jumps)]
    if harm:
        ledger.add(10, "The loss leaves its level right after it.", harm[:3])
    elif all_of(findings, loss_spike.Facts, divergence.Facts):
        ledger.add(-6, "The trouble of the loss begins elsewhere.", [])
    return ledger.hypothesis(
        __name__,
        steps=span(jumps),
        settle=f"Replay from the checkpoint before step {jumps[0].first_step} with the rate held.",
        interventions=[
            "Find what changed the rate at that step: boundaries, a second scheduler, an override.",
            f"Go back to the checkpoint before step {jumps[0].first_step} and run on with the intended schedule.",
        ],
    )


def _follows(f: Finding, jumps: Sequence[Finding[lr_schedule.Facts]]) -> bool:
    begins = f.first_step
    return begins is not None and any(
        (j.first_step or 0) - 2 <= begins <= (j.first_step or 0) + max(100, 2 * (j.facts.lasts or 0)) for j in jumps
    )
