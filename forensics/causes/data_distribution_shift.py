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
from forensics.causes.lr_too_high import learns_on, over_at_once
from forensics.causes.overfitting import turned_with_training
from forensics.causes.silent_data_corruption import state_hit
from forensics.ledger import Ledger, of, span
from parsers.tables import Run

TITLE = "Lasting change of the data"
PRIOR = -6.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    shifts = of(findings, "level_shift")
    lasting = [f for f in of(findings, "loss_spike", traps=True) if f.facts["class"] in ("non_recovering", "not_a_spike")]
    relearnt = [f for f in turned_with_training(run, findings) if f not in lasting]
    if not shifts and not lasting and not relearnt:
        return None
    ledger = Ledger(PRIOR)
    step = (shifts or lasting or relearnt)[0].first_step or 0
    if shifts:
        ledger.add(11, "The loss steps to another level and stays there.", shifts[:2])
    elif lasting:
        ledger.add(3, "The loss does not come back.", lasting[:1])
    if relearnt:
        # 12: what is learnt anew and forgotten at once is another distribution; damaged weights are bad at both
        ledger.add(
            12, "From there on evaluation gets worse while training learns on: it is judged by other data than it sees.", relearnt[:1]
        )
    other = [f for f in lasting if f.facts["why"] == "data"]
    if other and not shifts:
        ledger.add(
            8, "The level steps up without an overshoot and learning continues, at a logged learning rate that did not change.", other[:1]
        )
    forgotten = [f for f in of(findings, "dataset_loss") if abs((f.first_step or 0) - step) <= f.facts["interval"]]
    if forgotten:
        ledger.add(14, f"{forgotten[0].title}: the mixture of the data changed.", forgotten)
    hit = state_hit(run, lasting)
    settled = learns_on(run, of(findings, "divergence"), lasting) if of(findings, "divergence") and lasting else ""
    if settled:
        ledger.add(6 if hit else 9, settled, lasting[:1])  # damaged weights are learnt away as well
    elif over := over_at_once(run, lasting):
        ledger.add(7, over, lasting[:1])
    elif of(findings, "divergence"):
        ledger.add(-6, "The loss keeps rising instead of settling at another level.", of(findings, "divergence"))
    absurd = [f for f in findings if f.facts.get("absurd")]
    if absurd:
        ledger.add(-15, "A checkpoint holds a value that no data make.", absurd)
    if hit is not None:
        ledger.add(-10, "The loss is thrown above what it was before training, as damaged weights do; data seldom do.", [hit])
    if left := [f for f in lasting if f.facts["falls_at"]]:
        ledger.add(
            -7, f"The loss leaves the high level at once at step {left[0].facts['falls_at']}: a stretch, no lasting change.", left[:1]
        )
    if of(findings, "nonfinite", severity=["critical"]):
        ledger.add(-12, "Values become NaN or infinite.", of(findings, "nonfinite")[:1])
    moved = [
        f
        for f in [*of(findings, "lr_schedule"), *of(findings, "restart"), *of(findings, "config_change")]
        if abs((f.first_step or 0) - step) <= 10
    ]
    if moved:
        ledger.add(-12, "Rate, config or the job itself changed at that step.", moved[:2])
    if len(of(findings, "loss_spike", severity=["warning", "critical"])) > 3:
        ledger.add(-5, "Many spikes stand beside it.", [])
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span(shifts or lasting or relearnt),
        settle=f"Evaluate the checkpoint before step {step} on data from both sides of it.",
        interventions=[
            "Compare what the loader read before and after.",
            "If the change is meant: nothing needs doing, mark it on the plot.",
        ],
    )
