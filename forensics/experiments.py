"""The one experiment that best separates two causes: what to run, and what each outcome would mean.

The experiments stand in experiments.toml, in order of what they cost. Which outcome a cause predicts stands in the
cause (``expects``: ``experiment:outcome``, separated by blanks), by argument and not by fit. Causes that predict the same
outcome are not told apart by an experiment, and causes that predict none are open.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from forensics.case import Hypothesis
from forensics.causes.files import causes
from forensics.certainty import within

MEANINGFUL = 0.05  # a second cause below this probability is no rival


@dataclass(frozen=True)
class Experiment:
    """`outcomes`: id of what one sees -> the words for it."""

    id: str
    what: str
    outcomes: dict[str, str]


EXPERIMENTS = tuple(
    Experiment(name, e["what"], e["seen"]) for name, e in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
)


def expected(cause: str) -> dict[str, str]:
    """The outcome that a cause predicts, by experiment."""
    return causes()[cause].expects if cause in causes() else {}


def separating(first: str, second: str) -> tuple[Experiment, str, str] | None:
    """(experiment, what it shows if `first` is right, what if `second` is) of the cheapest that tells them apart."""
    one, other = expected(first), expected(second)
    for e in EXPERIMENTS:
        if e.id in one and e.id in other and one[e.id] != other[e.id]:
            return e, e.outcomes[one[e.id]], e.outcomes[other[e.id]]
    return None


def settled(ranked: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """The ranked causes, where the first two say which experiment tells them apart. Others keep their own."""
    rivals = [h for h in ranked if h.id != "unknown" and h.probability >= MEANINGFUL][:2]
    found = separating(rivals[0].id, rivals[1].id) if len(rivals) == 2 else None
    if found is None:
        return ranked
    experiment, one, other = found
    told = {
        rivals[0].id: f"{experiment.what}. If {one}: {within(rivals[0].title)}; if {other}: {within(rivals[1].title)}.",
        rivals[1].id: f"{experiment.what}. If {other}: {within(rivals[1].title)}; if {one}: {within(rivals[0].title)}.",
    }
    return tuple(replace(h, settle=told.get(h.id, h.settle)) for h in ranked)
