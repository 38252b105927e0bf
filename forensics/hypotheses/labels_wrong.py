"""Labels wrong

What it is
    Targets that have nothing to do with the inputs, through the whole run: shuffled, shifted, from another file. The loss
    stands at chance, or falls only by rote.

How it is weighed
    For it: a loss that stays at ln(classes) or ln(vocabulary) while rate and gradient look ordinary; evaluation at chance.
    Against it: a rate so low that nothing could move, a loss that was never near chance.

What settles it
    Overfitting one batch: a model that can, with an evaluation that stays at chance, has wrong labels.

Folklore
    "Overfit a single batch first." "Assume a bug."
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.case import Finding, Hypothesis
from forensics.detectors import lr_schedule
from forensics.ledger import Ledger, of, span
from forensics.series import series
from parsers.tables import Run

TITLE = "Labels or targets wrong"
PRIOR = -6.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    stuck = of(findings, "plateau", severity=["warning"])
    if not stuck:
        return None
    facts = stuck[0].facts
    ledger = Ledger(PRIOR)
    ledger.add(6, f"The loss falls by {max(facts['fall'], 0):.1%} in the whole run.", stuck)
    if facts["at_chance"]:
        ledger.add(7, "It stands at what guessing gives.", stuck)
    elif facts["chance"] is None:
        ledger.cannot_tell("config names neither vocabulary nor classes, so chance level is not known.")
    shape = lr_schedule.shape(run)
    if shape is None:
        ledger.cannot_tell("the learning rate was not logged.")
    elif shape.peak < 1e-6:
        ledger.add(-8, f"The rate never exceeds {shape.peak:.2g}: nothing could move.", [])
    else:
        ledger.add(2, f"The rate is ordinary ({shape.peak:.2g} at its peak).", [])
    grad = series(run, "grad.norm")
    if grad is not None and np.isfinite(grad.value).any():
        usual = float(np.nanmedian(grad.value[np.isfinite(grad.value)]))
        ledger.add(2 if usual > 1e-3 else -4, f"Gradients flow (norm {usual:.2g})." if usual > 1e-3 else f"Hardly any gradient (norm {usual:.2g}).", [])
    return ledger.hypothesis(
        __name__, TITLE, steps=span(stuck), settle="Overfit one batch: then compare its inputs with its labels by eye.",
        interventions=["Print ten inputs beside their labels.", "Check the shift between inputs and targets, and the mask.", "Overfit one batch."],
    )  # fmt: skip
