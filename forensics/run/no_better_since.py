"""Since which evaluation no later one was better: what training after it was worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from forensics.run.evaluation_noise import noise_of
from forensics.run.evaluations import level_at
from forensics.run.inputs import surviving
from forensics.run.levels import ROOM
from forensics.run.once import once
from forensics.run.robust import error_of_median
from forensics.run.scores import held_out
from forensics.run.series import Floats, Ints, Series, series
from forensics.run.still_evaluations import STANDS
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

LEAST = 5  # bound: evaluations, of which three and more stand behind the one that none betters
BEHIND = 3  # bound: values whose median one odd value does not move
QUARTER = 4  # unit: a quarter of the evaluations
FIFTH = 0.2  # unit: of the training loss; learnt since the evaluation stands, of the training data alone


@dataclass(frozen=True)
class NoBetter:
    """The curve that the evaluation is judged by, which falls as the model gets better, and its rows since the one that none betters."""

    judged: Series
    rows: Ints

    @property
    def since(self) -> int:
        return int(self.judged.step[self.rows[0]])

    @property
    def first(self) -> float:
        return self.judged.logged(self.judged.value[self.rows[0]])

    @property
    def best(self) -> float:
        return self.judged.logged(self.judged.value[self.rows].min())

    @property
    def last(self) -> float:
        return self.judged.logged(self.judged.value[self.rows[-1]])

    @property
    def room(self) -> float:
        """What is gained behind it, as a share of it."""
        return abs(self.best - self.first) / abs(self.first)

    @property
    def says(self) -> str:
        gained = f"{self.first:.4g} there, {self.best:.4g} at its best and {self.last:.4g} at the end"
        return f"{self.judged.tag} does not get better after step {self.since}: it is {gained}"

    @property
    def logged(self) -> Series:
        return replace(self.judged, value=-self.judged.value) if self.judged.rises else self.judged


@once
def no_better_since(run: Run) -> NoBetter | None:
    """Where the evaluation loss stands, or else a score, or the share of right answers; None where it does not."""
    judged, hits = held_out(run), series(run, "acc.eval")
    if judged is None and hits is not None:
        judged = replace(hits, value=-hits.value, rises=True)
    if judged is None or len(rows := surviving(judged)) < LEAST:
        return None
    first = _first(judged.value[rows])
    return None if first is None else NoBetter(judged, rows[first:])


@once
def falls_since(run: Run) -> float | None:
    """By which share the training loss has fallen since the evaluation stands; None where it does not, or no loss was logged."""
    still, train = no_better_since(run), series(run, "loss.train")
    if still is None or train is None:
        return None
    before, after = level_at(train, still.since), level_at(train, int(train.step[-1]))
    return 1 - after / before if before is not None and after is not None and before > 0 else None


def stands_with_training(run: Run) -> NoBetter | None:
    """An evaluation that stands where it stood; None where the training goes on to learn, or it gets worse: the gap of the two is another finding."""
    still = no_better_since(run)
    goes_on = still is None or (falls_since(run) or 0) >= FIFTH or abs(still.last - still.first) > ROOM * abs(still.first)
    return None if goes_on else still


def _first(x: Floats) -> int | None:
    """Index of the first evaluation whose level (the median with its neighbours) no later one betters by 1 % nor by what they scatter. None where a
    quarter of all does not follow it, where they scatter too widely to say so, and of zeros."""
    level = np.r_[x[0], np.median(sliding_window_view(x, BEHIND), axis=1)]
    best_later = np.minimum.accumulate(level[::-1])[::-1]
    noise = MARGIN * math.sqrt(2) * error_of_median(noise_of(x), BEHIND)
    first = int(np.argmax(level - best_later <= np.maximum(STANDS * np.abs(level), noise)))
    behind = len(x) - 1 - first
    enough = behind >= max(BEHIND, len(x) // QUARTER)
    return first if enough and noise <= ROOM * abs(level[first]) and level[first] != 0 else None
