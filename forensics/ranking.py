"""Ranks causes: probabilities from sums of decibans, against "something not on our list" at zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forensics.case import Clue, Hypothesis

UNKNOWN = Hypothesis(
    "unknown",
    "Something not on our list",
    (Clue("The yardstick: every other cause is weighed against this one.", 0.0),),
)
TEMPERATURE = 1.0  # decibans are divided by this before they become probabilities


def rank(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Best first, `unknown` among them; the probabilities sum to 1."""
    competitors = [*hypotheses, UNKNOWN]
    odds = [10 ** (h.score / 10 / TEMPERATURE) for h in competitors]
    total = sum(odds)
    ranked = [replace(h, probability=o / total) for h, o in zip(competitors, odds, strict=True)]
    return tuple(sorted(ranked, key=lambda h: (-h.score, h.id)))
