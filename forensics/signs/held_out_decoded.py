"""What the model says when it is let speak, beside the loss of the answers that it is given: word error rates and exact matches."""

from __future__ import annotations

import re

import numpy as np

from forensics.run.series import Series, names, parts, series
from forensics.run.usable_values import begins_late, first_level, last_level, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

SUBJECT = "held_out"  # a part of it
EFFECTS = {"nothing_decoded_right": "loss.eval"}  # a symptom of its own, for which there is no detector

EVALUATIONS = 4  # bound: as many as the plateau detector wants
# unit: a twentieth of the first loss; CTC that still says nothing but blanks stands at a tenth, ln(V) for each symbol
LEARNT = 0.05
SURE = 0.1  # nats a token, at which 37 of 100 answers of ten tokens are right in every one
NOTHING = 0.9  # unit: nine of ten are wrong
PERCENT = 3.0  # unit: three times as many errors as words are no share any more
_ERRORS = lazy_re(r"\b(wer|cer|ler|ter|(word|char|character|label|token|phone|phoneme) error( rate)?)\b")
_MATCHES = lazy_re(r"\b(exact match|exact matches|em)\b")


def nothing_decoded_right(s: Symptoms) -> Sign:
    """At every evaluation nearly all words that the model writes by itself are wrong, or not one answer is right, while the loss of the answers it is
    given comes down to next to nothing: the two do not go by one vocabulary, or the loss shows the model what it is to predict."""
    rates, matches = _logged(s.run, _ERRORS), _logged(s.run, _MATCHES)
    if not rates and not matches:
        return cannot_tell(f"neither a word error rate nor exact matches were logged {EVALUATIONS} times.")
    train, held_out = usable(s.run, "loss.train")[1], series(s.run, "loss.eval")
    if not len(train) or begins_late(s.run):
        return cannot_tell("the training loss was not logged from its beginning.")
    first, low = first_level(train), last_level(train)
    seen_by = "the training loss"
    if held_out is not None and held_out.usable.sum() >= EVALUATIONS and (not rates or last_level(held_out.value[held_out.usable]) < low):
        seen_by, low = held_out.tag, last_level(held_out.value[held_out.usable])
    text = f"{seen_by} comes down to {low:.3g}; training begins at {first:.3g}"
    if rates:
        p = rates[0]
        x = p.value[p.usable] / (100 if np.median(p.value[p.usable]) > PERCENT else 1)
        there = bool(x.min() >= NOTHING) and low <= LEARNT * first
        return _told(p, there, f"{p.tag} is {x.min():.1%} at best and {x[-1]:.1%} at the end, while {text}", s.run)
    p, best = matches[0], float(matches[0].value[matches[0].usable].max())
    there = not best and held_out is not None and low <= min(SURE, LEARNT * first)
    return _told(p, there, f"{p.tag} is {best:.3g} at best, while {text}", s.run)


def _told(p: Series, there: bool, text: str, run: Run) -> Sign:
    rows = np.flatnonzero(p.usable)
    if not there:
        return absent(f"{text}.")
    return seen(f"{text}.", where=p.place(run, int(rows[0])), first=int(p.step[rows[0]]), last=int(p.step[rows[-1]]))


def _logged(run: Run, pattern: re.Pattern[str]) -> list[Series]:
    """The metrics of answers that the model wrote by itself, with enough evaluations."""
    held_out = [name for name in names(run, EVALUATIONS) if name.startswith("other/") or name in ("score.eval", "acc.eval")]
    found = [p for name in held_out for p in parts(run, name) if pattern.search(words(p.tag))]
    return [p for p in found if p.usable.sum() >= EVALUATIONS]
