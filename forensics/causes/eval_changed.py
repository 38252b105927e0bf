"""Evaluation changed

What it is
    The evaluation is not what it was: other data, another prompt or tokenizer, a bug in its code. The model is the same.

How it is weighed
    For it: an evaluation metric that steps to another level between two evaluations while training goes on as before. Against
    it: a slow turn (overfitting), a training loss or rate that moved at that step.

What settles it
    Evaluating an old checkpoint with today's evaluation.

Folklore
    "A better number can mean worse learning."
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import eval_jump
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from parsers.tables import Run

TITLE = "The evaluation changed"
PRIOR = -5.0
SETTLE = "Evaluate the checkpoint before the step with the present evaluation."
INTERVENTIONS = (
    "Look at what changed in evaluation data, prompt and code at that time.",
    "Redraw the curve with one evaluation for all checkpoints.",
)
EXPECTS = "counters:go_on pairs:in_order old_evaluation:another"
NEEDS_TO_SPEAK = ("loss.eval",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    jumps = findings_of(findings, eval_jump.Facts)
    if not jumps:
        return None
    ledger = Ledger(PRIOR)
    ledger.add(4 if jumps[0].facts.alone else 17, jumps[0].title + ".", jumps)
    step = jumps[0].first_step or 0
    near = [
        f
        for f in findings
        if f.kind in ("lr_schedule", "loss_spike", "resume_break") and f.severity != "info" and abs((f.first_step or 0) - step) <= 20
    ]
    if near:
        ledger.add(-12, "Training moved near that step, too.", near[:2])
    return ledger.hypothesis(__name__, steps=span(jumps))


def baseline(b: Beside, findings: Findings) -> Said:
    keys = [d["key"] for d in b.differs if d["kind"] == "evaluation" and d["suspicion"] >= 30]
    return (5.0, f"The evaluation is set otherwise than in the baseline: {', '.join(keys[:4])}.") if keys else None
