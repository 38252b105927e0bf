"""Dead or saturated units

What it is
    Activations are stuck at zero or at their ends, so that no gradient passes: the loss stays at chance.

How it is weighed
    For it: a logged share of dead units, first layers that get a thousandth of the last layers' gradient, every
    logged layer without any while the whole norm is not zero (biases learn), a loss at
    chance with an ordinary rate. Against it: gradients of like size in all layers.

What settles it
    A histogram of the activations of each layer for one batch.

Folklore
    Deep sigmoid stacks and large negative biases die in silence.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import layer_gradients, plateau
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Dead or saturated units"
PRIOR = -6.0
SETTLE = "Draw the activations of each layer for one batch."
INTERVENTIONS = ("Check biases and the scale of the initialization.", "Use a rectifier with a leak, residual paths or normalization.")
EXPECTS = "tensors:moved pairs:in_order warmup:not qk_norm:not range:neither by_heart:cannot"
NEEDS_TO_SPEAK = ("checkpoints",)
ARMS = ("heart",)
OUTCOMES = {"heart: learnt": -8.0, "heart: faster": -8.0, "heart: no": 8.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    layers = findings_of(findings, layer_gradients.Facts)
    dead = [f for f in layers if f.facts.dead]
    starved = [f for f in layers if f.facts.starved]
    silent = [f for f in layers if f.facts.frozen and f.facts.every]
    if not dead and not starved and not silent:
        return None
    ledger = Ledger(PRIOR)
    if dead:
        ledger.add(16, f"{dead[0].title}.", dead)
    if starved:
        ledger.add(11, f"{starved[0].title}.", starved)
    if silent and not dead:
        ledger.add(
            11, "No logged layer gets a gradient, and yet the whole norm is not zero: dead inputs leave only biases to learn.", silent
        )
    stuck = findings_of(findings, plateau.Facts)
    if stuck:
        ledger.add(6, "The loss does not fall.", stuck)
    else:
        ledger.add(-5, "The loss falls all the same.", [])
    return ledger.hypothesis(__name__, steps=span([*layers, *stuck]))
