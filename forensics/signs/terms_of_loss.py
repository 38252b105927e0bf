"""The terms of a loss beside each other: one that learns nothing while others learn."""

from __future__ import annotations

from forensics.run import loss_terms
from forensics.run.series import parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

EFFECTS = {"term_stands_at_chance": "loss.aux"}  # a symptom of its own, for which there is no detector

LEAST = 20  # bound: values whose tenths are two each


def term_stands_at_chance(s: Symptoms) -> Sign:
    """A term of the loss stands at ln(K) through the whole run and the accuracy at 1/K, while another term falls to less than half."""
    terms = [t for name in ("loss.aux", "loss.part") for t in parts(s.run, name) if t.usable.sum() >= LEAST]
    if len(terms) < 2:
        return cannot_tell("the terms of the loss were not logged one by one.")
    if series(s.run, "acc.eval") is None and series(s.run, "acc.train") is None:
        return cannot_tell("no accuracy was logged, without which a term near the logarithm of some number says nothing.")
    found = loss_terms.at_chance(s.run, LEAST)
    if found is None:
        return absent(f"None of {len(terms)} terms of the loss stands at what guessing gives while another falls to less than half.")
    (first, last), (high, low) = found.levels, found.other_levels
    text = (
        f"{found.term.tag} stands at ln({found.classes}), what guessing gives ({first:.4g} at first, {last:.4g} at the end; accuracy "
        f"{found.hits:.3g}), while {found.other.tag} falls from {high:.3g} to {low:.3g}."
    )
    place = found.term.place(s.run, 0)
    return seen(text, where=place, first=int(found.term.step[0]), last=int(found.term.step[-1]))
