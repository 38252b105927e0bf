"""A generator and a discriminator: which of them has won, how alike the samples are, and the rates that config gives the two."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import settings
from forensics.run.metrics_in_words import both_levels, moved_from, probability, stays_from, worded
from forensics.run.series import Series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

SUBJECT = "other_objectives"  # a part of it
EFFECTS = {"gan_trouble": "loss.part", "samples_alike": "samples"}  # symptoms of their own, for which there is no detector

SURE = 0.99  # a discriminator that is right with this probability has a loss below -2 ln(0.99) = 0.02
SMOOTHED, NEARLY_ALL = (
    0.85,
    0.9,
)  # paper: real samples are to get 0.9 (arXiv 1606.03498, section 3.4), and a bit less; unit: nine of ten values
TELLS = 0.95  # bound: of the samples; a generator that learns is taken for real more often than once in twenty
A_QUARTER = 0.25  # bound: of the run, in which a generator without a gradient learns nothing; the first epochs of sound training are less
GONE = 0.01  # of the first level
DISCRIMINATOR = (
    r"^(?=.*\b(d|disc|dis|discriminator|critic)\b)(?=.*\b(loss|losses|err|l)\b)(?!.*\b(g|gen|generator|real|fake|gp|penalty|reg)\b)"
    r"|^d [ab]$"  # CycleGAN's
)
GENERATOR = r"^(?=.*\b(g|gen|generator)\b)(?=.*\b(loss|losses|err|l)\b)(?!.*\b(d|disc|dis|discriminator|l ?1|l ?2|cycle|identity|idt|rec|recon|perceptual|vgg|feat\w*|gp|penalty)\b)"
ON_REAL, ON_FAKE = (
    r"^d x$|^d[ /]real$|^p real$|\b(out d real|d real (prob|mean|score))$|^real (prob|score)$",
    r"^d g ?z( ?1)?$|^d[ /]fake$|^p fake$|\b(out d fake|d fake (prob|mean|score))$|^fake (prob|score)$",
)
# of imitation, an expert's are the real ones (arXiv 1606.03476)
RIGHT_ON_REAL, RIGHT_ON_FAKE = (
    rf"^((d|dis\w*)[ /])?(acc(uracy)? (on )?{half}|{half} acc(uracy)?)$"
    for half in ("(real|expert)", "(fake|gen(erated|erator)?|policy|agent)")
)
LOSS_ON_REAL, LOSS_ON_FAKE = (
    rf"^(?=.*\b(loss|losses|err|l)\b)(?=.*\b(d|disc|dis|discriminator)\b)(?=.*\b{half}\b)(?!.*\b(g|gen|generator|gp|penalty|prob|acc)\b)"
    for half in ("real", "fake")
)
DIVERSITY = r"\b(diversity|div|pairwise (distance|dist|lpips)|distinct|(mode|class|sample)s? coverage)\b(?!.*\bloss)"
G_RATE, D_RATE = (
    f"lr_{a} {a}_lr {a}_learning_rate learning_rate_{a} lr_{b} {b}_lr {b}_learning_rate lr_{c} {c}_lr {c}_learning_rate"
    for a, b, c in (("g", "gen", "generator"), ("d", "disc", "discriminator"))
)
LONGER = 10.0  # unit: an order of magnitude
LN2, HALF = math.log(2), 0.5  # bound: a coin, which no discriminator beats by guessing
_LAST_NUMBER = lazy_re(r"\d+(?=\D*$)")


def gan_trouble(s: Symptoms) -> Sign:
    """The discriminator tells real from generated samples with 99 % certainty, at the end or for a quarter of the run, or its loss is what that gives (below 0.02);
    or it is right of 95 % of both, or gives them 0.95 and 0.05, or takes 95 % of the generated ones for real, in most of the run and at its end; or it costs more than guessing does while the generator's loss is what a discriminator gives that is fooled with as much certainty."""
    real, fake = probability(worded(s.run, ON_REAL)), probability(worded(s.run, ON_FAKE))
    if real is not None and fake is not None:
        (_, on_real), (_, on_fake) = both_levels(real), both_levels(fake)
        text = f"At the end {real.tag} is {on_real:.3g} and {fake.tag} is {on_fake:.3g}."
        if on_fake >= TELLS and (fake.value[fake.usable] >= TELLS).mean() >= HALF:
            return seen(
                f"{text[:-1]}: it takes nearly every generated sample for real.",
                first=int(fake.step[fake.usable & (fake.value >= TELLS)][0]),
            )
        of_fake = float((fake.value[fake.usable] <= 1 - SURE).mean())
        sure = min(float((real.value[real.usable] >= SURE).mean()), of_fake)
        if on_fake <= 1 - SURE and (on_real >= SURE or (on_real >= SMOOTHED and of_fake >= NEARLY_ALL)):
            return seen(text, first=stays_from(fake, 2 * (1 - SURE)))
        told = min(float((real.value[real.usable] >= TELLS).mean()), float((fake.value[fake.usable] <= 1 - TELLS).mean()))
        if told >= HALF and on_real >= TELLS and on_fake <= 1 - TELLS:
            how = f"both are beyond {TELLS:g} and {1 - TELLS:.2g} in {told:.0%} of the values, and at the end"
            return seen(f"{text[:-1]}: {how}.", first=int(fake.step[fake.usable & (fake.value <= 1 - TELLS)][0]))
        text = f"{text[:-1]}; both are beyond {SURE:g} and {1 - SURE:.2g} in {sure:.0%} of the values."
        return absent(text) if sure < A_QUARTER else seen(text, first=int(fake.step[fake.usable & (fake.value <= 1 - SURE)][0]))
    right = [probability(worded(s.run, half)) for half in (RIGHT_ON_REAL, RIGHT_ON_FAKE)]
    if right[0] is not None and right[1] is not None:
        return _tells_apart(right[0], right[1])
    halves = [next(iter(worded(s.run, half)), None) for half in (LOSS_ON_REAL, LOSS_ON_FAKE)]
    if halves[0] is not None and halves[1] is not None:
        return _won_on_both(halves[0], halves[1])
    losses = worded(s.run, DISCRIMINATOR)
    if not losses:
        return cannot_tell("the discriminator's loss was not logged.")
    if any(p.value[p.usable].min() < 0 for p in losses):
        return cannot_tell("the discriminator's loss is no likelihood: it goes below zero.")
    limit = -2 * math.log(SURE)
    for p in losses:
        first, last = moved_from(p)
        if last > 2 * LN2 and (fooled := _fooled(s.run, p)) is not None:
            beyond = f"above 2 ln 2, what guessing costs; that of the generator ({fooled.tag}) ends at {moved_from(fooled)[1]:.3g}"
            return seen(
                f"The discriminator's loss ({p.tag}) goes from {first:.3g} to {last:.3g}, {beyond}.", first=stays_from(fooled, limit)
            )
    first, last = moved_from(losses[0])
    text = f"The discriminator's loss ({losses[0].tag}) goes from {first:.3g} to {last:.3g}."
    return seen(text, first=stays_from(losses[0], limit)) if last < limit else absent(text)


def _fooled(run: Run, loss: Series) -> Series | None:
    """The loss of the generator beside this discriminator, where it was never below zero and ends below what a discriminator gives that is wrong with certainty;
    from the start on it is so where it is nothing at all."""
    g = next((g for g in worded(run, GENERATOR) if _LAST_NUMBER.findall(g.tag) == _LAST_NUMBER.findall(loss.tag)), None)
    if g is None or g.value[g.usable].min() < 0:
        return None
    first, last = moved_from(g)
    return g if last < -math.log(SURE) < first or first == last == 0 else None


def _tells_apart(real: Series, fake: Series) -> Sign:
    """What the shares of real and of generated samples say of which the discriminator is right."""
    ends, often = [both_levels(p)[1] for p in (real, fake)], min(float((p.value[p.usable] >= TELLS).mean()) for p in (real, fake))
    text = f"At the end {real.tag} is {ends[0]:.3g} and {fake.tag} is {ends[1]:.3g}; both are {TELLS:.0%} and more in {often:.0%} of the values."
    first = int(fake.step[fake.usable][np.argmax(fake.value[fake.usable] >= TELLS)])
    return seen(text, first=first) if min(ends) >= TELLS and often >= HALF else absent(text)


def _won_on_both(real: Series, fake: Series) -> Sign:
    """What the losses on real and on generated samples say, each of which is half of the discriminator's."""
    ends = [moved_from(half) for half in (real, fake)]
    text = "; ".join(f"{p.tag} goes from {first:.3g} to {last:.3g}" for p, (first, last) in zip((real, fake), ends, strict=True)) + "."
    if min(float(p.value[p.usable].min()) for p in (real, fake)) < 0:
        return cannot_tell("the discriminator's losses are no likelihoods: they go below zero.")
    limit = -math.log(SURE)
    fell = all(last < limit < first for first, last in ends)
    return seen(text, first=stays_from(real, limit)) if fell else absent(text)


def samples_alike(s: Symptoms) -> Sign:
    """A logged measure of how different samples are from each other fell to below 1 % of its first level."""
    found = [p for p in worded(s.run, DIVERSITY) if moved_from(p)[0] > 0]
    if not found:
        return cannot_tell("no measure of the diversity of samples was logged.")
    p = min(found, key=lambda p: moved_from(p)[1] / moved_from(p)[0])
    first, last = moved_from(p)
    text = f"{p.tag} goes from {first:.3g} to {last:.3g}."
    return seen(text, first=stays_from(p, HALF * first)) if last < GONE * first else absent(text)


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
