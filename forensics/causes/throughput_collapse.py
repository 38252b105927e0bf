"""Throughput collapse

What it is
    The run becomes slower for good: the loader starves, a node throttles, a disk fills, somebody shares the machine.

How it is weighed
    For it: a lasting fall of throughput, time for data that grows with it, a load of the GPUs that falls with it, clocks that
    fall in the heat, one rank that became slower than the others, silences again and again. What was slow all along tells
    nothing about a collapse. Against it: a graver symptom.

What settles it
    Profiling some steps before and after with data from memory.

Folklore
    Watch the share of time spent waiting for data: it tells loader from device. BLOOM-176B fell from 149 to 140 TFLOP/s
    because of one slow GPU among 384, found by leaving out nodes (BigScience chronicles).
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import rank_disagreement, stall, throughput, utilization
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Throughput collapse"
PRIOR = -5.0
SETTLE = "Profile some steps with data from memory: still slow means the device."
EXPECTS = "ending:slower"
NEEDS_TO_SPEAK = ("tput.tokens", "wall clock")
WHY = {"waiting": "the device waits for data", "heat": "the device throttles in the heat", "load": "the load of the GPUs falls",
       "idle_device": "", "mfu": ""}  # fmt: skip


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    slow = findings_of(findings, throughput.Facts)
    pauses = [f for f in findings_of(findings, stall.Facts) if not f.facts.at_end]
    straggler = [f for f in findings_of(findings, rank_disagreement.Apart) if f.facts.pattern == "straggler" and f.severity != "info"]
    if not slow and len(pauses) < 2 and not straggler:
        return None
    changed = [f for f in findings_of(findings, utilization.Facts) if f.facts.changed]
    ledger = Ledger(PRIOR)
    if slow:
        ledger.add(14, f"The run continues at {slow[0].facts.ratio:.0%} of its speed.", slow)
    if len(pauses) >= 2:
        ledger.add(6, f"{len(pauses)} long silences.", pauses[:5])
    why = ""
    for f in changed if slow or pauses else []:
        ledger.add(3, f"{f.title}.", [f])
        why = why or WHY[f.facts.what]
    if straggler:
        ledger.add(4 if slow else 11, f"{straggler[0].title}.", straggler[:1])
        why = f"rank {straggler[0].facts.rank} is slower than the others" if straggler[0].facts.rank is not None else why
    if series(run, "time.data") is None and series(run, "time.data_frac") is None:
        ledger.cannot_tell("the time spent waiting for data was not logged: loader or device is open.")
    others = [f for f in findings if f.severity == "critical" and f.kind not in ("throughput", "stall")]
    if others:
        ledger.add(-6, "There is a more serious symptom.", others[:3])
    return ledger.hypothesis(
        __name__,
        f"{TITLE}: {why}" if why else TITLE,
        steps=span([*slow, *pauses, *([] if slow else straggler)]),
        interventions=[
            *DO.get(why, ()),
            "Look at disk, network and neighbours at that time.",
            "Log the time spent waiting for data.",
            "Check GPU clocks and temperature of each node.",
        ][:4],
    )


DO = {
    WHY["waiting"]: ("More loader workers, prefetching, and data on a local disk; look at what else reads from that storage.",),
    WHY["heat"]: ("Look at fans, inlet temperature and power cap of that node, and leave it out until then.",),
}
