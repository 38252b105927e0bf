"""Initial loss

What it sees
    A first loss far above what an untrained model should have.

How it decides
    An untrained classifier or language model guesses: its loss is ln(number of classes or tokens). It fires when the first values
    lie 30 % above that, where config names the number; else above 12.5 nats, which is more than guessing among the
    largest vocabularies in use costs, when the loss falls to less than a third of it within the first quarter of the run
    (a regression's loss, which has no such scale, is left alone unless it does).

Cannot tell
    When the log begins in the middle of the run, or the loss is no cross entropy and config says nothing.

Folklore
    "Check the loss at initialization": ln(C), or something is wrong with the init, the labels or the loss.
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
from forensics.run.inputs import needed, surviving
from forensics.run.robust import robust_sigma
from forensics.spikes.visible import MARGIN, error_of_median
from parsers.loss_names import is_likelihood
from parsers.tables import Run

NEEDS = ["loss.train"]
ABOVE = 1.3  # measured: at 0.91 eight of 107 healthy runs fire, at 1.82 one of nine faulty ones is lost (docs/thresholds.md)
LARGEST = 12.5  # unit: nats; ln of 262,144 tokens, as many as the largest vocabularies in use have (Gemma)
FALLS = 1 / 3  # measured: not critical, 0.23 and 0.47 tell the same runs (docs/thresholds.md)
LEAST, QUARTER = 3, 20  # bound: three values make a median; a quarter of 20 makes another level


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The first loss, in nats."""

    first: float
    chance: float | None  # ln of the number of classes or tokens, where config names it
    falls_by: int  # step at which it is back at chance
    init_std: float | None  # as configured


def smallest_effect(run: Run) -> str:
    s = needed(run, "loss.train")
    outcomes = (settings.number(run, "vocab_size") or settings.number(run, "classes")) if is_likelihood(s.tag) else None
    if not outcomes or outcomes <= 1:
        return f"a first loss above {LARGEST} nats that falls to a third of it in the first quarter of the run"
    x = s.value[surviving(s)]
    noise = robust_sigma(np.diff(x[:QUARTER])) / math.sqrt(2) if len(x) > LEAST else 0.0
    least = max(ABOVE * math.log(outcomes), 1.0) + MARGIN * error_of_median(noise, LEAST)
    return f"a first loss of {least:.3g}, where guessing costs {math.log(outcomes):.3g}"


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "loss.train")
    rows = surviving(s)
    if len(rows) < LEAST or s.step[rows[0]] > max(5 * s.interval, 0.02 * int(s.step[rows[-1]])):
        raise CannotTell("the log does not begin with the first steps")
    first = float(np.median(s.value[rows[:3]]))
    outcomes = (settings.number(run, "vocab_size") or settings.number(run, "classes")) if is_likelihood(s.tag) else None
    chance = math.log(outcomes) if outcomes and outcomes > 1 else None
    quarter = float(np.median(s.value[rows[: max(len(rows) // 4, 10)]][-5:]))
    high = first > ABOVE * chance if chance else len(rows) >= QUARTER and first > LARGEST and quarter < FALLS * first
    if not high or first < 1.0:
        return
    reach = np.flatnonzero(s.value[rows] < (chance or LARGEST / 3))
    end = int(s.step[rows[int(reach[0])]]) if len(reach) else int(s.step[rows[-1]])
    against = f"ln({outcomes:.0f}) = {chance:.3g}" if chance else "a uniform guess over any vocabulary"
    title = f"First loss {first:.4g}, far above {against}"
    begin = int(s.step[rows[0]])
    facts = Facts(first, chance, end, settings.number(run, "init_std"))
    shown = evidence.window(s, begin, end, title="the first steps", where=s.place(run, rows[0]), margin=0.5)
    yield evidence.found(facts, title, (begin, end), "warning", shown, times=(s.clock(rows[0]), None))
