"""Whether anything but the loss says that a model learnt."""

from __future__ import annotations

import math

import numpy as np

from forensics.run.climbs import climbs
from forensics.run.evaluations import shares
from forensics.run.robust import error_of_median, median, noise_by_steps, robust_sigma
from forensics.run.scores import scores
from forensics.run.series import Floats, series
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

LEVEL = 3  # bound: values that make a median
CLEAR, NOISES = 0.05, 3.0  # unit: of a score, one pair of twenty more in the right order; statistical: chance does it once in 700
EVALUATIONS, HALF = 8, 0.5  # bound: as many values as a plateau wants; unit: right more often than not
RANKED = 0.1  # unit: ten pairs of a hundred more in the right order


def learnt_beside_loss(run: Run) -> bool:
    """Whether pairs of answers or a score of held-out data tell of what was learnt, where the loss falls by little."""
    return _ranks_better(run) or _predicts(run) or _answers_better(run)


def _ranks_better(run: Run) -> bool:
    """Whether more pairs are in the right order at the end, or a score of held-out data (F1, recall) rose as far: a loss of preferences begins at ln 2
    and may fall by hundredths while it learns, one of lists by less."""
    a = series(run, "pref.acc")
    rising = [score.value for score in scores(run) if score.rises and 0 <= score.value.min() <= score.value.max() <= 1]
    return any(_gains(x) for x in (*rising, *([a.value[a.usable]] if a is not None else [])))


def _gains(x: Floats) -> bool:
    if len(x) < 2 * LEVEL:
        return False
    gain = float(np.median(x[-LEVEL:]) - np.median(x[:LEVEL]))
    return gain >= max(RANKED, MARGIN * math.sqrt(2) * error_of_median(noise_by_steps(x), LEVEL))


def _answers_better(run: Run) -> bool:
    """Whether a model that was right more often than not from the first evaluation on gets better from evaluation to evaluation, as its loss does: a trained
    one that is tuned."""
    a, loss = series(run, "acc.eval"), series(run, "loss.train")
    if a is None or loss is None or a.usable.sum() < EVALUATIONS or loss.usable.sum() < EVALUATIONS:
        return False
    x, y = shares(a.value[a.usable]), loss.value[loss.usable]
    return bool(x[0] > HALF and climbs(x) and climbs(-y))


def _predicts(run: Run) -> bool:
    """Whether a score of held-out data (an AUC, a correlation) stands clear of what knowing nothing gives: of rare events and of noise a loss falls by
    little, whatever was learnt."""
    for score in scores(run):
        late = score.value[len(score.value) // 2 :]
        if score.rises and score.guess is not None and len(late) >= LEVEL:
            over = median(late) - score.guess
            if over >= CLEAR and over > NOISES * robust_sigma(late):
                return True
    return False
