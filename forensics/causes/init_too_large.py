"""Initialization too large

What it is
    Weights begin so large that the first predictions are confidently wrong: the loss starts far above guessing, the first part
    of the run is spent on undoing it, and the run stays behind.

How it is weighed
    For it: a first loss far above ln(classes); an init std in the config above the recipe sqrt(1 / (3 width)); huge first
    gradients. Against it: a first loss at chance.

What settles it
    The loss of step 0 with the usual initialization.

Folklore
    "Verify the loss at init": ln(C).
"""

from __future__ import annotations

import math

import numpy as np

from forensics.case import Hypothesis
from forensics.detectors import initial_loss, nonfinite
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said, differ
from forensics.run import settings
from forensics.run.recipe import HIGH, recipe
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Initialization too large"
PRIOR = -5.0
SETTLE = "Compute the loss of one batch at step 0 with the usual initialization."
INTERVENTIONS = (
    "Check the init std of embedding and output layers.",
    "Scale residual outputs by 1 / sqrt(2 layers).",
    "Start again: what was lost at the beginning does not come back.",
)
EXPECTS = "tensors:moved pairs:in_order warmup:not qk_norm:not seeds:all"
NEEDS_TO_SPEAK = ("grad.norm", "checkpoints")
FIRST = 3  # until this step a loss is that of the initialization


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    high = findings_of(findings, initial_loss.Facts)
    if not high:
        return None
    facts = high[0].facts
    ledger = Ledger(PRIOR)
    late = (high[0].first_step or 0) > FIRST
    ledger.add(9 if late else 15, f"{high[0].title}.", high)
    ratio = recipe(run).ratio
    if late and ratio is not None and ratio >= HIGH:
        ledger.add(-6, f"That is the value of step {high[0].first_step}: a rate {ratio:.0f} times the usual can have done it by then.")
    elif late:
        ledger.cannot_tell(f"the loss of the first step was not logged, only that of step {high[0].first_step}.")
    dead = [f for f in findings_of(findings, nonfinite.Facts, severity=["critical"]) if (f.first_step or 0) > facts.falls_by]
    if dead:
        ledger.add(-8, "The run had recovered from it when it died of something else.", dead[:1])
    width, std = settings.number(run, "width"), settings.number(run, "init_std")
    if std and width:
        usual = math.sqrt(1 / (3 * width))
        ledger.add(6 if std > 2 * usual else -3, f"Config sets an init std of {std:g}; sqrt(1 / (3 width)) = {usual:.3g}.", [])
    else:
        ledger.cannot_tell("config does not name the init std.")
    grad = series(run, "grad.norm")
    if grad is not None and len(grad) > 40:
        ratio = float(np.median(grad.value[:5]) / max(float(np.median(grad.value[len(grad) // 2 :])), 1e-12))
        ledger.add(4 if ratio > 10 else 0, f"The first gradients are {ratio:.3g} times those of the second half.", [])
    if facts.falls_by:
        ledger.add(1, f"The loss is back at chance by step {facts.falls_by}.", high)
    return ledger.hypothesis(__name__, steps=span(high))


def baseline(b: Beside, findings: Findings) -> Said:
    return differ(b, "init_std")
