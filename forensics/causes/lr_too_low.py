"""Learning rate too low

What it is
    The rate is so small that the loss crawls: sound, and a waste of the machine.

How it is weighed
    For it: a loss that falls steadily but hardly, a peak rate far below what the optimizer usually takes, no noise of
    instability. Against it: a loss at chance with an ordinary rate (labels), any instability.

What settles it
    Some hundred steps at ten times the rate.

Folklore
    "Too low crawls, too high bounces": run a range test.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import divergence, loss_spike, plateau
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.run.recipe import recipe
from parsers.tables import Run

TITLE = "Learning rate too low"
PRIOR = -6.0
SETTLE = "Run 200 steps at ten times the rate."
INTERVENTIONS = ("Run a range test.", "Check that the scheduler counts optimizer steps and that the warmup ends.")
EXPECTS = "rate:as_told tensors:little pairs:in_order range:higher by_heart:can"
NEEDS_TO_SPEAK = ("lr",)
ARMS = ("heart",)
OUTCOMES = {"heart: faster": 8.0, "heart: no": -4.0}
LOW = 0.03  # times the usual rate (forensics.run.recipe)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    stuck = findings_of(findings, plateau.Facts, severity=["warning"])
    if not stuck:
        return None
    ledger = Ledger(PRIOR)
    r = recipe(run)
    ledger.add(4, "The loss hardly moves.", stuck)
    if r.ratio is None:
        ledger.cannot_tell("neither log nor config says the learning rate.")
    elif r.ratio <= LOW:
        ledger.add(16, f"The peak rate of {r.rate:.2g} is {1 / r.ratio:.0f} times below what is usual for such a model and optimizer.", [])
    else:
        ledger.add(-8, f"The peak rate of {r.rate:.2g} is not small.", [])
    if stuck[0].facts.fall > 0.003:
        ledger.add(3, "It does fall, slowly and steadily.", stuck)
    spiked, diverged = findings_of(findings, loss_spike.Facts), findings_of(findings, divergence.Facts)
    if spiked or diverged:
        ledger.add(-8, "There is instability, which a small rate does not make.", spiked[:2])
    return ledger.hypothesis(__name__, steps=span(stuck))


def baseline(b: Beside, findings: Findings) -> Said:
    here, there = (r.rate for r in b.recipes)
    return (5.0, f"The baseline's peak rate is {there:.3g}, here it is {here:.3g}.") if here and there and here < 0.5 * there else None
