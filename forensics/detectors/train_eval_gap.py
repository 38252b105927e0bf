"""Train/eval gap

What it sees
    The evaluation turns for the worse while the training loss goes on falling: its loss up, or, where no evaluation loss was logged,
    a score of held-out data (recall@10, R2, RMSE). Where only terms of the loss were logged, each of those that both
    have: one alone may rise while the others outweigh it.

How it decides
    Compares the last evaluation losses with the lowest: it fires when the last (the median of the last three) lies 5 % (of the root of
    a squared error 2.5 %) and three times the noise of neighbouring evaluations above the lowest (or climbs steadily from there: a
    Kendall's tau of at least 0.7, 2.4 sigma from what chance gives; or, of 50 evaluations and more, the last tenth stands three of its
    errors above the lowest stretch of as many), which is at least three evaluations back, and the training loss fell meanwhile. The
    noise is that of the evaluations after the lowest, where they are enough: the steep way down says nothing about it. Where as many
    held-out answers are right in the end as when the loss was lowest, and it is not half as high again, it is for information: only
    the certainty of wrong answers grew. So it is where it ends no higher than the training loss and keeps half of what it had gained, and whatever the training loss does, where an evaluation ends 2 % worse than its best
    and the noise does not explain it (10 % with fewer than five): the best one tells which checkpoint to keep; and a warning, where five and more end half as high
    again, three times their noise, with fewer answers right, and the training loss does not. Where none of held-out data was
    logged this is said of a score that was taken half as often as the loss, or less. For information, too, where training ends with a quarter of all answers
    more right, and where the training loss falls by a fifth and more after the evaluation that no later one betters (`no_better_since`).

Cannot tell
    With fewer than five evaluations, or where neither an evaluation loss nor a score of held-out data was logged.

Folklore
    Overfitting is the first thing a healthy run can do wrong; an evaluation that only falls with training can be leakage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import last_errors, loss_terms
from forensics.run.climbs import climbs
from forensics.run.evaluation_noise import noise_after, stands_above
from forensics.run.evaluations import MANY_ANSWERS, answers_at_end, level_at
from forensics.run.inputs import needed, surviving
from forensics.run.no_better_since import FIFTH, falls_since, no_better_since
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.scores import held_out, of_unnamed_data, scores_hold
from forensics.run.series import Series, series
from forensics.spikes.trend import falls_without_end
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["loss.eval"]
LEAST_EVALS = 5  # statistical: the fewest that can climb by more than CHANCE; measured: with 7 three of 13 faulty runs are lost
RISE = 0.05  # measured: at 0.07 one of 13 faulty runs is lost, at 0.035 no healthy one fires (docs/thresholds.md)
UNDONE = 0.1  # of all that it had gained; measured: a healthy run loses 7 % of it again; no faulty run of the seen sets is lost
AGAIN = 0.5  # unit: half of the best loss again
POINT = 0.01  # unit: of a score; one hit in a hundred
NOISES = 3.0  # statistical: of a difference of two evaluations, chance does it once in 370; not critical (docs/thresholds.md)
BACK = 3  # bound: three values make the last level, and the lowest is not among them
FEW = 16  # statistical: among fewer evaluations a step and a trend move the median change, so that the largest one stands for noise
# units of what is told for information: the third digit of a loss; bound: noise does it once in twenty
PAST, PAST_OF_FEW, TWICE = 0.02, 0.1, 2.0
LATE = 0.8  # told with the finding, decides none


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Evaluation loss beside training loss."""

    best_step: int
    best: float  # lowest evaluation loss, or best score
    final: float  # the last one
    rise: float  # of the last three, their median, over the best, as a share (of a score: how far it fell)
    train_fall: float  # of the training loss meanwhile, as a share
    improved: float  # of the first evaluation to the best, as a share
    late: bool  # much was learnt by the first evaluation


@dataclass(frozen=True)
class PastBest(BaseFacts):
    """An evaluation that ends worse than it was, or is no better after a step, for information."""

    best_step: int
    best: float
    final: float


@dataclass(frozen=True)
class AnswersApart(BaseFacts):
    """Shares of right answers at the end, for information."""

    training: float
    held_out: float


def detect(run: Run) -> Iterator[Finding]:
    told = _no_better(run) or _answers_apart(run)
    try:
        found = [*_of_losses(run)]
    except CannotTell:
        yield from told
        raise
    yield from found or told


def _no_better(run: Run) -> list[Finding[PastBest]]:
    """Training that goes on while the evaluation stands: a fifth of its loss was learnt of the training data alone."""
    still, fall = no_better_since(run), falls_since(run)
    if still is None or fall is None or fall < FIFTH:
        return []
    title = f"{_called(still.judged)} is no better after step {still.since} ({still.first:.4g} there, {still.last:.4g} at the end), while training loss falls by {fall:.0%}"
    shown = evidence.window(
        still.logged, still.since, int(still.logged.step[-1]), title=still.judged.tag, where=still.logged.place(run, still.rows[0])
    )
    facts = PastBest(still.since, still.first, still.last)
    return [evidence.on_rows(still.logged, (still.rows[0], still.rows[-1]), facts, title, "info", shown)]


def _answers_apart(run: Run) -> list[Finding[AnswersApart]]:
    """Training that ends with a quarter of all answers more right than the held-out data: learnt by heart, though the evaluation may still improve."""
    held, ends = series(run, "acc.eval"), answers_at_end(run)
    if held is None or ends is None or ends[0] - ends[1] < MANY_ANSWERS:
        return []
    title = f"At the end {ends[0]:.1%} of the answers are right in training and {ends[1]:.1%} of {held.tag}"
    first, last = surviving(held)[[0, -1]]
    shown = evidence.window(held, int(held.step[first]), int(held.step[last]), title=held.tag, margin=0, where=held.place(run, last))
    return [evidence.on_rows(held, (first, last), AnswersApart(*ends), title, "info", shown)]


def _of_losses(run: Run) -> Iterator[Finding]:
    judged = of_unnamed_data(run) if (held := held_out(run)) is None else held
    past = _past_best(run, judged) if judged is not None else None
    try:
        pairs = _pairs(run)
        found = [turned for held, train in pairs if (turned := gap(run, held, train)) is not None]
    except CannotTell:
        if past is None:
            raise
        pairs, found = [], []
    if found and len(found) == len(pairs):
        yield found[0]
    elif past is not None:
        yield past


def _past_best(run: Run, held: Series) -> Finding[PastBest] | None:
    keep = surviving(held)
    x, step = held.value[keep], held.step[keep]
    if len(x) < BACK or (best := int(np.argmin(x))) > len(x) - BACK:
        return None
    few = len(x) < LEAST_EVALS
    rise, lowest = median(x[best + 1 :][-BACK:]) - float(x[best]), abs(float(x[best]))
    beyond = few or rise >= TWICE * noise_after(x, best) or climbs(x[best:])
    if not beyond or rise < max(POINT if held.rises else 0, (PAST_OF_FEW if few else PAST) * lowest):
        return None
    facts = PastBest(int(step[best]), held.logged(x[best]), held.logged(x[-1]))
    lost = held.name == "loss.eval" and not few and rise >= max(AGAIN * lowest, NOISES * noise_after(x, best))
    grave = lost and not scores_hold(run, facts.best_step, 1 - PAST) and not _training_turned(run, facts.best_step)
    logged, title = _as_logged(held), f"{_at_best(held)} at step {facts.best_step} ({facts.best:.4g}) and ends at {facts.final:.4g}"
    shown = evidence.window(logged, int(step[0]), int(step[-1]), title=held.tag, margin=0, where=held.place(run, keep[best]))
    return evidence.on_rows(logged, (keep[best], keep[-1]), facts, title, "warning" if grave else "info", shown)


def _training_turned(run: Run, since: int) -> bool:
    """Whether the training loss ends half as high again, too, or falls without end: the turn of that is told, and this comes of it."""
    train = series(run, "loss.train")
    if train is None or (before := level_at(train, since)) is None or (after := level_at(train, int(train.step[-1]))) is None:
        return False
    return after >= (1 + AGAIN) * before or falls_without_end(train.value[train.usable])


def gap(run: Run, held: Series, train: Series) -> Finding[Facts] | None:
    """A loss of held-out data that turns up while the training loss falls on. Raises CannotTell where too few evaluations were logged."""
    keep = surviving(held)
    if len(keep) < LEAST_EVALS:
        raise CannotTell(f"only {len(keep)} evaluations were logged")
    x, step = held.value[keep], held.step[keep]
    best = int(np.argmin(x))
    final = median(x[-BACK:])
    noise = noise_after(x, best)
    rise, gain = final - float(x[best]), float(x[0] - x[best])
    lost = min(UNDONE * gain, AGAIN * abs(float(x[best])))  # a steep first fall says nothing of what the rest is worth
    if rise <= (POINT if held.rises else 0) or rise < lost:
        return None
    least = _least(held) * abs(float(x[best]))
    if best >= len(x) - BACK or rise < least or not (rise >= NOISES * noise or climbs(x[best:]) or stands_above(x, RISE, NOISES)):
        return None
    at_best, at_end = level_at(train, int(step[best])), level_at(train, int(step[-1]))
    if at_best is None or at_end is None or at_end >= at_best or falls_without_end(train.value[train.usable]):
        return None
    much = UNDONE * abs(float(x[best]))
    undone = gain >= much and rise >= max(AGAIN * gain, much)
    if held.name == "loss.eval" and train.name == "loss.train" and final <= median(train.value[train.usable][-BACK:]) and not undone:
        return None  # what was learnt by heart is known better than what was never seen, unless the two are on other scales
    title = (
        f"{_at_best(held)} at step {step[best]} ({held.logged(x[best]):.4g}) and ends at {held.logged(x[-1]):.4g}, "
        f"while {'training loss' if train.name == 'loss.train' else train.tag} keeps falling from {at_best:.4g} to {at_end:.4g}"
    )
    late = not held.rises and bool(x[0] < LATE * np.median(train.value[np.isfinite(train.value)][:5]))
    lowest, first, last = float(x[best]), int(step[best]), int(step[-1])
    shares = rise / (abs(lowest) or 1.0), 1 - at_end / (at_best or 1.0), gain / (abs(float(x[0])) or 1.0)
    facts = Facts(first, held.logged(lowest), held.logged(float(x[-1])), *shares, late)
    logged, marks = _as_logged(held), [{"step": first, "label": "best evaluation", "kind": "event"}]
    shown = [evidence.window(s, int(step[0]), last, *marks, title=s.tag, margin=0, where=s.place(run, 0)) for s in (logged, train)]
    sure = held.name.startswith("loss.") and facts.rise < AGAIN and scores_hold(run, first, 1 - PAST)
    return evidence.on_rows(logged, (keep[best], keep[-1]), facts, title, "info" if sure else "warning", *shown)


def _least(held: Series) -> float:
    """The rise that counts."""
    return RISE / 2 if last_errors.is_root(held.tag) else RISE


def _at_best(held: Series) -> str:
    return f"{_called(held)} is {'highest' if held.rises else 'lowest'}"


def _called(held: Series) -> str:
    return "Evaluation loss" if held.name == "loss.eval" else held.tag


def _as_logged(held: Series) -> Series:
    return replace(held, value=-held.value) if held.rises else held


def _pairs(run: Run) -> list[tuple[Series, Series]]:
    """(of held-out data, of the training): the evaluation and the training loss, else the terms of a loss that both have."""
    if series(run, "loss.train") is None:
        if not (terms := loss_terms.held_out(run)):
            raise CannotTell("no training loss was logged, nor a term of it that the evaluation has, too")
        return terms
    held = held_out(run)
    if held is None:
        raise CannotTell("neither an evaluation loss nor a score of held-out data was logged")
    return [(held, needed(run, "loss.train"))]


def smallest_effect(run: Run) -> str:
    held = _pairs(run)[0][0]
    x = held.value[surviving(held)]
    if len(x) < LEAST_EVALS:
        return ""
    change, lowest = np.abs(np.diff(x)), abs(float(x.min())) or 1.0
    noise = max(robust_sigma(np.diff(x)), float(change.max()) if len(x) < FEW else 0.0)  # few values do not tell it from a trend
    least = max(_least(held), NOISES * noise / lowest) + MARGIN * error_of_median(noise, BACK) / lowest
    what = "an evaluation loss" if held.name == "loss.eval" else f"a {held.tag}"
    return (
        f"{what} that ends {least:.1%} {'below' if held.rises else 'above'} its best for {BACK} evaluations, while the training loss falls"
    )
