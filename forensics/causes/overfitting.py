"""Overfitting

What it is
    The model learns the training set by heart: evaluation turns up while training loss goes on falling.

How it is weighed
    For it: an evaluation loss well above its best while training falls on. Against it: a jump of the evaluation at one
    step (its data or code changed), a training loss that rises as well.

What settles it
    More data, or an evaluation on the training set in evaluation mode.

Folklore
    A healthy run's first fault. The best checkpoint lies at the lowest evaluation loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Overfitting"
PRIOR = -4.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    gap = of(findings, "train_eval_gap")
    if not gap:
        return None
    facts = gap[0].facts
    ledger = Ledger(PRIOR)
    ledger.add(
        14 if facts["rise"] >= 0.15 else 10, f"Evaluation loss ends {facts['rise']:.0%} above its best, of step {facts['best_step']}.", gap
    )
    ledger.add(4, f"Training loss falls by another {facts['train_fall']:.0%} meanwhile.", gap)
    if jumps := of(findings, "eval_jump", severity=["warning"]):
        ledger.add(-12, "Evaluation does not turn, it jumps: its data or code changed.", jumps)
    if there := turned_with_training(run, findings):
        ledger.add(
            -12,
            f"Evaluation turns just where the training loss jumps, at step {there[0].facts['start']}: what happened there did both.",
            there,
        )
    if facts["improved"] < 0.03 and not facts["late"]:
        ledger.add(-14, "Evaluation never got better than at the start: the model never learned anything that generalizes.", gap)
    if of(findings, "divergence"):
        ledger.add(-8, "Training loss diverges, too.", of(findings, "divergence"))
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span(gap),
        settle="Evaluate the last checkpoint on a slice of the training set, in evaluation mode.",
        interventions=[f"Use the checkpoint nearest to step {facts['best_step']}.", "Stop early, add data, or regularize more."],
    )


def turned_with_training(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Spikes of the training loss that begin between the best evaluation and the next one: then it was no slow turn."""
    held = series(run, "loss.eval")
    gap = of(findings, "train_eval_gap")
    if not gap or held is None:
        return []
    best = gap[0].facts["best_step"]
    after = held.step[held.alive & (held.step > best)]
    if not len(after):
        return []
    spikes = of(findings, "loss_spike", severity=["warning", "critical"])
    return [f for f in spikes if best < f.facts["start"] <= int(after[0]) and f.facts["class"] != "fast"]
