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

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.causes.lr_too_high import trained_well
from forensics.causes.nan_from_sample import quiet
from forensics.causes.overfitting import turned_with_training
from forensics.ledger import Ledger, of, span
from forensics.run import settings
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Gradient clipping missing"
PRIOR = -6.0
HUGE, LARGE = 20.0, 4.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    trouble = [
        *of(findings, "loss_spike", severity=["warning", "critical"]),
        *of(findings, "divergence"),
        *of(findings, "nonfinite", severity=["critical"]),
    ]
    if not trouble:
        return None
    ledger = Ledger(PRIOR)
    clip = settings.setting(run, "clip")
    value = settings.as_number(clip.value) if clip else None
    if clip is None:
        ledger.cannot_tell("config does not say whether gradients were clipped.")
    elif value and 0 < value < 1e3:
        ledger.add(-12, f"Gradients were clipped at {value:g} ({clip.where}).", [])
    else:
        ledger.add(5, f"Clipping is off ({clip.where}).", [])
    grads = of(findings, "grad_spike")
    large = [f for f in grads if f.facts["ratio"] >= LARGE and any(_leads(f, t) for t in trouble)]
    huge = [f for f in large if f.facts["ratio"] >= HUGE]
    if huge:
        ledger.add(13, f"The gradient norm jumps to {max(f.facts['ratio'] for f in huge):.3g} times its level with the trouble.", huge[:3])
    elif large:
        ledger.add(9, f"The gradient norm jumps to {max(f.facts['ratio'] for f in large):.3g} times its level with the trouble.", large[:3])
    elif series(run, "grad.norm") is None:
        ledger.cannot_tell("the gradient norm was not logged.")
    else:
        ledger.add(-6, "The gradient norm does not jump by orders of magnitude.", [])
    off = clip is not None and not (value and 0 < value < 1e3)
    well = trained_well(run, min(t.first_step or 0 for t in trouble))
    if off and large and of(findings, "divergence") and well:
        ledger.add(4, f"{well} Then a single large gradient was enough.", [])
    if there := turned_with_training(run, findings):
        ledger.add(-8, "Training learns on from there while evaluation gets worse: weights that exploded are bad at both.", there)
    stretch = [f for f in trouble if f.facts.get("falls_at")]
    if stretch:
        ledger.add(
            -9,
            f"The loss stays at one high level and leaves it at once at step {stretch[0].facts['falls_at']}: an explosion would not.",
            stretch[:1],
        )
    calm = [f for f in of(findings, "nonfinite", severity=["critical"]) if f.facts["metric"] == "loss.train" and quiet(f)]
    if calm and not of(findings, "divergence"):
        ledger.add(-6, "The loss was no higher than its scatter until it became NaN: an explosion shows there first.", calm)
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span(trouble),
        settle="Replay the same steps, clipped at 1.0.",
        interventions=["Clip the global norm at 1.0 and go back to the last good checkpoint.", "Log the norm before clipping."],
    )


def _leads(grad: Finding, trouble: Finding) -> bool:
    begins = trouble.facts.get("start", trouble.first_step) or 0
    last = trouble.last_step if trouble.kind == "divergence" else (trouble.facts.get("peak") or begins) + 3
    return bool(begins - 10 <= grad.facts["peak"] <= (last or begins))
