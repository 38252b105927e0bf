"""How the process died, as a clue: its own words, and whether anything else says that it did not come to its end."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding
from forensics.ledger import Ledger
from forensics.run import endings, plan
from forensics.run.how_it_ended import Ending
from parsers.tables import Run

SAID = 15.0  # decibans: with a prior of -6 under 95 %, for which a second observation has to speak (two, one of them with file and place)


def quoted(ledger: Ledger, e: Ending, found: Sequence[Finding], weight: float = SAID, what: str = "The log says so") -> None:
    """The line that tells it, with its file and place."""
    ledger.add(weight, f"{what}: {e.says} ({e.where}).", found)


def stopped_short(run: Run, ledger: Ledger, e: Ending, found: Sequence[Finding]) -> None:
    """What does not hang on the quoted line: an exit code, steps that are missing to the plan, no step at all."""
    codes = [x["text"] for x in endings.of_attempt(run, len(run.attempts) - 1) if x["kind"] == "exit" and x["level"] == "error"]
    planned = plan.planned_steps(run)
    if codes:
        ledger.add(4, f"The tracker's record of the exit says {codes[-1]}.", found)
    elif e.before_first_step:
        ledger.add(4, "No step was done.", found)
    elif planned is not None and e.step is not None and not plan.reached(run):
        ledger.add(4, f"The run stopped at step {e.step} of {planned}.", found)
    else:
        ledger.cannot_tell("no plan and no exit code was logged beside the line.")
