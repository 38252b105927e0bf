"""Plateau

What it sees
    A loss that never learned: it ends where it began, or it stands at what random guessing gives.

How it decides
    Compares the level of the first tenth of the values with that of the last. It fires when the loss fell by less than 3 %
    over at least 20 values, or over fewer that scatter by so little that they would have shown such a fall. Where config names a vocabulary or classes, it says how near the loss is to ln(their number).

Cannot tell
    With fewer than six values, or fewer than 20 that scatter. A run that goes on from a trained model has little left to learn; the step where its log
    begins tells.

Folklore
    "Overfit a single batch first": a model that cannot is a bug, not a setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import settings
from forensics.run.inputs import finite_loss
from forensics.run.robust import robust_sigma
from forensics.spikes.excursions import Floats
from forensics.spikes.visible import MARGIN, error_of_median
from parsers.tables import Run

NEEDS = ["loss.train|loss.eval"]
LEVEL, LEAST_VALUES = 3, 6  # bound: three values make a median; two of them share no value
LEAST_FALL = (
    0.03  # measured: at 0.021 one of 29 faulty runs is lost, at 0.042 six more are found, no healthy one fires (docs/thresholds.md)
)
RISES = 0.05  # unit: above the first level; a loss that rises by more is what divergence looks at
ENOUGH = 20  # values; bound: the level is then a twentieth of them or more, and what scatters is judged all the same; not critical (docs/thresholds.md)
NEAR_CHANCE = 0.05  # of ln(classes); not critical: decides what is told, no finding (docs/thresholds.md)


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Levels of the loss, in its units."""

    first: float
    last: float
    best: float
    fall: float  # share of the first level
    chance: float | None  # ln of the number of classes or tokens, where config names it
    at_chance: bool


def detect(run: Run) -> Iterator[Finding]:
    s, rows = finite_loss(run, LEAST_VALUES)
    x = s.value[rows]
    tenth, unsure = _tenth(x), _unsure(x)
    if unsure > LEAST_FALL and len(x) < ENOUGH:
        raise CannotTell(f"{len(x)} values of {s.tag} scatter so widely that they would show no fall of less than {unsure:.0%}")
    first, last, best = (float(np.median(v)) for v in (x[:tenth], x[-tenth:], np.sort(x)[:tenth]))
    fall = (first - last) / abs(first) if first else 0.0
    if fall >= LEAST_FALL or last > first * (1 + RISES) or first == 0:
        return
    outcomes = settings.number(run, "vocab_size") or settings.number(run, "classes")
    chance = math.log(outcomes) if outcomes and outcomes > 1 else None
    at_chance = chance is not None and abs(last - chance) <= NEAR_CHANCE * chance
    note = f", which is what guessing gives: ln({outcomes:.0f}) = {chance:.3g}" if at_chance and chance else ""
    title = f"Loss does not fall: {first:.4g} at the beginning, {last:.4g} at the end{note}"
    facts = Facts(first, last, best, fall, chance, at_chance)
    begin, end = int(s.step[rows[0]]), int(s.step[rows[-1]])
    shown = evidence.window(s, begin, end, title=s.tag, where=s.place(run, rows[0]), margin=0)
    yield evidence.on_rows(s, (rows[0], rows[-1]), facts, title, "warning" if begin <= 0.1 * end else "info", shown)


def smallest_effect(run: Run) -> str:
    s, rows = finite_loss(run, LEAST_VALUES)
    least = LEAST_FALL - _unsure(s.value[rows])
    return (
        f"a loss that falls by less than {least:.1%} over the run"
        if least >= 0
        else "a loss that does not fall, in half of all cases: it scatters"
    )


def _tenth(x: Floats) -> int:
    return max(len(x) // 10, LEVEL)


def _unsure(x: Floats) -> float:
    """What chance does to the fall, as a share of the first level: two standard errors of the difference of two medians."""
    noise = robust_sigma(np.diff(x)) / math.sqrt(2)
    return MARGIN * math.sqrt(2) * error_of_median(noise, _tenth(x)) / (abs(float(np.median(x[: _tenth(x)]))) or 1.0)
