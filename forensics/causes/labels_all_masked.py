"""Labels all masked

What it is
    No target takes part in the loss: every label is the ignore index, or every sample was cut before its answer.

How it is weighed
    For it: a loss of exactly zero, or NaN from the very first value (0/0), with a zero gradient. Against it: a NaN that came
    after finite values with a gradient that grew.

What settles it
    Printing one batch of labels: how many differ from the ignore index?

Folklore
    "All labels in your dataset are -100. Training losses will be all 0." (Unsloth)
"""

from __future__ import annotations

import numpy as np

from forensics.case import Finding, Hypothesis
from forensics.detectors import nonfinite, zero_loss
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.series import series
from parsers.tables import Run

TITLE = "All labels masked"
PRIOR = -6.0
SETTLE = "Print one batch of labels: how many differ from the ignore index?"
INTERVENTIONS = ("Check the label mask and the chat template's answer marker.", "Check truncation: does the prompt alone fill the context?")
EXPECTS = "raw_loss:zero pairs:masked range:neither by_heart:cannot"
ARMS = ("heart",)
OUTCOMES = {"data": 12.0, "heart: learnt": -8.0, "heart: faster": -8.0, "heart: no": 6.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    zeros = findings_of(findings, zero_loss.Facts)
    dead = [f for f in findings_of(findings, nonfinite.Facts) if f.facts.metric == "loss.train" and f.facts.at_start]
    if not zeros and not dead:
        return None
    ledger = Ledger(PRIOR)
    if zeros:
        ledger.add(14, "The loss is exactly zero." if zeros[0].facts.from_start else "The loss is exactly zero from one step on.", zeros)
    else:
        ledger.add(8, "The loss is NaN from the very first value, as zero targets make it.", dead)
    grad = series(run, "grad.norm")
    first = (zeros or dead)[0].first_step or 0
    if grad is None:
        ledger.cannot_tell("the gradient norm was not logged: it would be zero, too.")
    else:
        after = grad.value[grad.step >= first]
        zero = bool(len(after)) and float(np.mean(after == 0)) > 0.8
        ledger.add(8 if zero else -6, "The gradient is exactly zero, too." if zero else "There is a gradient all the same.", zeros or dead)
    if [f for f in findings_of(findings, nonfinite.Facts) if f.facts.metric == "grad.norm" and not f.facts.recovered]:
        ledger.add(-4, "The gradient norm is NaN.", [])
    return ledger.hypothesis(__name__, steps=span(zeros or dead))


def blamed(run: Run, f: Finding) -> list[tuple[int, int]]:
    """(attempt, step) of the batches that a finding points at."""
    zeros = f.kind == "zero_loss" and not f.facts.from_start
    return [(0, s) for s in range(f.first_step or 0, (f.last_step or 0) + 1)] if zeros else []
