"""Frozen parameters

What it is
    Parameters that should learn do not: requires_grad is off, the optimizer never got them, a detach stands in the way.

How it is weighed
    For it: layers whose gradient is exactly zero, weights that are bit-equal in successive checkpoints while others move.
    Against it: an adapter run, where a frozen base is meant; a gradient that is zero in every layer.

What settles it
    Comparing two checkpoints tensor by tensor.

Folklore
    "Verify that the optimizer actually has the parameters."
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import frozen_weights, layer_gradients
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Parameters frozen by mistake"
PRIOR = -5.0
SETTLE = "Compare the first and the last checkpoint: which tensors are equal?"
INTERVENTIONS = ("Print requires_grad and the optimizer's parameter groups.", "Look for a detach, a no_grad, a wrong name filter.")
EXPECTS = "tensors:equal pairs:in_order range:neither by_heart:cannot"
NEEDS_TO_SPEAK = ("checkpoints",)
ARMS = ("heart",)
OUTCOMES = {"heart: learnt": -8.0, "heart: faster": -8.0, "heart: no": 6.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    layers = [f for f in findings_of(findings, layer_gradients.Facts) if f.facts.frozen]
    equal = findings_of(findings, frozen_weights.Facts)
    if not layers and not equal:
        return None
    ledger = Ledger(PRIOR)
    if equal:
        ledger.add(18, f"{equal[0].title}.", equal)
    if layers:
        ledger.add(14, f"{layers[0].title}.", layers)
        if layers[0].facts.every:
            ledger.add(-10, "It is every logged layer, and yet the whole norm is not zero: freezing leaves some layer to learn.", layers)
    keys = " ".join(run.tables["config"]["key"].to_pylist()).lower()
    if "lora" in keys or "adapter" in keys or "peft" in keys:
        ledger.add(-12, "Config speaks of adapters: a frozen base is meant.", [])
    return ledger.hypothesis(__name__, steps=span([*layers, *equal]))
