"""Whether the evaluation ever got beyond guessing: its level against what one gets who knows nothing, and against its own first value."""

from __future__ import annotations

import math

import numpy as np

from forensics.detectors import train_eval_gap as gap
from forensics.run import evaluations as held
from forensics.run import last_errors
from forensics.run.robust import median
from forensics.run.scores import Score, held_out, scores
from forensics.run.series import Floats, Series, series
from forensics.run.usable_values import beginning
from forensics.signs.sign import ABSENT, SEEN, Sign, Symptoms, absent, cannot_tell, seen
from forensics.spikes.medians import rolling_median
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.name_rules import words
from parsers.tables import Run

SUBJECT = "held_out"  # the other half of it
EFFECTS = {
    "eval_at_chance_throughout": "loss.eval",
    "eval_never_better": "loss.eval",
    "training_score_at_chance": "loss.train",
}  # symptoms of their own, for which there is no detector

NO_LOSS, NO_TRAIN = "the evaluation loss was not logged.", "the training loss was not logged."
LEARNED = 0.03  # share of the first value; less is still for the plateau detector
# bound: what is left of the first training loss where it was memorized; beside eight evaluations; where these get worse
BY_ROTE, FELL, A_LITTLE = 0.8, 0.9, 0.95
CHANCE = 0.05  # relative; as near as the plateau detector calls a loss "at chance"
# relative, of n up to 20: beyond it ln n and ln (n + 1) lie so near to each other that every loss is one of them; statistical: of two classes a loss
# between a half of that and all of it lies there once in fifty
EXACT, FEW_CLASSES = 0.01, 20
A_COIN = 0.05  # statistical: three standard errors of the half of 3,600 answers; the mean of all evaluations lies nearer
GUESSED = 1.2  # times 1/C: an accuracy on a few hundred samples scatters by less
EASY = 0.1  # unit: a tenth of what training began with
SIXTH = 6  # bound: the first and the last sixth leave two thirds of a short log between them
STEADY = 8  # statistical: evaluations; of so many without a trend the first is the best once in eight
LEAST, HITLESS = 3, 4  # bound: three values make a median; statistical: as many evaluations as the plateau detector wants of one accuracy
LASTS, BEST = 2, 4  # statistical: an AUC of 100 samples scatters by 0.05, the best of many evaluations by twice that
# measured: shares of hits of 300 users scatter by 12 % at first; of a run that learns they rise by more than a quarter
RISES, SINKS = 0.25, 0.2
_DECIBELS = lazy_re(r"\b(psnr|snr|(si ?)?sdr|si ?snr)\b")
COMES_DOWN = 0.3  # bound: of a first evaluation, after which a sum of several terms has little left to fall
HALF = 0.5  # unit: of a share that begins above it, less is left to rise than there is


def eval_never_better(s: Symptoms) -> Sign:
    """No evaluation was better than the first one, while training loss fell."""
    train, curve = series(s.run, "loss.train"), held_out(s.run)
    x = curve.value[curve.usable] if curve is not None else np.zeros(0)
    falls = train.value[train.usable] if train is not None else np.zeros(0)
    pair = held.ends(falls, min(10, max(len(falls) // SIXTH, LEAST)))
    if curve is None or len(x) < 4:
        few = f"only {len(x)} evaluation{'s were' if len(x) != 1 else ' was'} logged, 4 are needed."
        return cannot_tell(few if len(x) else NO_LOSS)
    if train is None or pair is None:
        return cannot_tell(NO_TRAIN)
    if np.ptp(x) == 0 and float(x[0]).is_integer():
        return cannot_tell(f"{curve.tag} is {curve.logged(x[0]):.4g} each time: it counts something.")
    if pair[0] <= 0 or curve.logged(x[0]) <= 0:
        return cannot_tell("the losses are not positive, so shares of them say nothing.")
    if curve.rises and _DECIBELS.search(words(curve.tag)):
        return cannot_tell(f"{curve.tag} is in decibels, of which shares say nothing.")
    begin = beginning(train.value[train.usable])
    if _knew(curve, train, begin):  # of what holds for data that it never saw, or by heart
        return cannot_tell(
            f"the first evaluation ({curve.logged(x[0]):.4g}) came after something had been learnt: training began at {begin:.4g}."
        )
    if (beyond := eval_at_chance_throughout(s)).state == ABSENT:
        return cannot_tell(f"the first evaluation came after something had been learnt: {beyond.text}")
    if (
        known := next((c for c in scores(s.run) if c.rises and c.guess is not None and c.value.max() > c.guess + LASTS * CHANCE), None)
    ) is not None:
        return cannot_tell(
            f"something was learnt of the data: {known.tag} is {known.value.max():.3g} at its best, {known.guess:g} by guessing."
        )
    lowest = float(rolling_median(x, LEAST).min() if len(x) >= STEADY else x.min())  # of many the best one is luck
    first, best, last = (curve.logged(float(v)) for v in (x[0], lowest, np.median(x[-3:])))
    text = f"{curve.tag} is {first:.4g} at first and {best:.4g} at best"
    power = 2 if last_errors.is_root(curve.tag) else 1
    if lowest <= x[0] - (RISES if curve.rises and last < (1 - SINKS) * first else LEARNED / power) * abs(x[0]):
        return absent(f"{text}: it improves.")
    if curve.rises and HALF <= first <= best <= 1 and 1 - best <= (1 - RISES) * (1 - first):
        return absent(f"{text}: of what it could still rise, it rose {(best - first) / (1 - first):.0%}.")
    left = (beginning(-falls[::-1]) / -begin if len(x) < STEADY else pair[1] / pair[0]) ** power
    worse = len(x) >= STEADY and median(x[-3:]) > x[0] + LEARNED * abs(x[0])
    if left >= (A_LITTLE if worse else FELL if len(x) >= STEADY else BY_ROTE):
        return cannot_tell(f"the training loss hardly falls either ({pair[0]:.4g} to {pair[1]:.4g}).")
    return seen(f"{text}, {last:.4g} at the end, while training loss falls from {pair[0]:.4g} to {pair[1]:.4g}.", s.of(gap.Facts))


def _knew(curve: Series, train: Series, begin: float) -> bool:
    """Whether much had been learnt by the first evaluation: its loss lies below the first training loss, or training was far below
    the first evaluation (of a score: below where it began) by then."""
    step, first = int(curve.step[curve.usable][0]), float(curve.value[curve.usable][0])
    beside = held.level_at(train, step, LEAST)
    if curve.rises:
        return beside is not None and beside < BY_ROTE * begin
    together = int(train.step[train.usable][0]) == step and beside is not None and beside < BY_ROTE * first
    late = beside is not None and beside < EASY * begin  # what was better than the first evaluation may lie before it
    return first < A_LITTLE * begin or together or late


def eval_at_chance_throughout(s: Symptoms) -> Sign:
    """Every evaluation is as bad as guessing: a loss at or above ln(classes or tokens), an accuracy of 1 / classes, an AUC of 0.5, an R2 of 0."""
    told = [t for t in (_loss(s.run), _accuracy(s.run), _implied(s.run), _no_surer(s.run), *map(_score, scores(s.run))) if t is not None]
    for state in (ABSENT, SEEN):  # one score that learnt is enough: a loss may be bad for being too sure
        if found := [t for t in told if t.state == state]:
            return found[0]
    if told:
        return told[0]
    if len(held.evaluations(s.run)[1]) < LEAST and len(held.evaluations(s.run, "acc.eval")[1]) < LEAST:
        return cannot_tell("fewer than three evaluations were logged.")
    return cannot_tell("neither vocabulary nor classes nor the kind of score say what guessing gives.")


def score_at_chance_beside_loss(s: Symptoms) -> Sign:
    """A score of held-out data stays at what knowing nothing gives, while the loss of held-out data comes down by three tenths: what is learnt holds there, so it is
    what the answers are made of, or how they are scored, that is off."""
    return _at_chance_beside(held.evaluations(s.run)[1], [t for t in map(_score, scores(s.run)) if t is not None], "evaluation")


def training_score_at_chance(s: Symptoms) -> Sign:
    """The same of a score of training, or of data that nobody names, beside the training loss. It has to be logged often: it says little at first."""
    loss, often = series(s.run, "loss.train"), [c for c in scores(s.run, "train") if len(c.value) >= STEADY]
    x = loss.value[loss.usable] if loss is not None else np.zeros(0)
    return _at_chance_beside(x, [t for t in map(_score, often) if t is not None], "training")


def _at_chance_beside(x: Floats, told: list[Sign], what: str) -> Sign:
    if len(x) < LEAST or not told:
        return cannot_tell(f"no score was logged beside the {what} loss of which it is known what guessing gives.")
    text = f"the {what} loss goes from {x[0]:.4g} to {median(x[-LEAST:]):.4g}."
    stuck = next((t for t in told if t.state == SEEN), None)
    if stuck is None or not 0 < median(x[-LEAST:]) <= (1 - COMES_DOWN) * x[0]:
        return absent(f"{(stuck or told[0]).text} {text[0].upper()}{text[1:]}")
    return seen(f"{stuck.text.rstrip('.')}, while {text}", first=stuck.numbers.get("first"))


def _loss(run: Run) -> Sign | None:
    s, x, n = series(run, "loss.eval"), held.evaluations(run)[1], held.outcomes(run)
    chance = held.guessing(run, s) if s is not None and len(x) >= LEAST else None
    if chance is None or n is None:
        return None
    text = f"The lowest of {len(x)} evaluation losses is {x.min():.4g}; guessing among {n:.0f} costs {chance:.4g}."
    return seen(text) if x.min() >= (1 - CHANCE) * chance else absent(text)


def _accuracy(run: Run) -> Sign | None:
    n, x = held.outcomes(run), held.evaluations(run, "acc.eval")[1]
    if n is None or len(x) < LEAST:
        return None
    share = held.shares(x)
    last, most = median(share[-LEAST:]), 2 * GUESSED - 1 if len(share) >= STEADY else GUESSED  # the best of many scatters twice as far
    text = f"The highest of {len(share)} evaluation accuracies is {share.max():.3g}, the last are {last:.3g}; guessing among {n:.0f} gives {1 / n:.3g}."
    return seen(text) if last <= GUESSED / n and share.max() <= most / n else absent(text)


def _implied(run: Run) -> Sign | None:
    """A loss of ln n at its best, and 1/n of the answers right at any time, for one whole n: two coincidences that guessing makes, whatever config names.
    Half of the answers right at any time at more than ln 2 are no better than guessing between two either."""
    s, x, share = series(run, "loss.eval"), held.evaluations(run)[1], held.shares(held.evaluations(run, "acc.eval")[1])
    if s is None or held.outcomes(run) is not None or min(len(x), len(share)) < STEADY or x.min() <= 0 or not is_likelihood(s.tag):
        return None
    best = float(x.min())
    n = round(math.exp(min(best, 50.0)))
    fits = 2 <= n <= FEW_CLASSES and abs(best / math.log(n) - 1) <= EXACT
    coin = best > math.log(2) and max(abs(2 * share - 1)) <= A_COIN and abs(2 * float(share.mean()) - 1) <= 2 * EXACT
    if not (coin or (fits and max(abs(share * n - 1)) <= GUESSED - 1)):
        return None
    text = f"The lowest of {len(x)} evaluation losses is {best:.4g}, and {share.min():.3g} to {share.max():.3g} of the answers are right"
    return seen(f"{text}: {f'what guessing among {n} gives' if fits else 'no better than a coin'}.")


def _no_surer(run: Run) -> Sign | None:
    """A loss that gets no better than at first, and as many right answers at the end as exp(-loss): among equals guessing gives just that, and who knows
    anything is right more often than surprised (Jensen's inequality)."""
    s, x, share = series(run, "loss.eval"), held.evaluations(run)[1], held.shares(held.evaluations(run, "acc.eval")[1])
    if s is None or held.outcomes(run) is not None or min(len(x), len(share)) <= LEAST or x.min() <= 0 or not is_likelihood(s.tag):
        return None
    cost, right = median(x[-LEAST:]), median(share[-LEAST:])
    if cost < (1 - CHANCE) * math.log(2):  # less than between two
        return None
    if x.min() < (1 - LEARNED) * x[0] or not 1 / GUESSED <= right * math.exp(cost) <= GUESSED:  # fewer: the loss is of something else
        return None
    text = f"{s.tag} is {x[0]:.4g} at first and {x.min():.4g} at its best, and {right:.3g} of the answers are right at the end"
    return seen(f"{text}: guessing at such a cost gives {math.exp(-cost):.3g}.")


def _score(s: Score) -> Sign | None:
    """A score against what its definition gives to a guess; one of hits, where not a single one was made."""
    begin, end = int(s.step[0]), int(s.step[-1])
    if s.guess is None or not s.rises:
        if s.rises and len(s.value) >= HITLESS and not s.value.any():
            return seen(f"{s.tag} is 0 at each of {len(s.value)} evaluations.", first=begin, last=end)
        return None
    best, last = float(s.value.max()), median(s.value[-LEAST:])
    text = f"{s.tag} is {best:.3g} at the best of {len(s.value)} evaluations and {last:.3g} at the end; knowing nothing gives {s.guess:g}."
    room = CHANCE * (1 - s.guess)
    learnt = last > s.guess + LASTS * room or best > s.guess + BEST * room
    if not learnt and s.guess == 0 and best > LASTS * room:  # of returns or noisy labels a correlation of a tenth is all there is
        return cannot_tell(f"{text[:-1]}, and how much there is to know is not told.")
    return absent(text) if learnt else seen(text, first=begin, last=end)
