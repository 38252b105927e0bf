"""A discriminator's loss beside its own answers: whether they still belong together, and which of them moved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from forensics.run import settings
from forensics.run.metrics_in_words import moved_from, probability, together, worded
from forensics.run.robust import robust_sigma
from forensics.run.series import Floats, Ints, Series
from forensics.signs.other_objectives import DISCRIMINATOR, HALF, LOSS_ON_FAKE, LOSS_ON_REAL, ON_FAKE, ON_REAL
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {
    "discriminator_denies_its_scores": "loss.aux",
    "discriminator_worse_than_guessing": "loss.aux",
    "scores_on_real_step_alone": "loss.aux",
    "discriminator_steps_lengthen": "loss.aux",
}  # symptoms of their own, for which there is no detector
G_RATE, D_RATE = (
    f"lr_{a} {a}_lr {a}_learning_rate learning_rate_{a} lr_{b} {b}_lr {b}_learning_rate lr_{c} {c}_lr {c}_learning_rate"
    for a, b, c in (("g", "gen", "generator"), ("d", "disc", "discriminator"))
)
AFTER_UPDATE = r"^d g ?z( 2| after)$"

LEAST, FEW = 20, 10  # bound: values whose halves are ten each; values on either side of a step
LN2 = math.log(2)  # unit: nats that a coin pays for each half
NEAR = 0.25  # share: the mean of logarithms lies above the logarithm of a mean by less while a discriminator is unsure
CLIP, PRINTED = 1e-6, 1e-4  # of a probability: as logs print it with six digits, and with four
ABOVE = 1.5  # times what a coin costs, which a discriminator of sound training beats; label smoothing moves it by less
NOISES, STILL = 8.0, 3.0  # statistical: as in the divergence detector; what one value in 370 scatters by
LONGER = 10.0  # unit: an order of magnitude
NO_SCORES = "the discriminator's loss was not logged beside its scores on real and on generated samples."


@dataclass(frozen=True)
class _Players:
    """Loss and mean probabilities of a discriminator where all three were logged, and how they belong together in the first tenth."""

    loss: Series  # or the one on real samples
    name: str  # of the loss
    step: Ints
    cost: Floats  # the loss
    real: Floats
    fake: Floats
    tags: tuple[str, str]

    @property
    def told(self) -> Floats:
        """What cross-entropy costs at these probabilities, in nats, for both halves together."""
        return np.asarray(-np.log(np.clip(self.real, CLIP, 1)) - np.log(np.clip(1 - self.fake, CLIP, 1)), np.float64)

    @property
    def share(self) -> float | None:
        """1 where the loss is the sum of both halves, 0.5 where it is their mean, None where it is something else."""
        first = max(len(self.cost) // 10, FEW // 2)
        ratio = float(np.median(self.cost[:first] / np.maximum(self.told[:first], CLIP)))
        return next((k for k in (1.0, HALF) if abs(ratio / k - 1) <= NEAR), None)

    def place(self, s: Symptoms, i: int) -> str:
        return _at(s, self.loss, int(self.step[i]))


def _players(s: Symptoms) -> _Players | None:
    """From the scores and the loss, or from the losses on real and on generated samples where those begin at what a coin pays."""
    real, fake = probability(worded(s.run, ON_REAL)), probability(worded(s.run, ON_FAKE))
    loss = next(iter(worded(s.run, DISCRIMINATOR)), None)
    if real is not None and fake is not None and loss is not None:
        step, (x, on_real, on_fake) = together(loss, real, fake)
        return _Players(loss, loss.tag, step, x, on_real, on_fake, (real.tag, fake.tag)) if len(step) >= LEAST else None
    halves = [next(iter(worded(s.run, half)), None) for half in (LOSS_ON_REAL, LOSS_ON_FAKE)]
    if halves[0] is None or halves[1] is None or any(abs(moved_from(h)[0] / LN2 - 1) > NEAR for h in halves if h is not None):
        return None
    step, (a, b) = together(halves[0], halves[1])
    tags = f"exp(-{halves[0].tag})", f"1 - exp(-{halves[1].tag})"
    return (
        _Players(halves[0], f"{halves[0].tag} + {halves[1].tag}", step, a + b, np.exp(-a), 1 - np.exp(-b), tags)
        if len(step) >= LEAST
        else None
    )


def discriminator_denies_its_scores(s: Symptoms) -> Sign:
    """The discriminator's loss was what its scores cost, and from some step on it is less than half of that, while it takes generated samples
    for real and real ones for generated: it is right by its targets and wrong by ours. (A mean of logarithms costs at least the logarithm
    of a mean, so that no loss with these targets can lie below.)"""
    p = _players(s)
    if p is None:
        return cannot_tell(NO_SCORES)
    if p.share is None:
        return cannot_tell(f"{p.name} is at first not what {p.tags[0]} and {p.tags[1]} cost, so that its unit is unknown.")
    denied = (p.cost < HALF * p.share * p.told) & (p.real < HALF) & (p.fake > HALF)
    text = f"At the end {p.name} is {p.cost[-1]:.3g} with {p.tags[0]} {p.real[-1]:.3g} and {p.tags[1]} {p.fake[-1]:.3g}"
    others = np.flatnonzero(~denied)
    first = int(others[-1]) + 1 if len(others) else 0
    if len(denied) - first < FEW // 2 or first < FEW // 2:
        return absent(f"{text}: its loss and its scores belong together.")
    told = f"{text}, scores that cost {p.share * p.told[-1]:.3g}; it is so from step {p.step[first]} on, and they belonged together before"
    do = "Compare the targets of both halves of the discriminator's loss before and after that step."
    return seen(f"{told}.", where=p.place(s, first), first=int(p.step[first]), do=(do,))


def discriminator_worse_than_guessing(s: Symptoms) -> Sign:
    """Through the second half of the run the discriminator pays half as much again as a coin would, and takes generated samples for real."""
    p = _players(s)
    if p is None:
        return cannot_tell(NO_SCORES)
    if p.share is None:
        return cannot_tell(f"{p.name} is at first not what {p.tags[0]} and {p.tags[1]} cost, so that its unit is unknown.")
    coin, quarters = 2 * LN2 * p.share, np.array_split(np.arange(len(p.cost)), 4)
    third, last = (float(np.median(p.cost[rows])) for rows in quarters[2:])
    fooled = float(np.median(p.fake[len(p.fake) // 2 :]))
    text = f"{p.name} is {third:.3g} in the third quarter and {last:.3g} in the last, where a coin pays {coin:.3g}; {p.tags[1]} is {fooled:.3g}"
    if min(third, last) < ABOVE * coin or fooled < HALF:
        return absent(f"{text}.")
    first = int(np.flatnonzero(p.cost >= ABOVE * coin)[0])
    return seen(f"{text}.", where=p.place(s, first), first=int(p.step[first]))


def scores_on_real_step_alone(s: Symptoms) -> Sign:
    """From one logged value to the next the scores on real samples step by far more than they scatter, those on generated samples do not, and the
    discriminator tells them apart from there on: the real samples changed. Where one player wins, both scores move, and slowly."""
    p = _players(s)
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
        return seen(f"{text}.", where=p.place(s, i + 1), first=int(p.step[i + 1]))
    return absent(f"{p.tags[0]} never steps alone: its largest move is {np.abs(moves).max():.3g}, with {p.tags[1]} or within its scatter.")


def discriminator_steps_lengthen(s: Symptoms) -> Sign:
    """By one update of the discriminator the log-odds of its score on the same generated samples move ten times as far from some step on as they ever did before."""
    before, after = probability(worded(s.run, ON_FAKE)), probability(worded(s.run, AFTER_UPDATE))
    if before is None or after is None:
        return cannot_tell("scores on the same generated samples before and after an update of the discriminator were not logged.")
    step, one, two = np.intersect1d(before.step[before.usable], after.step[after.usable], return_indices=True)
    x = np.abs(
        _logits(before.value[before.usable][one]) - _logits(after.value[after.usable][two])
    )  # a sure one moves its probabilities little
    if len(x) < LEAST:
        return cannot_tell(f"fewer than {LEAST} pairs of scores before and after an update of the discriminator were logged.")
    ahead = np.median(sliding_window_view(x, FEW // 2), axis=1)[FEW : len(x) - FEW + 1]  # of the values from each split on
    highest = np.maximum.accumulate(x)[FEW - 1 : FEW - 1 + len(ahead)]
    at = FEW + int(np.argmax(ahead / np.maximum(highest, CLIP)))
    usual, largest, later = float(np.median(x[:at])), float(x[:at].max()), float(np.median(x[at:]))
    text = f"By an update of the discriminator the log-odds of {before.tag} move by {usual:.2g} before step {step[at]} ({largest:.2g} at most) and by {later:.2g} after"
    if ahead[at - FEW] <= largest or later < LONGER * usual:
        return absent(f"{text}.")
    return seen(f"{text}.", where=_at(s, before, int(step[at])), first=int(step[at]))


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


def _at(s: Symptoms, p: Series, step: int) -> str:
    return p.place(s.run, int(np.flatnonzero(p.usable & (p.step == step))[0]))


def _logits(x: Floats) -> Floats:
    p = np.clip(x, PRINTED, 1 - PRINTED)
    return np.asarray(np.log(p / (1 - p)), np.float64)
