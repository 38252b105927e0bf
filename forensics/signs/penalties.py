"""The divergence or penalty in a loss: with which sign it enters, and what it costs before anything was learnt."""

from __future__ import annotations

import numpy as np

from forensics.run.loss_terms import of_a_loss
from forensics.run.metrics_in_words import together, worded
from forensics.run.series import Floats, Series, series
from forensics.run.usable_values import begins_late
from forensics.signs.other_objectives import KL_TERM, RECONSTRUCTION
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

EFFECTS = {
    "penalty_rewarded": "loss.part",
    "divergence_absurd_at_start": "loss.part",
}  # symptoms of their own, for which there is no detector

PENALTY = rf"{KL_TERM}|\b(penalty|reg|regulari[sz]ation|commit(ment)?|l ?2 (loss|reg))\b(?!.*\b(weight|coef|coeff|beta|scale|lambda)\b)"
LEAST = 5  # bound: values that an arithmetic must hold for
PRINTED = 0.01  # share by which a weight varies from row to row where its numbers were printed with four digits
GROWS = 10.0  # unit: an order of magnitude
ABSURD = 1e6  # nats: a code of ten thousand numbers each as far from the prior as 14 of its standard deviations


def penalty_rewarded(s: Symptoms) -> Sign:
    """The loss is another logged term minus a constant times a divergence or penalty, which grows: training raises what should be small. An
    entropy or a likelihood may be meant to grow; a divergence is never below zero, and has no upper bound to grow to."""
    total, terms = series(s.run, "loss.train"), [p for p in of_a_loss(s.run, PENALTY) if p.name != "loss.train"]
    if total is None or not terms:
        return cannot_tell("no divergence or penalty was logged beside the loss.")
    others = [p for p in worded(s.run, RECONSTRUCTION) if p.tag not in {total.tag, *(t.tag for t in terms)}]
    for term in terms:
        for rest in others:
            if (found := _weight(total, rest, term)) is None:
                continue
            weight, x = found
            text = f"{total.tag} is {rest.tag} {'-' if weight < 0 else '+'} {abs(weight):.3g} times {term.tag}, which goes from {x[0]:.3g} to {x[-1]:.3g}"
            if weight > 0 or float(np.median(x[-LEAST:])) < GROWS * abs(float(x[0])):
                return absent(f"{text}.")
            first = int(np.flatnonzero(term.usable)[0])
            return seen(f"{text}.", where=term.place(s.run, first), first=int(term.step[first]))
    return cannot_tell("the terms that were logged do not add up to the loss.")


def _weight(total: Series, rest: Series, term: Series) -> tuple[float, Floats] | None:
    """(the constant that the term is multiplied with, the term) where the loss is the other term and this; None where it is something else."""
    _, (t, r, k) = together(total, rest, term)
    rows = np.abs(t - r) > PRINTED * np.abs(r)  # what is left of two numbers that are nearly equal is their last digits
    if rows.sum() < LEAST or (k < 0).any() or not (k[rows] > 0).all():
        return None
    weights = (t - r)[rows] / k[rows]
    middle = float(np.median(weights))
    held = float((np.abs(weights - middle) <= PRINTED * abs(middle)).mean())
    return (middle, k) if middle != 0 and held >= 1 - PRINTED else None


def divergence_absurd_at_start(s: Symptoms) -> Sign:
    """The divergence of codes from their prior begins above a million nats: an encoder that was initialized as usual gives codes near the prior."""
    found = [p for p in of_a_loss(s.run, KL_TERM) if p.name != "loss.train"]
    if not found:
        return cannot_tell("no divergence of codes from a prior was logged.")
    if late := begins_late(s.run):
        return cannot_tell(late)
    p = found[0]
    first = int(np.flatnonzero(p.usable)[0])
    text = f"{p.tag} begins at {p.value[first]:.3g}."
    return seen(text, where=p.place(s.run, first), first=int(p.step[first])) if p.value[first] > ABSURD else absent(text)
