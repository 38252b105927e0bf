"""Batch size changed

What it is
    The number of samples a step is another one from a step or restart on: noise, speed and the fitting rate change with it.

How it is weighed
    For it: a batch size that changes in the log, in the manifest or between two configs. Against it: a ramp that the config
    asks for.

What settles it
    The launch commands of both attempts.

Folklore
    Fewer GPUs after a restart, the same batch a GPU: the global batch shrinks silently.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import config_change
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Batch size changed"
PRIOR = -4.0
SETTLE = "Compare the launch commands and process counts of both attempts."
INTERVENTIONS = ("Set the global batch explicitly, not per device.", "Scale the rate with it, or go back to the restart.")
EXPECTS = "configs:batch"


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    changed = [f for f in findings_of(findings, config_change.Facts) if f.facts.batch]
    if not changed:
        return None
    ledger = Ledger(PRIOR)
    ledger.add(18, f"{changed[0].title}.", changed)
    if len(changed) > 1:
        ledger.add(3, "Config and log agree on it.", changed[1:])
    others = [k for f in findings_of(findings, config_change.Facts) for k in f.facts.keys if "batch" not in k.lower()]
    if others:
        ledger.add(-3, f"Other settings changed as well: {', '.join(others[:3])}.", findings_of(findings, config_change.Facts))
    return ledger.hypothesis(__name__, steps=span(changed))
