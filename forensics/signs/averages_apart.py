"""A score of averaged weights (EMA) beside the same score of the weights that are trained: whether the average follows them at all."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from forensics.run import settings
from forensics.run.scores import held_out
from forensics.run.series import Series, names, parts
from forensics.run.usable_values import first_level, lacking, last_level, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

EFFECTS = {
    "average_stands_still": "loss.eval",
    "average_outlasts_run": "loss.eval",
}  # symptoms of their own, for which there is no detector
SUBJECT = "frozen_copies"  # a copy of the model that training reaches late

LEAST = 3  # bound: values; of two, one may be the first of a long average
MOSTLY = 0.5  # unit: of the average is the first weights
LEAST_DECAY = 0.9  # bound: below, the average is over ten steps
MOVED = 0.1  # unit: a tenth of the distance that lies between both; an average that follows covers most of it
FAR = 3.0  # bound: times; an average that is of use ends near the weights, and mostly below their loss
_DECAY = lazy_re(r"(?i)(^|[./_])(ema|polyak)(_?(model_?)?(decay|momentum|rate))?$")
_AVERAGED = lazy_re(r"\b(ema|swa|polyak)\b")
_TRAINED = lazy_re(r"\b(raw|online|live|no ema|non ema)\b")


def average_stands_still(s: Symptoms) -> Sign:
    """A score was logged of the averaged weights and of the trained ones, under one name but for a word (`x` beside `x_raw`, `x_ema` beside `x`): that of
    the average stays where it was, far from the other to the end. What is evaluated, and mostly what is kept, is not the trained model."""
    pairs = _pairs(s.run)
    if not pairs:
        return cannot_tell(f"no score was logged {LEAST} times both of averaged and of trained weights.")
    for average, trained in pairs:
        _, i, j = np.intersect1d(average.step, trained.step, return_indices=True)
        x, y = average.value[i], trained.value[j]
        apart = np.abs(x - y)
        low, high = np.sort([abs(x[-1]), abs(y[-1])])
        if np.ptp(x) <= MOVED * apart.min() and high > FAR * low:
            told = f"{average.tag} stays between {x.min():.4g} and {x.max():.4g} in {len(x)} evaluations, while {trained.tag} goes from {y[0]:.4g}"
            text = f"{told} to {y[-1]:.4g}: the averaged weights (EMA) do not follow those that are trained"
            return seen(f"{text}.", where=average.place(s.run, int(i[0])), first=int(average.step[i[0]]), last=int(average.step[i[-1]]))
    average, trained = pairs[0]
    return absent(f"{average.tag} and {trained.tag} do not stand apart for good, or the first of them moves.")


def average_outlasts_run(s: Symptoms) -> Sign:
    """By the decay that config sets the average of the weights is longer than the run, and its evaluation moves by less than a tenth while the training
    loss falls by more: mostly it still is the first weights. An average whose decay begins small moves, however long it is."""
    curve, decay = held_out(s.run), next((x for x in settings.every(s.run) if _DECAY.search(x.key) and _share(x.value)), None)
    if curve is None or curve.usable.sum() < LEAST or not _AVERAGED.search(words(curve.tag)):
        return cannot_tell("no evaluation of averaged weights was logged.")
    if why := lacking(s.run, LEAST, "loss.train"):
        return cannot_tell(why)
    if decay is None:
        return cannot_tell("config does not set the decay of the averaged weights.")
    share, x, loss, last = _share(decay.value), curve.value[curve.usable], usable(s.run, "loss.train")[1], int(curve.step[-1])
    first_loss, last_loss = first_level(loss), last_level(loss)
    told = f"with {decay.key} = {share:g} the averaged weights are {share**last:.0%} the first ones after {last} steps"
    text = f"{told}: {curve.tag} goes from {x[0]:.4g} to {x[-1]:.4g}, the training loss from {first_loss:.4g} to {last_loss:.4g}"
    still = np.ptp(x) < MOVED * abs(x[0]) and last_loss < (1 - MOVED) * first_loss
    if share**last > MOSTLY and still:
        return seen(f"{text[0].upper()}{text[1:]}.", where=curve.place(s.run, 0), first=int(curve.step[0]), last=last)
    return absent(f"{text[0].upper()}{text[1:]}.")


def _share(value: object) -> float:
    """A number that can be a decay, else zero."""
    number = settings.as_number(value)
    return number if number is not None and LEAST_DECAY <= number < 1 else 0.0


def _pairs(run: Run) -> list[tuple[Series, Series]]:
    """(of the average, of the trained weights), at the same steps."""
    kinds: defaultdict[str, dict[str, Series]] = defaultdict(dict)
    for s in (p for name in names(run) for p in parts(run, name)):
        told = words(s.tag)
        if s.usable.all() and s.name != "loss.train":  # an average of the loss is none of weights
            kind = "average" if _AVERAGED.search(told) else "trained" if _TRAINED.search(told) else "bare"
            kinds[" ".join(_TRAINED.sub(" ", _AVERAGED.sub(" ", told)).split())].setdefault(kind, s)
    found = []
    for of in kinds.values():
        average = of.get("average") or (of.get("bare") if "trained" in of else None)
        trained = of.get("trained") or of.get("bare")
        if average is not None and trained is not None and average is not trained:
            found.append((average, trained))
    return [(a, t) for a, t in found if len(np.intersect1d(a.step, t.step)) >= LEAST]
