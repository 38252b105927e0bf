"""Plateau

What it sees
    A loss that never learned: it ends where it began, or it stands at what random guessing gives. And, for information, since when a loss that
    did learn has stood still, or until when it had not begun to; rewards and scores of held-out data that do not rise or stay at next to nothing.

How it decides
    Compares the first values (the first alone where the next ones fall from it, by more than they scatter) with the last tenth. It fires when the
    loss fell by less than 5 %, and its noise leaves no room for a fall of 15 % or evaluations say the same; and when it fell by less than 3 % after
    the first tenth of at least 20 values and stands above half of its first level. Where config names a vocabulary or classes, it says how near the
    loss is to ln(their number), and fires where it has stood for half of the run within a tenth of that. It fires, too, when an accuracy does not rise while the loss does not fall, or is the same at each evaluation; and
    when a loss that began as high as guessing fell at once to some level and evaluation and training have stood there since, at more than half of the
    first loss; or when the evaluations stand from the second one on, at more than half of the first loss, and no score of theirs rises; and when a
    contrastive loss stands within 1 % of ln(batch size). A score of which next to nothing is right, after all planned steps and with a loss of held-out data
    that ends no lower than it began, is a warning. It is for information where a trained model goes on, where the log breaks off in the warmup,
    or where more pairs of answers are in the right order at the end, or a score of held-out data is clear of what knowing nothing gives; but not where the
    loss is the same at each value to all of its digits. A loss
    stands still since the first tenth of the run from which on no tenth lies apart from another by 1 %, nor by more than the noise of their medians,
    at least for the second half, and had learnt nothing as long as the same holds from the first tenth on, for a fifth of the run at least; where
    that noise leaves room for 15 % nothing is said. Scores are told, as a warning where the training loss falls by 30 %, where none rises by 5 % and its noise from the first third of four evaluations or
    more to the last, nor above a half; or all stay below 0.01; and an evaluation, where none of its last quarter or more is better by 1 %, nor by more than
    they scatter, than the one that they follow, the training loss has not fallen by a fifth since, and stands no longer still itself.

Cannot tell
    With fewer than eight values, fewer than twenty of the first quarter of the plan, or where so few scatter so widely that a fall may hide in them.
    A run that goes on from a trained model has little left to learn: the step where its log begins tells, a first loss below that of guessing, or a
    setting that names the file of its weights.
    Whether a reward, or a score logged in place of a loss, that hardly rises had anything left to gain.

Folklore
    "Overfit a single batch first": a model that cannot is a bug, not a setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.beside_loss import learnt_beside_loss
from forensics.run.evaluations import guessing
from forensics.run.inputs import RISING, finite_objective
from forensics.run.levels import LEAST_FALL, LEVEL, RISES, ROOM, error_of_fall, levels, tenth
from forensics.run.no_better_since import stands_with_training
from forensics.run.plan import planned_steps, reached
from forensics.run.rate_shape import still_warming
from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.series import Floats, Ints, Series
from forensics.run.still_evaluations import (
    HALF,
    NOTHING,
    STANDS,
    accuracy_stands,
    ended_where_they_began,
    learnt_by_heart,
    loss_stands,
    nothing_after_first,
    stands_at_guessing_in_batch,
    still_score,
)
from forensics.run.trained_before import begins_from_weights, is_trained
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS = ["|".join(("loss.train", "loss.eval", *RISING))]
MEANT = ("kl_weight_holds_loss_up",)
LEAST_VALUES = 8  # bound: three at the beginning, three at the end, and two between
STILL = 0.03  # after the first tenth; measured: no healthy run of 130 stands as still at over half of its first loss
TENTHS = 10  # unit: tenths of a run
LONG = 20  # bound: values whose first tenth is two at least
DIGITS = 3  # bound: a loss that is rounded to three digits behind the point may stand by chance
BEGUN = 0.25  # bound: of the plan; with so few values from so little of it a run has hardly begun
LITTLE = 0.1  # of what guessing costs; measured: of the 120 made runs that name their classes and log 20 values five end so, all faulty
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


@dataclass(frozen=True)
class StoodStill(BaseFacts):
    """Levels of a loss that learned and then stood still, in its units."""

    since: int  # step
    level: float  # from there on
    last: float
    room: float  # what may be hidden in the noise, as a share of the level


@dataclass(frozen=True)
class LearnsLate(BaseFacts):
    """Levels of a loss that stood at its beginning and fell then, in its units."""

    until: int  # step
    first: float
    last: float


@dataclass(frozen=True)
class NotRisen(BaseFacts):
    """Levels of a reward or a score that training should raise, in its units."""

    first: float
    last: float


def detect(run: Run) -> Iterator[Finding]:
    if (still := still_score(run)) is not None:
        by_heart = learnt_by_heart(run)
        said = still.says + (f", while the training loss falls by {by_heart:.0%}" if by_heart else "")
        found = _told(run, still.logged, still.rows, NotRisen(still.first, still.last), said)
        in_vain = still.best <= NOTHING and ended_where_they_began(run, 0.0) and reached(run)
        yield replace(found, severity="warning") if by_heart or in_vain else found
    learned = True
    for never in _never_learned(run):
        learned = False
        yield never
    if learned:
        yield from [*_stood_still(run)] or _evaluation_stood_still(run)


def _evaluation_stood_still(run: Run) -> Iterator[Finding[StoodStill]]:
    if still := stands_with_training(run):
        yield _told(run, still.logged, still.rows, StoodStill(still.since, still.first, still.last, still.room), still.says)


def _stood_still(run: Run) -> Iterator[Finding]:
    """Since when a loss that learnt has stood, or until when one had learnt nothing."""
    s, rows = finite_objective(run, LEAST_VALUES)
    x = s.value[rows]
    if s.rises or len(x) < TENTHS * LEVEL:
        return
    parts = np.array_split(rows, TENTHS)
    tenths = np.array([np.median(s.value[part]) for part in parts])
    noise = MARGIN * math.sqrt(2) * error_of_median(noise_by_steps(x), len(x) // TENTHS)
    first, last = float(tenths[0]), float(tenths[-1])
    before, room = (max(STANDS, noise / max(abs(level), 1e-12)) for level in (first, last))
    still = [k for k in range(TENTHS // 2 + 1) if np.ptp(tenths[k:]) <= room * abs(last)]
    late = [k for k in range(2, TENTHS) if np.ptp(tenths[:k]) <= before * abs(first)]
    if room <= ROOM and still:
        row, level = parts[still[0]][0], float(tenths[still[0]])
        title = f"No measurable progress since step {int(s.step[row])}: the loss is {level:.4g} there and {last:.4g} at the end"
        yield _told(run, s, rows[rows >= row], StoodStill(int(s.step[row]), level, last, room), title)
    elif before <= ROOM and late and last <= (1 - ROOM) * first:
        row = parts[late[-1] - 1][-1]
        until = int(s.step[row])
        title = f"The loss learns nothing until step {until}: it is {first:.4g} there as at the beginning, and {last:.4g} at the end"
        yield _told(run, s, rows[rows <= row], LearnsLate(until, first, last), title)


def _told(run: Run, s: Series, rows: Ints, facts: StoodStill | LearnsLate | NotRisen, title: str) -> Finding:
    first, last = rows[[0, -1]]
    shown = evidence.window(s, int(s.step[first]), int(s.step[last]), title=s.tag, where=s.place(run, first), margin=0)
    return evidence.on_rows(s, (first, last), facts, title, "info", shown, key=s.tag if isinstance(facts, NotRisen) else None)


def _never_learned(run: Run) -> Iterator[Finding]:
    s, rows = finite_objective(run, LEAST_VALUES)
    x = s.value[rows]
    planned, until = planned_steps(run), int(s.step[rows[-1]])
    if planned and len(x) < LONG and until < BEGUN * planned:
        raise CannotTell(f"only {len(x)} values of the first {until / planned:.0%} of the planned steps were logged")
    first, last, best = levels(x)
    if s.rises:
        early = min(median(x[: tenth(x)]), median(x[:LEVEL]))  # who is worse than untrained has gained nothing
        if early - last <= max(MARGIN * error_of_fall(x), RISES * abs(first)):
            at = NotRisen(s.logged(early), s.logged(last))
            verb = "hardly rises" if last < early else "does not rise"
            how = f"{s.tag} {verb}: {at.first:.4g} at the beginning, {at.last:.4g} at the end"
            yield _told(run, s, rows, at, how)
            raise CannotTell(f"{how}, and the log does not say what there was to reach")
        return
    if first == 0:
        return
    fall = (first - last) / abs(first)
    chance = guessing(run, s)
    at_chance = chance is not None and abs(last - chance) <= NEAR_CHANCE * chance
    note = f", which is what guessing gives: ln({math.exp(chance or 0):.0f}) = {chance:.3g}" if at_chance else ""
    early = median(x[: tenth(x)])
    evaluated, noise = ended_where_they_began(run, LEAST_FALL), MARGIN * error_of_fall(x) / abs(first)
    still = fall < LEAST_FALL and last <= first + abs(first) * max(RISES, noise if evaluated else 0)
    if still and (fall + noise < ROOM or evaluated):
        title = f"Loss does not fall: {first:.4g} at the beginning, {last:.4g} at the end{note}"
    elif HALF * first <= (1 - STILL) * early <= last <= early * (1 + RISES) and len(x) >= LONG:
        title = f"Loss does not fall after the first tenth of the run: {early:.4g} there, {last:.4g} at the end{note}"
    elif chance is not None and _near_guessing(x, last, chance):
        title = f"The loss stands at {last:.4g}, and guessing costs {chance:.4g} (ln({math.exp(chance):.0f})): next to nothing was learnt"
    elif told := (
        accuracy_stands(run, s, rows, falls=fall >= LEAST_FALL)
        or loss_stands(run, s, rows, first, last, chance)
        or stands_at_guessing_in_batch(run, s, rows)
        or nothing_after_first(run, s, rows, first, last)
    ):
        title = told + note
    elif still:
        raise CannotTell(f"{len(x)} values of {s.tag} scatter so widely that a fall of {ROOM:.0%} may hide in them")
    else:
        return
    facts = Facts(first, last, best, fall, chance, at_chance)
    begin, end = int(s.step[rows[0]]), int(s.step[rows[-1]])
    shown = evidence.window(s, begin, end, title=s.tag, where=s.place(run, rows[0]), margin=0)
    trained = (begin > 0.1 * end and begin > int(s.step[rows[1]]) - begin) or is_trained(run, s, first, chance)
    trained |= learnt_beside_loss(run) or still_warming(run) or begins_from_weights(run)
    if len(np.unique(x)) == 1 and x[0] != round(x[0], DIGITS):
        title, trained = f"Loss is {x[0]:.8g} at each of {len(x)} values: nothing that is learnt reaches it", False
    yield evidence.on_rows(s, (rows[0], rows[-1]), facts, title, "info" if trained else "warning", shown)


def _near_guessing(x: Floats, last: float, chance: float) -> bool:
    """Whether a loss has stood for half of the run, at no tenth below what guessing costs: how often each answer comes, and no more."""
    half = median(x[len(x) // 2 : -tenth(x)]) if len(x) >= LONG else math.nan
    return (1 - LITTLE) * chance <= last <= (1 + RISES) * chance and half - last < STILL * last


def smallest_effect(run: Run) -> str:
    s, rows = finite_objective(run, LEAST_VALUES)
    x = s.value[rows]
    noise, level = noise_by_steps(x), abs(median(x[:LEVEL])) or 1.0
    room = ROOM - MARGIN * error_of_fall(x) / level
    if room <= 0:
        return f"nothing by the training loss alone: it scatters so widely that a fall of {ROOM:.0%} may hide in it"
    unsure = MARGIN * math.hypot(error_of_median(noise, LEVEL), error_of_median(noise, tenth(x))) / level
    least = min(LEAST_FALL, room) - unsure
    if least < 0:
        return "a loss that does not fall, in half of all cases: it scatters"
    return f"a loss that falls by less than {least:.1%} over the run"
