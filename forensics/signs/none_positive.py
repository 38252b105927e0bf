"""Scores of the positive class that are zero at every evaluation, while the ranking or the share of right answers is good."""

from __future__ import annotations

import re

from forensics.run.evaluations import shares
from forensics.run.metrics_in_words import LEAST, worded
from forensics.run.scores import scores
from forensics.run.series import Series, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.name_rules import words

SUBJECT = "one_class"  # the other half of it
EFFECTS = {"no_answer_is_positive": "score.eval"}  # a symptom of its own, for which there is no detector

# Those of a class by its number, of the first k answers, of words and of boxes are others
FOUND = (
    r"^(?!.*\b(rouge|bert ?score|bleu|iou|box|boxes|mask|average|ap|map|top|at|mixed)\b)(?!.*\b(recall|precision|f ?1) ?[/@]? ?\d+$)"
    r"(?=.*\b(f ?1|f beta|recall|precision|sensitivity|tpr)\b)"
)
GUESS = 0.5  # unit: an AUC of a coin
GOOD = 0.75  # bound: of a ranking or of answers: half-way from a coin to perfection


def no_answer_is_positive(s: Symptoms) -> Sign:
    """F1, recall or precision is exactly zero at each evaluation, while three quarters of the answers are right, or an AUC is as high: the model knows the
    order and calls nothing positive, since the threshold or the weights of the classes are off."""
    found = [p for p in (*worded(s.run, FOUND), *(x.logged for x in scores(s.run) if _is_found(x.logged))) if p.usable.sum() >= LEAST]
    if not found:
        return cannot_tell(f"neither F1 nor recall nor precision was logged {LEAST} times.")
    found = [p for p in found if not re.search(r"\btrain", words(p.tag))] or found  # a few that are known by heart are no answers
    if alive := [p for p in found if p.value[p.usable].any()]:
        return absent(f"{alive[0].tag} is {alive[0].value[alive[0].usable].max():.3g} at its highest.")
    p, beside = found[0], _beside(s)
    text = f"{p.tag} is exactly 0 at each of {int(p.usable.sum())} evaluations"
    if beside is None:
        return cannot_tell(f"neither an accuracy nor an AUC was logged beside: {text}.")
    last = float(shares(beside.value[beside.usable])[-1])
    text += f", while {beside.tag} ends at {last:.3g}"
    if last < GOOD:
        return absent(f"{text}.")
    return seen(f"{text}: nothing is ever called positive.", where=p.place(s.run, 0), first=int(p.step[0]), last=int(p.step[-1]))


def _is_found(p: Series) -> bool:
    return re.search(FOUND, words(p.tag)) is not None


def _beside(s: Symptoms) -> Series | None:
    """The share of right answers, or a ranking that knows nothing at one half."""
    hits = [a for name in ("acc.eval", "acc.train") if (a := series(s.run, name)) is not None]
    ranks = [x.logged for x in scores(s.run) if x.rises and x.guess == GUESS]
    return next((p for p in (*ranks, *hits) if p.usable.sum() >= LEAST), None)
