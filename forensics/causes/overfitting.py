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

from forensics.case import Hypothesis
from forensics.detectors import divergence, eval_jump, train_eval_gap
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.signs.jumps import turned_with_training
from parsers.tables import Run

TITLE = "Overfitting"
PRIOR = -4.0
SETTLE = "Evaluate the last checkpoint on a slice of the training set, in evaluation mode."
EXPECTS = "tensors:moved pairs:in_order old_evaluation:same"
NEEDS_TO_SPEAK = ("loss.eval",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    gap = findings_of(findings, train_eval_gap.Facts)
    if not gap:
        return None
    facts = gap[0].facts
    ledger = Ledger(PRIOR)
    ledger.add(14 if facts.rise >= 0.15 else 10, f"Evaluation loss ends {facts.rise:.0%} above its best, of step {facts.best_step}.", gap)
    ledger.add(4, f"Training loss falls by another {facts.train_fall:.0%} meanwhile.", gap)
    if jumps := findings_of(findings, eval_jump.Facts, severity=["warning"]):
        ledger.add(-12, "Evaluation does not turn, it jumps: its data or code changed.", jumps)
    if there := turned_with_training(run, findings):
        ledger.add(
            -12,
            f"Evaluation turns just where the training loss jumps, at step {there[0].facts.start}: what happened there did both.",
            there,
        )
    if facts.improved < 0.03 and not facts.late:
        ledger.add(-14, "Evaluation never got better than at the start: the model never learned anything that generalizes.", gap)
    if findings_of(findings, divergence.Facts):
        ledger.add(-8, "Training loss diverges, too.", findings_of(findings, divergence.Facts))
    return ledger.hypothesis(
        __name__,
        steps=span(gap),
        interventions=[f"Use the checkpoint nearest to step {facts.best_step}.", "Stop early, add data, or regularize more."],
    )
