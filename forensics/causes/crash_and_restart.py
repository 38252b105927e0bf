"""Crash and restart

What it is
    The run ended, came back whole from an older checkpoint, and did steps twice. Sound, but work was lost.

How it is weighed
    For it: a restart that repeats steps, with a loss that goes on where it stood. Against it: a bump, a lower loss, a rate
    or a config that changed at the restart: then something was lost besides work.

What settles it
    Comparing both attempts over the steps done twice.

Folklore
    Save oftener than you crash: the best interval is about the square root of twice the saving time times the time between failures (Young, 1974).
"""

from __future__ import annotations

from typing import Any

from forensics.case import Hypothesis
from forensics.detectors import lr_schedule, restart, resume_break
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.run import goodput
from parsers.tables import Run

TITLE = "Crash and restart, with work done twice"
PRIOR = -4.0
SETTLE = "Compare both attempts over the repeated steps."
EXPECTS = "configs:same counters:go_on ending:back"
NEEDS_TO_SPEAK = ("wall clock",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    restarts = findings_of(findings, restart.Facts, severity=GRAVE)
    if not restarts:
        return None
    redone = sum(f.facts.redone for f in restarts)
    ledger = Ledger(PRIOR)
    ledger.add(12, f"{redone} steps were done twice in {len(restarts)} restart{'s' if len(restarts) > 1 else ''}.", restarts[:5])
    facts = goodput.measure(run)
    if facts["share_time"] is not None:
        ledger.add(
            0, f"Of use: {facts['share_steps']:.0%} of the steps and {facts['share_time']:.0%} of the time from start to end.", restarts[:5]
        )
    broken = [*findings_of(findings, resume_break.Facts), *[f for f in findings_of(findings, lr_schedule.Facts) if f.facts.at_resume]]
    if broken:
        ledger.add(-12, "Something did not come back as it was.", broken[:3])
    else:
        ledger.add(6, "The loss continues where it was.", [])
    grave = [f for f in findings if f.severity == "critical"]
    if grave:
        ledger.add(-6, "There is a more serious symptom.", grave[:3])
    return ledger.hypothesis(
        __name__,
        steps=span(restarts),
        interventions=["Find why the first attempt ended: its last lines, the scheduler, the machine.", _advice(redone, facts)],
    )


def _advice(redone: int, facts: dict[str, Any]) -> str:
    """How often to save: by Young's rule where the cost of a save is known, else what the interval costs on average."""
    every, best = facts["checkpoint_every_steps"], facts["best_every_steps"]
    cost = f"these restarts cost {redone} steps"
    if best and every:
        word = "more often" if best < 0.8 * every else "less often" if best > 1.25 * every else "as often"
        return (
            f"Save {word}, every {best} steps where it was every {every}: a save takes {facts['save_seconds']:.2g} s and the run is "
            f"interrupted every {facts['seconds_between']:.3g} s (Young: the root of twice their product); {cost}."
        )
    if every:
        return f"Save more often than every {every} steps, which costs {every // 2} steps an interruption on average: {cost}."
    return f"Save more often: {cost}."
