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

from dataclasses import dataclass

from forensics.case import Finding, Hypothesis
from forensics.detectors import (
    attention_logits,
    dataset_loss,
    divergence,
    grad_spike,
    loss_spike,
    lr_schedule,
    nonfinite,
    peak_rate,
    plateau,
    seed_spread,
    warmup,
)
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.run import settings
from forensics.run.recipe import HIGH, recipe
from forensics.run.series import series
from forensics.signs.before_nan import quiet
from forensics.signs.jumps import learns_on, over_at_once, trained_well
from parsers.tables import Run

TITLE = "Learning rate too high"
PRIOR = -4.0
SETTLE = "Run the first steps again at a third of the rate."
INTERVENTIONS = (
    "Look at the loss against the rate: does trouble begin where the rate peaks?",
    "Run it again at a third of the peak rate.",
    "Lengthen the warmup and clip the gradient norm.",
)
EXPECTS = (
    "configs:same counters:go_on samples:sound rate:as_told tensors:moved raw_loss:there pairs:in_order old_evaluation:same "
    "both_sides:neither replay:any clip:back fp32:back third:away epsilon:back warmup:not qk_norm:not range:lower seeds:all"
)
NEEDS_TO_SPEAK = ("grad.norm", "lr")
ARMS = ("rate x 0.1", "rate held")
OUTCOMES = {"state x data": 4.0, "rate x 0.1": 8.0, "rate held": 4.0, "later: harmless": 2.0}
ORDINARY = 1.5  # times the usual rate (forensics.run.recipe)


@dataclass(frozen=True)
class Trouble:
    """What a rate too high would have done."""

    diverged: list[Finding[divergence.Facts]]
    spikes: list[Finding[loss_spike.Facts]]
    dead: list[Finding[nonfinite.Facts]]
    stuck: list[Finding[plateau.Facts]]
    little: list[Finding[peak_rate.Facts]]  # learnt, at a rate far above the usual

    def all(self) -> list[Finding]:
        return [*self.diverged, *self.spikes, *self.dead, *self.stuck, *self.little]


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    t = Trouble(
        findings_of(findings, divergence.Facts),
        findings_of(findings, loss_spike.Facts, severity=GRAVE),
        findings_of(findings, nonfinite.Facts, severity=["critical"]),
        findings_of(findings, plateau.Facts, severity=["warning"]),
        [f for f in findings_of(findings, peak_rate.Facts) if f.facts.little],
    )
    if not t.all():
        return None
    ledger = Ledger(PRIOR)
    if seeds := findings_of(findings, seed_spread.Facts):
        ledger.add(-12, "Other seeds bear the same rate and end elsewhere.", seeds)
    elif len(run.group) > 1:
        ledger.add(-8, "Other seeds of the same recipe lie beside it: compare them before blaming the rate.")
    _symptoms(ledger, t)
    _timing(run, ledger, t)
    _recipe(run, ledger, bool(t.spikes))
    _other_levels(run, findings, ledger, t)
    _clipped(run, findings, ledger)
    if t.dead and (quiet(t.dead[0]) or not t.diverged) and (t.dead[0].facts.grad_ratio or 0) < 3:
        ledger.add(-8, "Loss and gradient were calm until they became NaN.", t.dead)
    for facts, text in (
        (attention_logits.Facts, "Attention logits run away: that is a separate cause."),
        (warmup.Facts, "There was no warmup: the same peak may be fine with one."),
        (lr_schedule.Facts, "The learning rate left its schedule: that is a separate cause."),
    ):
        if others := findings_of(findings, facts):
            ledger.add(-5, text, others)
    if t.little:
        ledger.add(7, "The loss hardly gets anywhere at that rate.", t.little)
    if t.stuck and not t.diverged:
        ledger.add(2, "The loss is stuck high from the beginning on.", t.stuck)
    return ledger.hypothesis(__name__, steps=span(t.all()))


def _symptoms(ledger: Ledger, t: Trouble) -> None:
    if t.diverged:
        facts = t.diverged[0].facts
        caught = "The loss climbs above its first level and comes back late, as the rate falls."
        ledger.add(10 if facts.above_first else 8, caught if facts.above_first else "The loss turns round and climbs.", t.diverged)
        if facts.final > facts.first:
            ledger.add(3, "It ends above its first value.", t.diverged)
    if len(t.spikes) >= 3:
        ledger.add(6, f"{len(t.spikes)} spikes: instability that keeps coming back.", t.spikes[:5])
    elif len(t.spikes) == 1 and not (t.diverged or t.stuck or t.little):
        ledger.add(-6, "One spike in the whole run. A rate too high spikes again and again.", t.spikes)


def _timing(run: Run, ledger: Ledger, t: Trouble) -> None:
    """Where the rate stood when the trouble began, and how long the run had borne it."""
    first = min((f.first_step or 0 for f in [*t.diverged, *t.spikes, *t.dead]), default=None)
    shape = lr_schedule.shape(run)
    if shape is None:
        ledger.cannot_tell("the learning rate was not logged.")
    elif first is not None:
        _rate_there(run, ledger, first, shape)
    if t.diverged and not t.stuck and (well := trained_well(run, first or 0)):
        ledger.add(-5, f"{well} A rate too high shows itself soon after its peak.", t.diverged)


def _recipe(run: Run, ledger: Ledger, spiked: bool) -> None:
    r, eps = recipe(run), settings.number(run, "eps")
    if r.ratio is not None and r.ratio >= HIGH:
        text = f"The peak rate of {r.rate:.3g} is {r.ratio:.0f} times what is usual for such a model and optimizer."
        ledger.add(8 if r.ratio >= 3 * HIGH else 5, text)
    elif r.ratio is not None and r.ratio < ORDINARY:
        ledger.add(-5, f"The peak rate of {r.rate:.3g} is ordinary.")
    if eps is not None and eps < 1e-9 and spiked:
        ledger.add(-8, f"Epsilon is {eps:g}, which alone can cause spikes.")


def _other_levels(run: Run, findings: Findings, ledger: Ledger, t: Trouble) -> None:
    """Jumps after which the loss goes on at another level are no divergence."""
    if t.diverged and (settled := learns_on(run, t.diverged, t.spikes)):
        ledger.add(-12, settled, t.diverged)
    elif t.diverged and (over := over_at_once(run, t.spikes)):
        ledger.add(-8, over, t.spikes[:1])
    if parted := findings_of(findings, dataset_loss.Facts):
        ledger.add(-10, "One dataset became worse while others went on improving: a rate too high spoils all of them.", parted)


def _clipped(run: Run, findings: Findings, ledger: Ledger) -> None:
    clip, grads = recipe(run).clip, findings_of(findings, grad_spike.Facts)
    if clip:
        ledger.add(2, f"Clipping at {clip:g} did not tame it.")
    elif clip == 0 and any(f.facts.ratio >= 4 for f in grads):
        ledger.add(-9, "Clipping is off and the gradient norm jumps: with clipping the same rate may be stable.", grads[:2])


def _rate_there(run: Run, ledger: Ledger, step: int, shape: lr_schedule.Shape) -> None:
    s = series(run, "lr")
    assert s is not None
    before = s.value[s.step <= step]
    share = float(before[-1]) / shape.peak if len(before) else 1.0
    if share >= 0.7:
        ledger.add(4, f"Trouble begins at step {step}, with the rate at {share:.0%} of its peak.")
    elif shape.peak_step < step:
        ledger.add(-6, f"Trouble begins at step {step}, when the rate had fallen to {share:.0%} of its peak.")


def baseline(b: Beside, findings: Findings) -> Said:
    here, there = (r.rate for r in b.recipes)
    if not here or not there:
        return None
    if here > 1.5 * there:
        return 6.0, f"The baseline's peak rate is {there:.3g}, here it is {here:.3g}."
    if here <= 1.05 * there and b.parted is not None and (b.parted.level is not None or b.parted.excursion is not None):
        return -5.0, f"The baseline took the same rate ({there:.3g}) without this."
    return None
