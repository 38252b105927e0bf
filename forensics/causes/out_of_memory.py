"""Out of memory

What it is
    The device or the host had no memory left: an evaluation, a leak, fragmentation, a long batch, the first step, another
    process on the device.

How it is weighed
    For it: a line that says so, memory that grows until the end, what tells its kind; a process that was killed weighs less.
    Against it: a run that went on after the line.

What settles it
    The line itself; for its kind, the memory curve, the stack and the shape of the last batch.

Folklore
    Reserved far above allocated is fragmentation; growth by the step is a graph that is kept; a kill with code 137 and no
    traceback is the kernel's, for the host's memory.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import memory
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.how_it_ended import status
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Out of memory"
PRIOR = -6.0
EXPECTS = "ending:allocation"
NEEDS_TO_SPEAK = ("mem.alloc",)
USUAL = (
    "Halve the micro-batch and double the accumulation.",
    "Cap the sequence length, and sort out the longest samples.",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation.",
)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    found = findings_of(findings, memory.Facts)
    if not found:
        return None
    ledger = Ledger(PRIOR)
    said = [f for f in found if f.facts.said]
    killed = [f for f in found if f.facts.killed]
    grown = [f for f in found if f.facts.growth and not f.facts.said]
    if said:
        ledger.add(22, "The log contains an out-of-memory error.", said)
        if status(run) == "finished":
            ledger.add(-12, "The run finished all the same.", [])
        if said[0].facts.why:
            ledger.add(2, f"Its kind: {said[0].facts.why}", said)
    if killed:
        ledger.add(11, "A process was killed and no scheduler says why: mostly that is the kernel, for want of host memory.", killed)
        if series(run, "mem.host") is None and series(run, "mem.process") is None:
            ledger.cannot_tell("the memory of the host was not logged.")
    if grown:
        ledger.add(8, f"Memory grew by {grown[0].facts.growth:.0%}, and was growing still: a leak.", grown)
    elif said and series(run, "mem.alloc") is None:
        ledger.cannot_tell("memory was not logged: a leak or one large batch is open.")
    elif said:
        ledger.add(0, "Memory did not grow before: one large batch or an evaluation asked for more at once.", [])
    lead = (said or killed or grown)[0]
    words = lead.facts.words or ("a leak" if lead in grown else "")
    return ledger.hypothesis(
        __name__,
        f"{TITLE}: {words}" if words else TITLE,
        steps=span(found),
        settle=SETTLE.get(lead.facts.kind, "Log allocated and reserved memory every step and run to the same place."),
        interventions=[*dict.fromkeys([*(lead.facts.do or ()), *USUAL])][:4],
    )


SETTLE = {
    "evaluation": "Run the evaluation alone on the last checkpoint, with the memory of the device logged.",
    "leak": "Log allocated memory every step for some hundred steps: a straight line is a leak.",
    "fragmentation": "Run to the same place with expandable_segments:True: if it continues, fragmentation was the problem.",
    "long_batch": "Run that one batch alone: it asks for the same amount again.",
    "host": "Look at the kernel's log of that node (dmesg) and at the scheduler's record of peak memory (MaxRSS).",
    "shared": "List the processes on that device at that time.",
    "first_step": "Run two steps with half of the micro-batch.",
}
