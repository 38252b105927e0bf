"""Data distribution shift

What it is
    The data change for good: another source, another mixture, a curriculum step. No sample is at fault.

How it is weighed
    For it: the loss steps to another level between two values and stays there, learning on as before; the gradient norm may
    step with it. Against it: a jump of the rate or a restart at that step, a loss that goes on rising.

What settles it
    Evaluating one checkpoint on data from before and from after the step.

Folklore
    A level shift is not a spike: nothing has to be rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.detectors import (
    checkpoint_damage,
    config_change,
    dataset_loss,
    divergence,
    level_shift,
    loss_spike,
    lr_schedule,
    nonfinite,
    restart,
)
from forensics.ledger import GRAVE, Findings, Ledger, all_of, findings_of, span
from forensics.signs.jumps import learns_on, over_at_once, state_hit, turned_with_training
from parsers.tables import Run

TITLE = "Lasting change of the data"
PRIOR = -6.0
INTERVENTIONS = ("Compare what the loader read before and after.", "If the change is meant: nothing needs doing, mark it on the plot.")
EXPECTS = (
    "configs:same counters:go_on rate:as_told tensors:moved raw_loss:there old_evaluation:same both_sides:later replay:any clip:back "
    "third:back"
)
NEEDS_TO_SPEAK = ("loss.eval",)
ARMS = ("skip",)
OUTCOMES = {"skip: again": -2.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    shifts = findings_of(findings, level_shift.Facts)
    lasting = [f for f in findings_of(findings, loss_spike.Facts, traps=True) if f.facts.class_ in ("non_recovering", "not_a_spike")]
    relearnt = [f for f in turned_with_training(run, findings) if f not in lasting]
    about: Sequence[Finding] = shifts or lasting or relearnt
    if not about:
        return None
    ledger = Ledger(PRIOR)
    step = about[0].first_step or 0
    if shifts:
        ledger.add(11, "The loss steps to another level and stays there.", shifts[:2])
    elif lasting:
        ledger.add(3, "The loss does not come back.", lasting[:1])
    if relearnt:
        # 12: what is learnt anew and forgotten at once is another distribution; damaged weights are bad at both
        text = "From there on evaluation gets worse while training learns on: it is judged by other data than it sees."
        ledger.add(12, text, relearnt[:1])
    if not shifts and (other := [f for f in lasting if f.facts.why == "data"]):
        text = "The level steps up without an overshoot and learning continues, at a logged learning rate that did not change."
        ledger.add(8, text, other[:1])
    forgotten = [f for f in findings_of(findings, dataset_loss.Facts) if abs((f.first_step or 0) - step) <= f.facts.interval]
    if forgotten:
        ledger.add(14, f"{forgotten[0].title}: the mixture of the data changed.", forgotten)
    _another_level(run, findings, ledger, lasting)
    _other_troubles(findings, ledger, step)
    return ledger.hypothesis(
        __name__, steps=span(about), settle=f"Evaluate the checkpoint before step {step} on data from both sides of it."
    )


def _another_level(run: Run, findings: Findings, ledger: Ledger, lasting: list[Finding[loss_spike.Facts]]) -> None:
    """Whether the loss goes on at its new level, or was thrown there and comes down."""
    diverged, hit = findings_of(findings, divergence.Facts), state_hit(run, lasting)
    if settled := learns_on(run, diverged, lasting) if diverged and lasting else "":
        ledger.add(6 if hit else 9, settled, lasting[:1])  # damaged weights are learnt away as well
    elif over := over_at_once(run, lasting):
        ledger.add(7, over, lasting[:1])
    elif diverged:
        ledger.add(-6, "The loss keeps rising instead of settling at another level.", diverged)
    if absurd := [f for f in findings_of(findings, checkpoint_damage.Facts) if f.facts.absurd]:
        ledger.add(-15, "A checkpoint holds a value that no data make.", absurd)
    if hit is not None:
        ledger.add(-10, "The loss is thrown above what it was before training, as damaged weights do; data seldom do.", [hit])
    if left := [f for f in lasting if f.facts.falls_at]:
        text = f"The loss leaves the high level at once at step {left[0].facts.falls_at}: a stretch, no lasting change."
        ledger.add(-7, text, left[:1])


def _other_troubles(findings: Findings, ledger: Ledger, step: int) -> None:
    if findings_of(findings, nonfinite.Facts, severity=["critical"]):
        ledger.add(-12, "Values become NaN or infinite.", findings_of(findings, nonfinite.Facts)[:1])
    changes = all_of(findings, lr_schedule.Facts, restart.Facts, config_change.Facts)
    if moved := [f for f in changes if abs((f.first_step or 0) - step) <= 10]:
        ledger.add(-12, "Rate, config or the job itself changed at that step.", moved[:2])
    if len(findings_of(findings, loss_spike.Facts, severity=GRAVE)) > 3:
        ledger.add(-5, "Many spikes stand beside it.")
