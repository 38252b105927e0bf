"""Two players beside each other: which of a discriminator's scores moved, and how far apart the rates are that config gives the players."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import moved_from, probability, together, worded
from forensics.run.robust import robust_sigma
from forensics.run.series import Floats, Ints, Series
from forensics.signs.other_objectives import LOSS_ON_FAKE, LOSS_ON_REAL, ON_FAKE, ON_REAL
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {"scores_on_real_step_alone": "loss.aux"}  # a symptom of its own, for which there is no detector
G_RATE, D_RATE = (
    f"lr_{a} {a}_lr {a}_learning_rate learning_rate_{a} lr_{b} {b}_lr {b}_learning_rate lr_{c} {c}_lr {c}_learning_rate"
    for a, b, c in (("g", "gen", "generator"), ("d", "disc", "discriminator"))
)

LEAST, FEW = 20, 10  # bound: values whose halves are ten each; values on either side of a step
LN2 = math.log(2)  # unit: nats that a coin pays for each half
NEAR = 0.25  # share: the mean of logarithms lies above the logarithm of a mean by less while a discriminator is unsure
NOISES, STILL = 8.0, 3.0  # statistical: as in the divergence detector; what one value in 370 scatters by
LONGER = 10.0  # unit: an order of magnitude
NO_SCORES = "the discriminator's scores on real and on generated samples were not logged."


class _Scores(NamedTuple):
    """Mean probabilities that a discriminator gives to real and to generated samples, where both were logged."""

    of: Series
    step: Ints
    real: Floats
    fake: Floats
    tags: tuple[str, str]


def _scores(s: Symptoms) -> _Scores | None:
    """As they were logged, or from the losses on real and on generated samples where those begin at what a coin pays."""
    real, fake = probability(worded(s.run, ON_REAL)), probability(worded(s.run, ON_FAKE))
    if real is not None and fake is not None:
        step, (a, b) = together(real, fake)
        return _Scores(real, step, a, b, (real.tag, fake.tag)) if len(step) >= LEAST else None
    real, fake = (next(iter(worded(s.run, half)), None) for half in (LOSS_ON_REAL, LOSS_ON_FAKE))
    if real is None or fake is None or any(abs(moved_from(h)[0] / LN2 - 1) > NEAR for h in (real, fake)):
        return None
    step, (a, b) = together(real, fake)
    tags = f"exp(-{real.tag})", f"1 - exp(-{fake.tag})"
    return _Scores(real, step, np.exp(-a), 1 - np.exp(-b), tags) if len(step) >= LEAST else None


def scores_on_real_step_alone(s: Symptoms) -> Sign:
    """From one logged value to the next the scores on real samples step by far more than they scatter, those on generated samples do not, and the
    discriminator tells them apart from there on: the real samples changed. Where one player wins, both scores move, and slowly."""
    p = _scores(s)
    if p is None:
        return cannot_tell(NO_SCORES)
    moves, others = np.diff(p.real), np.diff(p.fake)
    records = np.flatnonzero(np.abs(moves[1:]) > np.maximum.accumulate(np.abs(moves[:-1]))) + 1  # the largest moves so far
    for i in records[(records >= FEW) & (records < len(moves) - FEW)]:
        scatter, beside = robust_sigma(moves[:i]), robust_sigma(others[:i])
        if scatter == 0 or abs(moves[i]) <= NOISES * scatter or abs(others[i]) > STILL * beside:
            continue
        before, after = (p.real - p.fake)[: i + 1], (p.real - p.fake)[i + 2 :]
        if float(np.percentile(after, 10)) <= float(np.percentile(before, 90)):
            continue  # a batch that was odd, or scores that went their way again
        text = (
            f"At step {p.step[i + 1]} {p.tags[0]} goes from {p.real[i]:.3g} to {p.real[i + 1]:.3g}, {abs(moves[i]) / scatter:.0f} times its scatter, and "
            f"{p.tags[1]} from {p.fake[i]:.3g} to {p.fake[i + 1]:.3g}; their difference is {np.median(before):.2g} before and {np.median(after):.2g} after"
        )
        return seen(
            f"{text}.",
            where=p.of.place(s.run, int(np.flatnonzero(p.of.usable & (p.of.step == p.step[i + 1]))[0])),
            first=int(p.step[i + 1]),
        )
    return absent(f"{p.tags[0]} never steps alone: its largest move is {np.abs(moves).max():.3g}, with {p.tags[1]} or within its scatter.")


def player_rates_apart(s: Symptoms) -> Sign:
    """Config gives one of the players ten times the learning rate of the other, or more (two rates that differ by four are usual, arXiv 1706.08500)."""
    found = [next(iter(settings.named(s.run, names)), None) for names in (G_RATE, D_RATE)]
    rates = [settings.as_number(f.value) if f is not None else None for f in found]
    if found[0] is None or found[1] is None or not rates[0] or not rates[1]:
        return cannot_tell("config does not give each of two players a learning rate.")
    apart = max(rates[0] / rates[1], rates[1] / rates[0])
    text = f"Config has {found[0].key} = {rates[0]:g} and {found[1].key} = {rates[1]:g}"
    if apart < LONGER:
        return absent(f"{text}.", where=found[0].where)
    return seen(f"{text}, {apart:.3g} times apart.", where=found[0].where)
