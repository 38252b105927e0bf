"""Plateau

What it sees
    A loss that never learned: it ends where it began, or it stands at what random guessing gives.

How it decides
    Compares the level of the first tenth of the values with that of the last. It fires when the loss fell by less than 3 %
    over at least 20 values. Where config names a vocabulary or classes, it says how near the loss is to ln(their number).

Cannot tell
    With fewer than 20 values. A run that goes on from a trained model has little left to learn; the step where its log
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
from forensics.run import settings
from forensics.run.inputs import finite_loss
from parsers.tables import Run

NEEDS = ["loss.train|loss.eval"]
LEAST_VALUES, LEAST_FALL = 20, 0.03
NEAR_CHANCE = 0.05


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
    tenth = max(len(x) // 10, 3)
    first, last, best = (float(np.median(v)) for v in (x[:tenth], x[-tenth:], np.sort(x)[:tenth]))
    fall = (first - last) / abs(first) if first else 0.0
    if fall >= LEAST_FALL or last > first * 1.05 or first == 0:
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
    return "a fall of less than 3 % over the run"
