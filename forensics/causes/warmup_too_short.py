"""Warmup too short

What it is
    The peak rate is bearable, but not from the first step on: the first large updates throw the model into a bad corner.

How it is weighed
    For it: a rate at its peak within the first steps of a model with attention, trouble or a stall that begins right there.
    Against it: a real warmup, trouble that begins late, a model that needs none.

What settles it
    The same peak rate with a warmup of some hundred steps.

Folklore
    "Large-batch training without warmup can diverge in the first epoch and look like a code bug."
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import divergence, grad_spike, loss_spike, nonfinite, warmup
from forensics.ledger import GRAVE, Findings, Ledger, all_of, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.run import reach
from forensics.run.recipe import recipe
from parsers.tables import Run

TITLE = "Warmup too short"
PRIOR = -5.0
SETTLE = "Run the first steps again with the same peak rate and a real warmup."
INTERVENTIONS = ("Warm up over 1 to 5 % of the run, at least some hundred steps.", "Or start at a third of the rate.")
EXPECTS = "samples:sound rate:as_told raw_loss:there pairs:in_order replay:any clip:back warmup:learns seeds:all"
NEEDS_TO_SPEAK = ("grad.norm", "lr")
ARMS = ("warmup again", "rate x 0.1")
OUTCOMES = {"rate x 0.1": 4.0, "warmup again": 6.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    r = recipe(run)
    missing = findings_of(findings, warmup.Facts)
    early_end = 0.1 * (reach.last(run) or 0)
    found = [*findings_of(findings, loss_spike.Facts), *findings_of(findings, nonfinite.Facts, severity=["critical"])]
    trouble = [f for f in [*found, *findings_of(findings, grad_spike.Facts)] if (f.first_step or 0) <= early_end]
    if not missing:
        return None
    ledger = Ledger(PRIOR)
    ledger.add(12, f"{missing[0].title}.", missing)
    if trouble:
        ledger.add(4, "Trouble shows in the first tenth of the run.", trouble[:3])
    late = [f for f in all_of(findings, loss_spike.Facts, divergence.Facts, severity=GRAVE) if (f.first_step or 0) > 3 * early_end]
    if late:
        ledger.add(-6, "The trouble begins late, when a warmup would long be over.", late[:2])
    if r.ratio is not None and r.ratio > 20:
        ledger.add(-4, f"The rate of {r.rate:.2g} is {r.ratio:.0f} times the usual: too high with any warmup.", [])
    return ledger.hypothesis(__name__, steps=span([*missing, *trouble]))


def baseline(b: Beside, findings: Findings) -> Said:
    here, there = (r.warmup for r in b.recipes)
    if here is None or there is None:
        return None
    if here < 0.5 * there:
        return 5.0, f"The baseline warms up over {there:g} steps, this run over {here:g}."
    return (-4.0, f"The baseline warms up no longer ({there:g} steps).") if here >= there else None
