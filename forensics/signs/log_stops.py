"""A log that just stops, of a run that shows no other trouble."""

from __future__ import annotations

from forensics.detectors import ending as symptom
from forensics.findings import GRAVE
from forensics.run.breaks_off import breaks_off
from forensics.run.how_it_ended import ending
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.console_format.event_lines import WAITS

SUBJECT = "last_words"  # a part of them
UNTOLD = ("cut", "unknown")  # ends of which no line says why


def log_just_stops(s: Symptoms) -> Sign:
    """The log of a run that shows no trouble stops with work left, and no line says why."""
    e = ending(s.run)
    if any(f.severity in GRAVE for f in s.findings):
        return does_not_arise("the run shows other trouble.")
    if e.kind == "running":
        return does_not_arise(f"the run still goes on, at {e.unit} {e.step}.")
    if breaks_off(s.run):
        return seen(symptom.sentence(e), s.of(symptom.Facts), where=e.where, first=e.step, last=e.step)
    if e.kind in UNTOLD:
        return cannot_tell("the planned length was not logged, nor how the run ended.")
    return absent(symptom.sentence(e), s.of(symptom.Facts), where=e.where)


def last_line_waits(s: Symptoms) -> Sign:
    """The last line of a log that says nothing of its end says that its process waits for something."""
    e = ending(s.run)
    if e.kind not in UNTOLD:
        return does_not_arise("the log says how the run ended.")
    if not WAITS.search(e.says):
        return absent("The last line of the log does not speak of waiting.", where=e.where)
    return seen(f'The last that the log says is "{e.says[:200]}".', where=e.where, first=e.step, last=e.step)
