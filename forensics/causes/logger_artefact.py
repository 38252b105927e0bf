"""Logger artefact

What it is
    The logging made it: a spike, zero or NaN that the training never had.

How it is weighed
    For it: Hugging Face's NaN filter, which replaces a non-finite micro-loss by the mean so far and so fabricates a spike and
    then exact zeros when several micro-batches are NaN in one interval; a NaN gradient norm in the very row. Against it:
    a gradient norm that moved, later values that remember the spike, NaN in the loss itself; a unit (bits, a sum) beside a
    grave fault, which no unit explains.

What settles it
    Logging the raw loss of each micro-batch (logging_nan_inf_filter=False) over the same steps.

Folklore
    With the filter on, accumulation 8 and every micro-batch NaN from the sixth step of ten on, a loss of 2.0 is logged as 127.6.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import logger_artefact, loss_spike, nonfinite, zero_loss
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Logger artefact"
PRIOR = -7.0
SETTLE = "Log with logging_nan_inf_filter=False over the same steps."
INTERVENTIONS = ("Do not trust the loss from that step on: look at evaluation and gradient norm.", "Then look for what made the NaN.")
EXPECTS = "raw_loss:nothing"
UNITS = ("base_2", "times_accumulation", "clipped_norm")  # artefacts of every value alike


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    zeros = findings_of(findings, zero_loss.Facts)
    spikes = findings_of(findings, loss_spike.Facts)
    filtered = run.framework == "hf-trainer"
    artefacts = [f for f in findings_of(findings, logger_artefact.Facts) if f.facts.kind != "run_mean"]  # left out of the series
    if not artefacts and not zeros and not (spikes and filtered):
        return None
    ledger = Ledger(PRIOR)
    dropped = [f for f in artefacts if f.facts.kind == "dropped_field"]
    made = [f for f in artefacts if f not in dropped]
    if made:
        ledger.add(14, f"{made[0].title}.", made[:3])
        grave = [f for f in findings if f.severity == "critical"]
        if grave and all(f.facts.kind in UNITS for f in made):
            ledger.add(-14, f"No unit of measure explains this: {grave[0].title}.", grave[:1])
    elif dropped:
        ledger.add(3, f"{dropped[0].title}. The logger hides it, but what it hides is real.", dropped[:3])
    dead = findings_of(findings, nonfinite.Facts)
    shown = any(f.facts.metric.startswith("loss") for f in dead)
    grads = [f for f in dead if f.facts.metric == "grad.norm" and not shown]
    if filtered and not shown:
        ledger.add(3, "The log is the Hugging Face Trainer's, whose filter hides NaN.", [])
    if zeros and not zeros[0].facts.from_start:
        ledger.add(
            12 if filtered else 3, "The loss is exactly zero from one value to the next, as the filter writes it once all is NaN.", zeros
        )
        before = [f for f in spikes if (zeros[0].first_step or 0) - (f.facts.end or f.facts.peak) <= 3 * _interval(run)]
        if before:
            ledger.add(6, "There is a jump right before the zeros: the filter's running product.", before)
    if grads and not (dropped and not made):
        ledger.add(8, "The gradient norm is NaN in the same rows, while the loss looks finite.", grads[:2])
    elif series(run, "grad.norm") is None:
        ledger.cannot_tell("the gradient norm was not logged: it would be NaN in these rows.")
    elif not zeros:
        ledger.add(-10, "The gradient norm is finite there.", [])
    return ledger.hypothesis(__name__, steps=span([*zeros, *spikes]))


def _interval(run: Run) -> int:
    s = series(run, "loss.train")
    return s.interval if s is not None else 1
