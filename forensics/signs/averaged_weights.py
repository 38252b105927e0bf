"""Evaluations of averaged weights, which follow those that are trained from far behind."""

from __future__ import annotations

from forensics.run.scores import held_out
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

SUBJECT = "frozen_copies"  # a copy of the model that training reaches late
_AVERAGED = lazy_re(r"\b(ema|swa|polyak|averaged|moving average)\b")


def evaluates_averaged_weights(s: Symptoms) -> Sign:
    """What is evaluated are averaged weights, by the name of the metric: an average that is longer than the run still is the model of the first step,
    whatever the training has learnt."""
    curve = held_out(s.run)
    if curve is None:
        return cannot_tell("no evaluation was logged.")
    if not _AVERAGED.search(words(curve.tag)):
        return absent(f"{curve.tag} does not say that it is of averaged weights.")
    return seen(f"{curve.tag} is of averaged weights.", where=curve.place(s.run, 0))
