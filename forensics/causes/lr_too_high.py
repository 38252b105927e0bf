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

from forensics.case import Finding, Hypothesis
from forensics.causes.nan_from_sample import quiet
from forensics.detectors import lr_schedule
from forensics.ledger import Ledger, of, span
from forensics.run import settings
from forensics.run.recipe import recipe
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Learning rate too high"
PRIOR = -4.0
HIGH, ORDINARY = 3.0, 1.5  # times the usual rate (forensics.run.recipe)
BELOW = 0.9  # of the first loss
LONG, FALLEN = 0.2, 0.75  # share of the run at the full rate, share of the first loss: it trained well before


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    diverged, spikes = of(findings, "divergence"), of(findings, "loss_spike", severity=["warning", "critical"])
    stuck, dead = of(findings, "plateau", severity=["warning"]), of(findings, "nonfinite", severity=["critical"])
    little = [f for f in of(findings, "peak_rate") if f.facts["little"]]
    if not (diverged or spikes or stuck or dead or little):
        return None
    ledger = Ledger(PRIOR)
    shape = lr_schedule.shape(run)
    if of(findings, "seed_spread"):
        ledger.add(-12, "Other seeds bear the same rate and end elsewhere.", of(findings, "seed_spread"))
    elif len(run.group) > 1:
        ledger.add(-8, "Other seeds of the same recipe lie beside it: compare them before blaming the rate.")
    if diverged:
        above = diverged[0].facts.get("above_first")
        caught = "The loss climbs above its first level and comes back late, as the rate falls." if above else ""
        ledger.add(10 if above else 8, caught or "The loss turns round and climbs.", diverged)
        if diverged[0].facts["final"] > diverged[0].facts["first"]:
            ledger.add(3, "It ends above its first value.", diverged)
    if len(spikes) >= 3:
        ledger.add(6, f"{len(spikes)} spikes: instability that keeps coming back.", spikes[:5])
    elif len(spikes) == 1 and not diverged and not stuck and not little:
        ledger.add(-6, "One spike in the whole run. A rate too high spikes again and again.", spikes)
    first = min((f.first_step or 0 for f in [*diverged, *spikes, *dead]), default=None)
    if shape is None:
        ledger.cannot_tell("the learning rate was not logged.")
    elif first is not None:
        _rate_there(run, ledger, first, shape)
    if diverged and not stuck and (well := trained_well(run, first or 0)):
        ledger.add(-5, f"{well} A rate too high shows itself soon after its peak.", diverged)
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
        ledger.add(-8, f"Epsilon is {eps:g}, which alone can cause spikes.", [])
    if diverged and (settled := learns_on(run, diverged, spikes)):
        ledger.add(-12, settled, diverged)
    elif diverged and (over := over_at_once(run, spikes)):
        ledger.add(-8, over, spikes[:1])
    if parted := of(findings, "dataset_loss"):
        ledger.add(-10, "One dataset became worse while others went on improving: a rate too high spoils all of them.", parted)
    if r.clip:
        ledger.add(2, f"Clipping at {r.clip:g} did not tame it.", [])
    elif r.clip == 0 and any(f.facts["ratio"] >= 4 for f in of(findings, "grad_spike")):
        ledger.add(
            -9, "Clipping is off and the gradient norm jumps: with clipping the same rate may be stable.", of(findings, "grad_spike")[:2]
        )
    if dead and (quiet(dead[0]) or not diverged) and (dead[0].facts.get("grad_ratio") or 0) < 3:
        ledger.add(-8, "Loss and gradient were calm until they became NaN.", dead)
    for kind, text in (
        ("attention_logits", "Attention logits run away: that is a separate cause."),
        ("warmup", "There was no warmup: the same peak may be fine with one."),
    ):
        if of(findings, kind):
            ledger.add(-5, text, of(findings, kind))
    if of(findings, "lr_schedule"):
        ledger.add(-5, "The learning rate left its schedule: that is a separate cause.", of(findings, "lr_schedule"))
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


def trained_well(run: Run, step: int) -> str:
    """What to say where the loss had fallen for long at the full rate before `step`; empty where it had not.

    At least a fifth of the run and fifty values beyond the peak of the rate, with a loss down by a quarter of its first level.
    """
    s, shape = series(run, "loss.train"), lr_schedule.shape(run)
    if s is None or shape is None:
        return ""
    before = s.value[(s.step >= shape.peak_step) & (s.step < step) & np.isfinite(s.value)]
    length = int(s.step.max() - s.step.min())
    if len(before) < 50 or step - shape.peak_step < LONG * length:
        return ""
    first, level = float(np.median(s.value[:5])), float(np.median(before[-15:]))
    if not 0 < level <= FALLEN * first:
        return ""
    return f"The run trained well for {step - shape.peak_step} steps at its peak rate (loss down from {first:.3g} to {level:.3g})."


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
        return f"After the jump the loss falls again, from {top:.3g} to {last:.3g}: learning continues at another level."
    return ""


def over_at_once(run: Run, spikes: Sequence[Finding]) -> str:
    """A step to a level well below the first loss, with no further rise: no divergence climbs so. Empty where it is none."""
    s = series(run, "loss.train")
    for f in spikes:
        if s is None or f.facts["class"] not in ("non_recovering", "not_a_spike") or not np.isfinite(f.facts["top"]):
            continue
        after = s.value[(s.step >= f.facts["start"]) & s.alive & np.isfinite(s.value)]
        if len(after) < 40:
            continue
        level, first = f.facts["level"], float(np.median(s.value[:5]))
        early, late = float(np.median(after[2:12])), float(np.median(after[-max(len(after) // 5, 10) :]))
        if late - level <= 1.15 * (early - level) and level < late < BELOW * first:
            return f"After the step the loss rises no further ({early:.3g}, then {late:.3g}), and stays below its first level."
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
