"""Optimizer second moment

What it is
    Adam divides by the root of its second moment. Where gradients have become tiny and epsilon is smaller still, or the memory
    (beta2) is short, a gradient of ordinary size makes a huge update.

How it is weighed
    For it: sudden spikes of loss and gradient in a run whose gradients had become tiny, an epsilon far below the gradients'
    scale, beta2 below 0.99. Against it: gradients of ordinary size, a usual epsilon, another optimizer.

What settles it
    The same steps with an epsilon of 1e-5 (or of the gradient's scale).

Folklore
    "Adam instability" (arXiv 2304.09871) traces late spikes to just this; epsilon is a hyperparameter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.case import Finding, Hypothesis
from forensics.detectors import divergence, grad_spike, loss_spike
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said, differ
from forensics.run import settings
from forensics.run.recipe import recipe
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Optimizer's second moment (epsilon or beta2)"
PRIOR = -6.0
SETTLE = "Replay the steps before the first spike with epsilon 1e-5."
INTERVENTIONS = (
    "Raise epsilon towards the gradients' scale.",
    "Raise beta2, or clip the update.",
    "Stop: a loss this small has nothing left to learn.",
)
EXPECTS = "samples:sound raw_loss:there replay:any epsilon:away"
NEEDS_TO_SPEAK = ("grad.norm",)
ARMS = ("larger epsilon", "smaller beta2")
OUTCOMES = {
    "state x data": 4.0,
    "rate x 0.1": 4.0,
    "larger epsilon": 10.0,
    "smaller beta2": 6.0,
    "moments reset": 4.0,
    "later: harmless": 2.0,
}
TINY = 1e-3


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    jumps, diverged = findings_of(findings, loss_spike.Facts, severity=GRAVE), findings_of(findings, divergence.Facts)
    spikes: Sequence[Finding] = jumps or diverged
    grads = findings_of(findings, grad_spike.Facts)
    if recipe(run).sgd or not (spikes or len(grads) >= 2):
        return None
    s = series(run, "grad.norm")
    eps, beta2 = settings.number(run, "eps"), settings.number(run, "beta2")
    if s is None and eps is None:
        return None
    ledger = Ledger(PRIOR)
    if s is None:
        ledger.cannot_tell("the gradient norm was not logged.")
    else:
        levels = [
            float(np.median(b)) for f in spikes[:20] if len(b := s.value[(s.step < (f.first_step or 0)) & np.isfinite(s.value)][-100:])
        ]
        level = float(np.median(levels)) if levels else float("nan")
        if level < TINY:
            ledger.add(12, f"The gradient norm had fallen to {level:.2g} before.", spikes[:2])
        else:
            ledger.add(-10, f"The gradient norm was of ordinary size ({level:.2g}).", [])
    if eps is not None:
        tiny = eps < 1e-9
        ledger.add(8 if tiny else -2, f"Epsilon is {eps:g}" + (", far below the usual 1e-8." if tiny else ", as usual."), [])
    if beta2 is not None and beta2 < 0.97:
        ledger.add(2, f"Beta2 is {beta2:g}: a short memory.", [])
    elif beta2 is not None and beta2 >= 0.999:
        ledger.add(-1, f"Beta2 is {beta2:g}.", [])
    if len(spikes) >= 2:
        ledger.add(2, f"{len(spikes)} spikes, out of calm.", spikes[:4])
    return ledger.hypothesis(__name__, steps=span(spikes or grads))


def baseline(b: Beside, findings: Findings) -> Said:
    return differ(b, "eps", "beta2")
