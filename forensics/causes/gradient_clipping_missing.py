"""Gradient clipping missing

What it is
    The same rate would be stable with clipping: single huge gradients throw the weights far off.

How it is weighed
    For it: the gradient norm jumps by orders of magnitude just before or with the loss, and config has no clipping.
    Against it: clipping in the config, spikes of the loss with an ordinary norm.

What settles it
    The same steps, clipped at 1.0.

Folklore
    "No gradient clipping: clip global grad-norm (1.0). A spike precedes the NaN."
"""

from __future__ import annotations

from forensics.case import Finding, Hypothesis
from forensics.detectors import divergence, grad_spike, loss_spike, nonfinite
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.run import settings
from forensics.run.series import series
from forensics.signs.before_nan import quiet
from forensics.signs.jumps import trained_well, turned_with_training
from parsers.tables import Run

TITLE = "Gradient clipping missing"
PRIOR = -6.0
SETTLE = "Replay the same steps, clipped at 1.0."
INTERVENTIONS = ("Clip the global norm at 1.0 and go back to the last good checkpoint.", "Log the norm before clipping.")
EXPECTS = "samples:sound rate:as_told raw_loss:there both_sides:neither replay:any clip:away fp32:back epsilon:back seeds:all"
NEEDS_TO_SPEAK = ("grad.norm",)
ARMS = ("clipping on",)
OUTCOMES = {"state x data": 6.0, "rate x 0.1": 4.0, "clipping on": 12.0, "later: harmless": 2.0}
HUGE, LARGE = 20.0, 4.0


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    spikes = findings_of(findings, loss_spike.Facts, severity=GRAVE)
    diverged, dead = findings_of(findings, divergence.Facts), findings_of(findings, nonfinite.Facts, severity=["critical"])
    trouble: list[Finding] = [*spikes, *diverged, *dead]
    if not trouble:
        return None
    ledger = Ledger(PRIOR)
    off = _clipping(run, ledger)
    large = [f for f in findings_of(findings, grad_spike.Facts) if f.facts.ratio >= LARGE and any(_leads(f, t) for t in trouble)]
    huge = [f for f in large if f.facts.ratio >= HUGE]
    if large:
        times = max(f.facts.ratio for f in large)
        ledger.add(13 if huge else 9, f"The gradient norm jumps to {times:.3g} times its level with the trouble.", (huge or large)[:3])
    elif series(run, "grad.norm") is None:
        ledger.cannot_tell("the gradient norm was not logged.")
    else:
        ledger.add(-6, "The gradient norm does not jump by orders of magnitude.")
    well = trained_well(run, min(t.first_step or 0 for t in trouble))
    if off and large and diverged and well:
        ledger.add(4, f"{well} Then a single large gradient was enough.")
    if there := turned_with_training(run, findings):
        ledger.add(-8, "Training learns on from there while evaluation gets worse: weights that exploded are bad at both.", there)
    if flat := [f for f in spikes if f.facts.falls_at]:
        text = f"The loss stands at one high level and leaves it at once at step {flat[0].facts.falls_at}: no explosion does."
        ledger.add(-9, text, flat[:1])
    calm = [f for f in dead if f.facts.metric == "loss.train" and quiet(f)]
    if calm and not diverged:
        ledger.add(-6, "The loss was no higher than its scatter until it became NaN: an explosion shows there first.", calm)
    return ledger.hypothesis(__name__, steps=span(trouble))


def _clipping(run: Run, ledger: Ledger) -> bool:
    """Whether config turns clipping off."""
    clip = settings.setting(run, "clip")
    value = settings.as_number(clip.value) if clip else None
    if clip is None:
        ledger.cannot_tell("config does not say whether gradients were clipped.")
    elif value and 0 < value < 1e3:
        ledger.add(-12, f"Gradients were clipped at {value:g} ({clip.where}).")
    else:
        ledger.add(5, f"Clipping is off ({clip.where}).")
        return True
    return False


def _leads(grad: Finding[grad_spike.Facts], trouble: Finding) -> bool:
    """Whether the norm jumps shortly before the trouble, or with it."""
    begins = trouble.first_step or 0
    peak = trouble.facts.peak if isinstance(trouble.facts, loss_spike.Facts) else begins
    last = trouble.last_step or begins if trouble.kind == divergence.Facts.detector() else peak + 3
    return begins - 10 <= grad.facts.peak <= last


def baseline(b: Beside, findings: Findings) -> Said:
    here, there = (r.clip for r in b.recipes)
    if there and here == 0:
        return 6.0, f"The baseline clips at {there:g}, this run does not."
    return (-4.0, "The baseline does not clip either.") if there == 0 and here == 0 else None
