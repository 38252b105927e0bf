"""Throughput collapse

What it is
    The run becomes slower for good: the loader starves, a node throttles, a disk fills, somebody shares the machine.

How it is weighed
    For it: a lasting fall of throughput, time for data that grows with it, silences again and again. Against it: a change of
    batch size or sequence length at that step.

What settles it
    Profiling some steps before and after with data from memory.

Folklore
    Watch the share of time spent waiting for data: it tells loader from device.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from forensics.series import series
from parsers.tables import Run

TITLE = "Throughput collapse"
PRIOR = -5.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    slow = of(findings, "throughput")
    pauses = [f for f in of(findings, "stall") if not f.facts["at_end"]]
    if not slow and len(pauses) < 2:
        return None
    ledger = Ledger(PRIOR)
    if slow:
        ledger.add(14, f"The run goes on at {slow[0].facts['ratio']:.0%} of its speed.", slow)
    if len(pauses) >= 2:
        ledger.add(6, f"{len(pauses)} long silences.", pauses[:5])
    if series(run, "time.data") is None and series(run, "time.data_frac") is None:
        ledger.cannot_tell("the time spent waiting for data was not logged: loader or device is open.")
    others = [f for f in findings if f.severity == "critical" and f.kind not in ("throughput", "stall")]
    if others:
        ledger.add(-6, "A graver symptom stands beside it.", others[:3])
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span([*slow, *pauses]),
        settle="Profile some steps with data from memory: still slow means the device.",
        interventions=[
            "Look at disk, network and neighbours at that time.",
            "Log the time spent waiting for data.",
            "Check GPU clocks and temperature of each node.",
        ],
    )
