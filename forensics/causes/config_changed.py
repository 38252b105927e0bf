"""Config changed

What it is
    A setting other than the batch size differs between two launches of the same run.

How it is weighed
    For it: snapshots of the config that differ, and a behaviour that changes at the restart. Against it: nothing changes there.

What settles it
    The second attempt's steps with the first attempt's config.

Folklore
    "What did you change?" "Nothing." Read the diff.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import config_change
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Config changed between launches"
PRIOR = -4.0
SETTLE = "Replay the steps after the restart with the first config."
INTERVENTIONS = ("Decide which value is meant, and write it down.", "Go back to the restart if it was the first one.")
EXPECTS = "configs:setting"
ARMS = ("rate x 0.1",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    changed = [f for f in findings_of(findings, config_change.Facts) if any("batch" not in k.lower() for k in f.facts.keys)]
    if not changed:
        return None
    ledger = Ledger(PRIOR)
    ledger.add(14, f"{changed[0].title}.", changed)
    step = changed[0].first_step
    if any(f.facts.batch for f in findings_of(findings, config_change.Facts)):
        ledger.add(-6, "The batch size changed as well, which explains more.", findings_of(findings, config_change.Facts))
    effects = [
        f
        for f in findings
        if f.kind in ("loss_spike", "resume_break", "lr_schedule", "level_shift", "throughput")
        and step is not None
        and f.first_step is not None
        and abs(f.first_step - step) <= 20
    ]
    if effects:
        ledger.add(6, "The run behaves differently from there on.", effects[:3])
    return ledger.hypothesis(__name__, steps=span(changed))
