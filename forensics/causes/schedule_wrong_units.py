"""Schedule in wrong units

What it is
    The scheduler is stepped per micro-batch, per epoch or per process instead of per optimizer step: the schedule runs N times
    too fast or too slow.

How it is weighed
    For it: a rate that reaches its end at one N-th of the planned run, N being the gradient accumulation or the number of
    processes; a cosine that comes round again. Against it: a schedule that ends with the plan; warm restarts in the config.

What settles it
    The scheduler's own step count in a checkpoint against the optimizer's.

Folklore
    "Verify that scheduler steps are counted in optimizer steps, not raw micro-batches."
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import checkpoint_state, schedule_length
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run import settings
from parsers.tables import Run

TITLE = "Schedule counted in the wrong unit"
PRIOR = -6.0
SETTLE = "Compare the scheduler's step count in a checkpoint with the optimizer's."
INTERVENTIONS = (
    "Step the scheduler once per optimizer step.",
    "Go back to the checkpoint before the rate ended and run on with the intended schedule.",
)
EXPECTS = "samples:sound rate:early raw_loss:there replay:any"
NEEDS_TO_SPEAK = ("lr",)
ARMS = ("rate x 0.1",)
OUTCOMES = {"rate x 0.1": 4.0, "rate as logged": 8.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    ends = findings_of(findings, schedule_length.Facts)
    ahead = [f for f in findings_of(findings, checkpoint_state.Facts) if f.facts.what == "scheduler_ahead"]
    if not ends and not ahead:
        return None
    factor = ends[0].facts.factor if ends else ahead[0].facts.times or 0.0
    ledger = Ledger(PRIOR)
    if ends:
        ledger.add(11, f"{ends[0].title}.", ends)
    if ahead:
        ledger.add(14, f"{ahead[0].title}.", ahead)
    factors = {name: value for name in ("accumulation", "world_size") if (value := settings.number(run, name)) and value > 1}
    match = [f"{name} {value:g}" for name, value in factors.items() if abs(factor / value - 1) <= 0.15]
    if match:
        ledger.add(10, f"The factor of {factor:.2g} is that of {match[0]}.", ends)
    elif factors:
        ledger.add(-3, "The factor is neither that of the accumulation nor of the processes.", ends)
    else:
        ledger.cannot_tell("config names no accumulation and no number of processes.")
    return ledger.hypothesis(__name__, steps=span([*ends, *ahead]))
