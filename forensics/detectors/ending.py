"""Ending

What it sees
    The process died: of an exception, of memory, of a full disk, of hardware, of a signal, or in a hang. Or it was stopped from
    outside, or its log just ends, be it before its first step.

How it decides
    The last fatal line that nothing followed in its file. A proper end has evidence too: a closing line of the program (early
    stopping and a cap on time are proper ends, and quoted), an exit record of zero without a fatal line, the planned length, an
    estimate of the time left that ran down to zero, the trainer's summary after its last step, or a learning rate that had run down
    to nothing; by the look of it a round count of epochs or steps, and a last epoch with all of its rows, ten or more, and none behind them. A summary that hooks write however the loop ended (detectron2's training time)
    counts only where no work was left. A log that stops short of its plan, or in a torn
    record, or more than a line before the end of an epoch, is cut. An exception belongs to the launch whose log it stands in. A death is critical; a stop from outside and a cut
    are told as information. The answer quotes the line that tells it, or the log's last line, in every verdict.

Cannot tell
    A process that was killed without a word leaves a log that just ends; without a plan, and within an epoch, that is no sign of anything.

Folklore
    "Read the last lines first": the traceback names file and line. Meta's Llama 3 report (2024) counts 419 unexpected
    interruptions in 54 days of training and lists the reason of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run.how_it_ended import WORDS, Ending, ending
from parsers.tables import Run

NEEDS: list[str] = []
SMALLEST_EFFECT = "one line that says how it ended"
OF = {
    "out of memory": ", out of memory", "disk": ", disk full", "hardware": ", hardware failure", "signal": " by a signal",
    "interrupt": " by hand", "scheduler": " by the scheduler",
}  # fmt: skip
QUOTED = 160  # unit: characters of a log line in the answer, two lines of a terminal


@dataclass(frozen=True)
class Facts(BaseFacts):
    """How the process ended, as `run.ending` of the case says it."""

    ending: str  # its kind, in words


def detect(run: Run) -> Iterator[Finding]:
    e = ending(run)
    if (e.kind in WORDS and (e.says or e.kind == "cut")) or _never_began(e):
        what = "what the log says" if e.kind in WORDS and e.kind != "cut" else "its last line"
        shown = (evidence.text(what, [e.says], e.where),) if e.says else ()
        severity = "critical" if e.died else "info"
        yield evidence.found(Facts(e.kind), title(e), (e.step, e.step), severity, *shown, key=e.kind.replace(" ", "_"))


def title(e: Ending) -> str:
    """'Died after step 650: KeyError: 'other''"""
    when = " before its first step" if e.before_first_step else _after(e)
    when += f" on rank {e.rank}" if e.rank else ""
    verb = {"crashed": "Died", "hung": "Hung", "stopped": "Stopped"}.get(e.status, "Ends")
    if _never_began(e):
        return f'No step was logged, and the log ends without a closing line: "{quoted(e.says)}"'
    if e.kind == "cut":
        return f"The log just stops{when}{_planned(e)}, cut off with no closing line"
    return f"{verb}{when}{OF.get(e.kind, '')}" + (f": {quoted(e.says)}" if e.says else "")


def _never_began(e: Ending) -> bool:
    """A log of which nothing tells how it ended, nor that training began."""
    return e.kind == "unknown" and e.step is None and bool(e.says)


def _after(e: Ending) -> str:
    """Where it ended; nothing of a log that counts nothing."""
    return "" if e.step is None else f" after {e.unit} {e.step}"


def sentence(e: Ending) -> str:
    """How it ended as a sentence of the answer; empty where nothing is known of it."""
    said = quoted(e.says)
    if e.kind == "finished":
        if e.how == "early":
            return f'The program stopped itself{_after(e)}{_planned(e)}: "{said}".'
        if e.how == "guess":
            return f"The run finished, by the look of it: {said}."
        return f"The run finished: {said}." if e.how == "plan" else f'The run finished: "{said}".'
    if e.kind == "running":
        return "The run is still going."
    if e.kind in WORDS and e.kind != "cut":
        return stopped(title(e))
    last = f' Its last line: "{said}".' if said else ""
    if e.kind == "cut":
        return f"{title(e)}.{last}"
    if e.step is None:
        return f"{title(e)}." if said else ""
    if e.how == "left":
        return f'The loop was left after {e.unit} {e.step}{_planned(e)} with work still to do, and no reason is logged: "{said}".'
    return f"The log stops after {e.unit} {e.step}; neither a closing line nor a planned length was logged.{last}"


def stopped(sentence: str) -> str:
    """With one full stop; what was cut has its ellipsis."""
    return sentence if sentence.endswith("\u2026") else f"{sentence.rstrip('.')}."


def quoted(line: str) -> str:
    """A line of the log in a title, cut between words; the evidence has all of it."""
    said = line.rstrip(". ")
    return said if len(said) <= QUOTED else re.sub(r"\s\S{0,20}$", "", said[:QUOTED]) + " \u2026"


def _planned(e: Ending) -> str:
    return f" of {e.planned} planned" if e.planned is not None and e.step is not None and e.step < e.planned else ""
