"""NaN from a sample

What it is
    One sample holds NaN, infinity, or something that makes the loss infinite; every other batch is fine at that state.

How it is weighed
    For it: the loss becomes NaN at once out of a calm run, with a calm gradient norm; it is finite again afterwards, or the
    weights were poisoned for good. Against it: an explosion of the norm or the loss that leads up to it, a loss scale at work, NaN from the first step on.

What settles it
    Replaying the step with this batch and with another one, from the same checkpoint.

Folklore
    "A NaN with a flat gradient norm points at a bad sample or at a layer's numerics."
"""

from __future__ import annotations

from forensics.case import Finding, Hypothesis
from forensics.detectors import nonfinite
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.signs.before_nan import calm
from parsers.tables import Run

TITLE = "NaN from a sample"
PRIOR = -7.0
EXPECTS = "counters:go_on samples:broken rate:as_told tensors:moved raw_loss:there replay:batch fp32:back third:back epsilon:back"
NEEDS_TO_SPEAK = ("grad.norm", "loss_scale", "batch ids")
ARMS = ("skip", "later")
OUTCOMES = {
    "data: not finite": 24.0,
    "state x data": 4.0,
    "later: again": 3.0,
    "skip: harmless": 3.0,
    "skip: NaN again": -4.0,
    "samples: unlike": 6.0,
    "samples: alike": -3.0,
}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    dead = [f for f in findings_of(findings, nonfinite.Facts) if f.facts.metric.startswith("loss.train")]
    if not dead:
        return None
    facts = dead[0].facts
    ledger = Ledger(PRIOR)
    ledger.add(5, "The loss is NaN or infinite from one value to the next.", dead)
    calm(run, ledger, dead, findings, weight=6)
    if facts.recovered and facts.count <= 3:
        ledger.add(8, "The loss is finite again afterwards: the batch made it, the state did not.", dead)
    elif facts.recovered:
        ledger.add(3, f"{facts.count} values are NaN, with finite ones between: some batches make it and others do not.", dead)
    else:
        ledger.add(1, "It stays NaN: the update that followed poisoned the weights.", dead)
    if facts.at_start:
        ledger.add(-8, "The very first value is NaN already.", dead)
    return ledger.hypothesis(
        __name__,
        steps=span(dead),
        settle=f"Replay step {facts.first} from the checkpoint before it, with its batch and with another.",
        interventions=[
            f"Check the samples of step {facts.first} for NaN, empty sequences and labels out of range.",
            "Go back to the checkpoint before and leave the batch out.",
            "Skip updates whose gradient is not finite.",
        ],
    )


def blamed(run: Run, f: Finding) -> list[tuple[int, int]]:
    """(attempt, step) of the batches that a finding points at."""
    known = f.kind == "nonfinite" and f.facts.first is not None
    return [(f.facts.attempt or 0, f.facts.first)] if known else []
