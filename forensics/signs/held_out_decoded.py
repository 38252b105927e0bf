"""What the model says when it is let speak, beside the loss of the answers that it is given: word error rates and exact matches."""

from __future__ import annotations

import re

import numpy as np

from forensics.run.no_better_since import stands_with_training
from forensics.run.proper_end import finished
from forensics.run.scores import WRONG_WORDS
from forensics.run.series import Floats, Series, names, parts, series
from forensics.run.usable_values import begins_late, first_level, last_level, usable
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

SUBJECT = "held_out"  # a part of it
# symptoms of their own, for which there is no detector
EFFECTS = {"nothing_decoded_right": "loss.eval", "every_word_wrong_to_the_end": "score.eval"}

EVALUATIONS = 4  # bound: as many as the plateau detector wants
# unit: a twentieth of the first loss; CTC that still says nothing but blanks stands at a tenth, ln(V) for each symbol
LEARNT = 0.05
SURE = 0.1  # nats a token, at which 37 of 100 answers of ten tokens are right in every one
NOTHING = 0.8  # unit: four of five are wrong; of ten symbols one fits by chance
ALL = 0.99  # unit: one word or symbol in a hundred fits by chance
STILL = 1 / 3  # unit: of the evaluated steps; a model of speech that says only blanks at first has begun to speak by then
PERCENT = 3.0  # unit: three times as many errors as words are no share any more
_MATCHES = lazy_re(r"\b(exact match|exact matches|em)\b")
_SHARED = lazy_re(r"\b(rouge( (1|2|l|lsum))?|s?bleu|meteor|chr ?f)\b")
FEW = 0.1  # unit: of the words or their sequences, one in ten is that of the answer


def nothing_decoded_right(s: Symptoms) -> Sign:
    """At every evaluation nearly all words that the model writes by itself are wrong, or not one answer is right, while the loss of the answers it is
    given comes down to next to nothing: the two do not go by one vocabulary, or the loss shows the model what it is to predict. Or not one answer is
    right, and what is learnt by heart leaves the evaluation loss above where training began."""
    rates, matches, shared = (_logged(s.run, pattern) for pattern in (WRONG_WORDS, _MATCHES, _SHARED))
    if not rates and not matches and not shared:
        return cannot_tell(f"neither a word error rate, exact matches nor words in common were logged {EVALUATIONS} times.")
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
        x = _shares(p)
        there = bool(x.min() >= NOTHING) and low <= LEARNT * first
        return _told(p, there, f"{p.tag} is {x.min():.1%} at best and {x[-1]:.1%} at the end, while {text}", s.run)
    p = (matches or shared)[0]
    best = float(p.value[p.usable].max())
    share = best / (100 if best > PERCENT else 1)
    given = held_out is not None and low <= min(SURE, LEARNT * first)  # sure of each word that it is shown, and it writes none of them
    if matches and not best and not given and held_out is not None and held_out.value[held_out.usable].min() >= first:
        given, trained = last_level(train) <= min(SURE, LEARNT * first), last_level(train)
        text = f"the training loss comes down from {first:.3g} to {trained:.3g}, and {held_out.tag} never below {held_out.value[held_out.usable].min():.3g}"
    return _told(p, given and (not best if matches else share <= FEW), f"{p.tag} is {best:.3g} at best, while {text}", s.run)


def loss_shows_its_answers(s: Symptoms) -> Sign:
    """Not one answer that the model writes by itself is right, while it is sure of each word where it is given the words before: what it is to predict
    stands in what it is given. (An error rate of a loss without given words, as CTC's, does not say so.)"""
    told = nothing_decoded_right(s)
    if told.state != SEEN or not _logged(s.run, WRONG_WORDS):
        return told
    return absent(f"{told.text} A loss that is given no words shows none.")


def every_word_wrong_to_the_end(s: Symptoms) -> Sign:
    """Not one word or symbol is right at any evaluation, and training is through, or its evaluations have stood still for two thirds of it: nothing but
    blanks or noise is ever said."""
    rates = _logged(s.run, WRONG_WORDS)
    if not rates:
        return cannot_tell(f"no error rate of words or symbols was logged {EVALUATIONS} times.")
    best = {p.tag: float(_shares(p).min()) for p in rates}
    p = min(rates, key=lambda rate: best[rate.tag])
    text = f"{p.tag} is {best[p.tag]:.1%} at the best of {int(p.usable.sum())} evaluations"
    if best[p.tag] < ALL:
        return _told(p, False, text, s.run)
    still = stands_with_training(s.run)
    if finished(s.run):
        text += ", the last of them at the end of training"
    elif still is not None and still.since - p.step[0] <= STILL * (p.step[-1] - p.step[0]):
        text += f", and {still.says}"
    else:
        return does_not_arise(f"{text}, and the log does not say that training was through.")
    return _told(p, True, text, s.run)


def _shares(p: Series) -> Floats:
    """An error rate as shares, of percent or of shares: of percent the first is near 100."""
    logged = p.value[p.usable]
    return logged / (100 if max(logged[0], np.median(logged)) > PERCENT else 1)


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
