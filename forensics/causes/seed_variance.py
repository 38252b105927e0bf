"""Seed variance

What it is
    Nothing is broken: the recipe is so sensitive that the seed alone decides where a run ends.

How it is weighed
    For it: runs of one configuration, calm in themselves, that end far apart. Against it: a run among them that broke
    (a spike, NaN, divergence): then its cause is what set it apart.

What settles it
    More seeds, and the same seeds with a gentler recipe.

Folklore
    "High variance between seeds" is a symptom of a recipe at its edge: longer warmup and a lower rate narrow it.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import seed_spread
from forensics.ledger import Findings, Ledger, findings_of
from parsers.tables import Run

TITLE = "Seed variance"
PRIOR = -3.0
SETTLE = "Run five more seeds, and the same seeds with twice the warmup."
INTERVENTIONS = ("Report the spread with every comparison.", "Lower the rate or lengthen the warmup: recipes at their edge scatter.")
EXPECTS = "configs:same samples:sound seeds:some"
APART, UNBROKEN = 15.0, 3.0
WIDE_GROUP = PRIOR + APART + UNBROKEN  # the score of a run among seeds that end far apart, none of them broken
UNSTABLE = ("divergence", "loss_spike", "level_shift", "oscillation")  # a recipe at its edge does this under some seeds


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    spread = findings_of(findings, seed_spread.Facts)
    if not spread:
        return None
    ledger = Ledger(PRIOR)
    facts = spread[0].facts
    ledger.add(APART, f"{facts.runs} runs of one configuration end up to {facts.apart:.0%} apart.", spread)
    grave = [f for f in findings if f.severity == "critical" and f.kind not in UNSTABLE]
    if grave:
        ledger.add(-4, "The run shown here broke, which may set it apart without any help of the seed.", grave[:3])
    else:
        ledger.add(UNBROKEN, "No crash, NaN or damage sets the run shown here apart.", [])
    return ledger.hypothesis(__name__)
