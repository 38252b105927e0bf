"""Train/eval leakage

What it is
    Evaluation samples, or their near copies, are in the training set: the evaluation measures memory.

How it is weighed
    For it: an evaluation that follows training through many passes into memorization. Against it: an evaluation that turns up,
    as it should when training is learnt by heart.

What settles it
    Searching the training set for the evaluation samples; evaluating on fresh data.

Folklore
    Test-set contamination is the pitfall with the best-looking curves.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import eval_shadow, train_eval_gap
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Evaluation data leaked into training"
PRIOR = -5.0
SETTLE = "Look for the evaluation samples in the training set, exact and near copies."
INTERVENTIONS = ("Evaluate on fresh data.", "Split by document, user or patient, not by row.", "Do not report these numbers.")
EXPECTS = "pairs:leaked old_evaluation:same"
NEEDS_TO_SPEAK = ("loss.eval",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    shadow = findings_of(findings, eval_shadow.Facts)
    if not shadow:
        return None
    facts = shadow[0].facts
    ledger = Ledger(PRIOR)
    if facts.passes is None:
        ledger.add(16, f"{shadow[0].title}: the data used along the way are easier than they should be.", shadow)
    else:
        ledger.add(13, f"Evaluation follows training down to {facts.train:.3g} over {facts.passes:.0f} passes.", shadow)
        ledger.add(
            4 if (facts.fell_to or 0) < 0.1 else 2, f"Training loss fell to {facts.fell_to:.1%} of its early level: that is memory.", shadow
        )
    if findings_of(findings, train_eval_gap.Facts):
        ledger.add(-10, "Evaluation turns up in the end.", findings_of(findings, train_eval_gap.Facts))
    return ledger.hypothesis(__name__, steps=span(shadow))
