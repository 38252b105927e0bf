"""What evaluations say of training that learns nothing: a loss, an accuracy or another score that stays where it was."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from forensics.run import settings
from forensics.run.evaluations import evaluations, shares
from forensics.run.inputs import surviving
from forensics.run.levels import RISES, levels
from forensics.run.once import once
from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.scores import LEAST, scores
from forensics.run.series import Floats, Ints, Series, parts, series
from forensics.run.trained_before import from_scratch
from forensics.spikes.visible import MARGIN
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

# measured: of 1483 runs by other makers the loss of 12 with a fault falls so, and of none of the 599 without one
BY_HEART = 0.3
NOTHING = 0.01  # unit: one in a hundred
EVALUATIONS, STANDS = 4, 0.01  # statistical: four in a row without a rise, once in 24 by chance; unit: 1 % is the third digit of a loss
POINTS, HALF = 0.02, 0.5  # statistical: two standard errors of 600 samples' accuracy; bound: who is right more often does not guess
SURE = 10  # statistical: values whose median is off by less than a third of their scatter
_IN_BATCH = lazy_re(r"\b(contrastive|info ?nce|nce|nt ?xent|itc|clip)\b")


@dataclass(frozen=True)
class Still:
    """Values of one score, as logged; rows of its series that count."""

    logged: Series
    rows: Ints
    first: float  # median of the first third
    last: float
    best: float

    @property
    def says(self) -> str:
        n = len(self.rows)
        if self.best <= NOTHING:
            return f"{self.logged.tag} is {self.best:.4g} at the best of {n} evaluations: next to nothing is right"
        return f"{self.logged.tag} does not rise: {self.first:.4g} over the first third of {n} evaluations, {self.last:.4g} over the last"


@once
def still_score(run: Run) -> Still | None:
    """The first of the scores of held-out data, where none of them rises."""
    judged = [*parts(run, "acc.eval"), *(s.logged for s in scores(run) if s.rises and abs(s.value).max() <= 1)]
    found = [_still(s, np.flatnonzero(s.usable)) for s in judged if s.usable.sum() >= LEAST]
    return found[0] if found and all(found) else None


def _still(s: Series, rows: Ints) -> Still | None:
    x: Floats = shares(s.value[rows])
    third = max(len(x) // 3, 1)
    first, last, best = median(x[:third]), median(x[-third:]), float(x.max())
    noise = MARGIN * math.sqrt(2) * error_of_median(noise_by_steps(x), third)
    stands = len(x) >= EVALUATIONS and best <= HALF and last - first <= max(noise, RISES * first)
    if x.min() < 0 or not (best <= NOTHING or stands):
        return None
    y = s.value[rows]
    return Still(s, rows, median(y[:third]), median(y[-third:]), float(y.max()))


def learnt_by_heart(run: Run) -> float | None:
    """By which share the training loss falls, where that is much, no score of held-out data rises, and their loss, where it was logged, does not fall: what
    is learnt is of no use beyond the training data."""
    loss = series(run, "loss.train")
    x = loss.value[surviving(loss)] if loss is not None else np.zeros(0)
    if len(x) < 2 * LEAST or still_score(run) is None:
        return None
    first, last, _ = levels(x)
    _, held = evaluations(run)
    if len(held) > LEAST and median(held[-LEAST:]) < (1 - RISES) * median(held[:LEAST]):
        return None
    fall = 1 - last / first if first > 0 else 0.0
    return fall if fall >= BY_HEART else None


def ended_where_they_began(run: Run, least_fall: float) -> bool:
    """Whether evaluations, which are less noisy than batches, fell by less than a share."""
    _, y = evaluations(run)
    return len(y) >= EVALUATIONS and bool(y[-1] >= (1 - least_fall) * y[0] > 0)


def accuracy_stands(run: Run, s: Series, rows: Ints, *, falls: bool) -> str | None:
    """What an accuracy says that never rises: no better than guessing while the loss does not fall, or the same each time."""
    a = series(run, "acc.eval")
    kept = surviving(a) if a is not None else np.zeros(0, np.int64)
    if a is None or len(kept) < EVALUATIONS:
        return None
    y = a.value[kept]
    share = shares(y)
    same = bool(np.ptp(y) == 0) and 0 < share[0] < 0.9 and _settled(s, rows, int(a.step[kept[0]]))
    low = not falls and share.max() <= HALF and share[1:].max() <= share[0] + POINTS
    how = f"{y[0]:.4g} at each of {len(y)} evaluations" if same else f"{y[0]:.4g} at the first evaluation, {y[-1]:.4g} at the last"
    return f"{a.tag} does not rise: {how}" if same or low else None


def loss_stands(run: Run, s: Series, rows: Ints, first: float, last: float, chance: float | None) -> str | None:
    """What a loss shows that began where guessing does, fell to a level at once, and stood there on evaluations, too."""
    step, y = evaluations(run)
    if len(y) < EVALUATIONS or not from_scratch(s, first, chance) or last < HALF * first:
        return None
    if abs(y[0] - y[-1]) > STANDS * abs(y[0]) or np.ptp(y) > 2 * STANDS * abs(y[0]) or not _settled(s, rows, int(step[0])):
        return None
    return f"Loss falls to a level at once and stands there: {y[0]:.4g} at the evaluation of step {step[0]}, {y[-1]:.4g} at the last"


def nothing_after_first(run: Run, s: Series, rows: Ints, first: float, last: float) -> str | None:
    """What evaluations say that stand from the second one on, while no score of them rises: what the first steps learnt is all."""
    step, y = evaluations(run)
    if len(y) <= EVALUATIONS or last < HALF * first or y[-1] < (1 - STANDS) * y[1] or np.ptp(y[1:]) > 2 * STANDS * abs(y[1]):
        return None
    score = still_score(run)
    if score is None or not _settled(s, rows, int(step[1])):
        return None
    return f"Nothing is learnt after the first evaluations: the loss of held-out data is {y[1]:.4g} at the second and {y[-1]:.4g} at the last, and {score.says}"


def stands_at_guessing_in_batch(run: Run, s: Series, rows: Ints) -> str | None:
    """A contrastive loss that stands at ln n, where n is the size of a batch: what guessing the partner among n costs (arXiv 1807.03748)."""
    n = settings.number(run, "batch_size")
    if n is None or n <= 1 or not _IN_BATCH.search(words(s.tag)):
        return None
    x, chance = s.value[rows], math.log(n)
    later = x[len(x) // 3 :]
    if len(later) < SURE or abs(median(later) - chance) > STANDS * chance or abs(median(later[-SURE:]) - chance) > 2 * STANDS * chance:
        return None
    return f"The loss stands at {median(later):.4g}: guessing the partner among the {n:.0f} of a batch costs ln({n:.0f}) = {chance:.3g}"


def _settled(s: Series, rows: Ints, step: int) -> bool:
    """Whether the training loss has not fallen since a step in the first third of the run, as far as its noise lets one see."""
    since = s.value[rows][s.step[rows] >= step]
    if len(since) < 0.6 * len(rows) or len(since) < 6:
        return False
    half = len(since) // 2
    noise = math.sqrt(2) * error_of_median(noise_by_steps(since), half)
    before, after = median(since[:half]), median(since[half:])
    return before - after <= max(MARGIN * noise, STANDS * abs(before))
