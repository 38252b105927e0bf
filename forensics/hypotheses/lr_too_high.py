"""Learning rate too high

What it is
    A rate above what the model, batch and optimizer bear: it diverges, bounces, or gets stuck on a high level.

How it is weighed
    For it: divergence, or several spikes, while the rate is at or near its peak; a gradient norm that grows with them; a
    loss above its first value. Against it: a rate that was falling for long, a single spike in a calm run, clipping that
    would have tamed it.

What settles it
    The same steps at a third of the rate.

Folklore
    "LR too high / no warmup: most common cause." Halving it is the cheapest experiment there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics import settings
from forensics.case import Finding, Hypothesis
from forensics.detectors import lr_schedule
from forensics.ledger import Ledger, of, span
from forensics.recipe import recipe
from forensics.series import series
from parsers.tables import Run

TITLE = "Learning rate too high"
PRIOR = -4.0
HIGH, ORDINARY = 3.0, 1.5  # times the usual rate (forensics.recipe)


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    diverged, spikes = of(findings, "divergence"), of(findings, "loss_spike", severity=["warning", "critical"])
    stuck, dead = of(findings, "plateau", severity=["warning"]), of(findings, "nonfinite", severity=["critical"])
    little = [f for f in of(findings, "peak_rate") if f.facts["little"]]
    if not (diverged or spikes or stuck or dead or little):
        return None
    ledger = Ledger(PRIOR)
    shape = lr_schedule.shape(run)
    if len(run.group) > 1:
        ledger.add(
            -8,
            "Other seeds of the same recipe lie beside it: compare them before blaming the rate.",
            of(findings, "seed_spread"),
        )
    if diverged:
        ledger.add(8, "The loss turns round and climbs.", diverged)
        if diverged[0].facts["final"] > diverged[0].facts["first"]:
            ledger.add(3, "It ends above its first value.", diverged)
    if len(spikes) >= 3:
        ledger.add(6, f"{len(spikes)} spikes: instability that keeps coming back.", spikes[:5])
    elif len(spikes) == 1 and not diverged:
        ledger.add(-6, "One spike in the whole run. A rate too high spikes again and again.", spikes)
    first = min((f.first_step or 0 for f in [*diverged, *spikes, *dead]), default=None)
    if shape is None:
        ledger.cannot_tell("the learning rate was not logged.")
    elif first is not None:
        _rate_there(run, ledger, first, shape)
    r = recipe(run)
    if r.ratio is not None and r.ratio >= HIGH:
        ledger.add(
            8 if r.ratio >= 3 * HIGH else 5,
            f"The peak rate of {r.rate:.3g} is {r.ratio:.0f} times what is usual for such a model and optimizer.",
            [],
        )
    elif r.ratio is not None and r.ratio < ORDINARY:
        ledger.add(-5, f"The peak rate of {r.rate:.3g} is ordinary.", [])
    eps = settings.number(run, "eps")
    if eps is not None and eps < 1e-9 and spikes:
        ledger.add(-8, f"Epsilon is {eps:g}, which makes spikes of its own.", [])
    if diverged and (settled := learns_on(run, diverged, spikes)):
        ledger.add(-12, settled, diverged)
    if r.clip:
        ledger.add(2, f"Clipping at {r.clip:g} did not tame it.", [])
    elif r.clip == 0 and any(f.facts["ratio"] >= 4 for f in of(findings, "grad_spike")):
        ledger.add(
            -9,
            "Clipping is off and the gradient norm jumps: with clipping the same rate may be stable.",
            of(findings, "grad_spike")[:2],
        )
    if dead and not diverged and (dead[0].facts.get("grad_ratio") or 0) < 3:
        ledger.add(-6, "The values were calm until they became NaN.", dead)
    for kind, text in (
        ("attention_logits", "Attention logits run away: that is a cause of its own."),
        ("warmup", "There was no warmup: the same peak may be fine with one."),
    ):
        if of(findings, kind):
            ledger.add(-5, text, of(findings, kind))
    if of(findings, "lr_schedule"):
        ledger.add(-5, "The rate left its schedule: that is a cause of its own.", of(findings, "lr_schedule"))
    if little:
        ledger.add(7, "The loss hardly gets anywhere at that rate.", little)
    if stuck and not diverged:
        ledger.add(2, "The loss is stuck high from the beginning on.", stuck)
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span([*diverged, *spikes, *dead, *stuck, *little]),
        settle="Run the first steps again at a third of the rate.",
        interventions=[
            "Look at the loss against the rate: does trouble begin where the rate peaks?",
            "Run it again at a third of the peak rate.",
            "Lengthen the warmup and clip the gradient norm.",
        ],
    )


def learns_on(run: Run, diverged: Sequence[Finding], spikes: Sequence[Finding]) -> str:
    """A jump after which the loss falls again is another level, not a divergence. Empty where it is none."""
    s = series(run, "loss.train")
    jump = next(
        (
            f
            for f in spikes
            if f.facts["class"] == "non_recovering"
            and abs(f.facts["start"] - (diverged[0].first_step or 0)) <= 20 * (s.interval if s else 1)
        ),
        None,
    )
    if s is None or jump is None:
        return ""
    after = s.value[(s.step >= jump.facts["peak"]) & s.alive & np.isfinite(s.value)]
    if len(after) < 20:
        return ""
    top, last = float(np.median(after[:5])), float(np.median(after[-max(len(after) // 10, 5) :]))
    if last - jump.facts["level"] < 0.6 * (top - jump.facts["level"]):
        return f"After the jump the loss falls again, from {top:.3g} to {last:.3g}: learning goes on at another level."
    return ""


def _rate_there(run: Run, ledger: Ledger, step: int, shape: lr_schedule.Shape) -> None:
    s = series(run, "lr")
    assert s is not None
    before = s.value[s.step <= step]
    share = float(before[-1]) / shape.peak if len(before) else 1.0
    if share >= 0.7:
        ledger.add(4, f"Trouble begins at step {step}, with the rate at {share:.0%} of its peak.")
    elif shape.peak_step < step:
        ledger.add(-6, f"Trouble begins at step {step}, when the rate had fallen to {share:.0%} of its peak.")
