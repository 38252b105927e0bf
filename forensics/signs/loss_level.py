"""Where the loss begins and how far it falls: stuck, at chance, at zero."""

from __future__ import annotations

import numpy as np

from forensics.case import Finding
from forensics.detectors import initial_loss, peak_rate, plateau, zero_loss
from forensics.run import first_evaluations, initial_weights
from forensics.run.evaluations import guessing
from forensics.run.levels import LEVEL
from forensics.run.series import series
from forensics.run.usable_values import begins_late, first_level, lacking, last_level, levels, usable
from forensics.signs import loss_beside_hits
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

SUBJECT = "loss_shape"  # the other half of it

EFFECTS = {"likelihood_below_zero": "loss.train"}  # a symptom of its own, for which there is no detector
_DISCRETE = lazy_re(r"\b(ctc|ce|xent|bce|cross entropy|cross_entropy|logloss|log loss|softmax)\b")
OF_INPUTS = 1e5  # bound: weights of std 1 multiply by the root of half the width; six plain layers of width 64 make 3e4 of 1
# bound: what half precision (eps 1e-3) makes of a loss of ten that is added up to zero; three values make no slip of the log
ROUNDED, BELOW = 0.01, 3


def _stuck(s: Symptoms) -> list[Finding[plateau.Facts]]:
    return s.of(plateau.Facts, severity=["warning"])


def _moves(s: Symptoms) -> Sign:
    """There is no loss that stands still, of which more could be told."""
    why = lacking(s.run, plateau.LEAST_VALUES) or begins_late(s.run)
    if not why and s.of(plateau.Facts):
        return does_not_arise("the loss begins far below what guessing costs: a trained model that stands still.")
    return cannot_tell(why) if why else does_not_arise("the loss does not stand still, so there is no level that it stands at.")


def loss_stuck(s: Symptoms) -> Sign:
    """The loss falls by less than 5 % in the whole run."""
    if found := _stuck(s):
        f = found[0]
        return seen(f"{f.title}.", found, first=f.first_step, last=f.last_step)
    if why := lacking(s.run, plateau.LEAST_VALUES) or begins_late(s.run):
        return cannot_tell(why)
    _, x = usable(s.run)
    first, last = first_level(x), last_level(x)
    if first == 0:
        return does_not_arise("the loss begins at zero, of which no share can be taken.")
    if found := s.of(plateau.Facts):
        return absent(f"{found[0].title}; but it begins far below what guessing costs: a trained model has little left to learn.", found)
    return absent(f"The loss moves: {first:.4g} at the beginning, {last:.4g} at the end.")


def loss_stuck_at_chance(s: Symptoms) -> Sign:
    """The loss stands still at what guessing gives: ln of the number of classes or tokens (Karpathy, a recipe for training)."""
    found = _stuck(s) or [f for f in s.of(plateau.Facts) if f.facts.chance is not None and not f.facts.at_chance]
    if not found:
        return _moves(s)
    f = found[0]
    if f.facts.chance is None:
        return cannot_tell("config names neither vocabulary nor classes, so what guessing costs is not known.")
    if f.facts.at_chance:
        text = f"The loss stands at {f.facts.last:.4g}, which is what guessing gives ({f.facts.chance:.4g})."
        return seen(text, found, first=f.first_step, last=f.last_step)
    return absent(f"The loss stands at {f.facts.last:.4g}, and guessing gives {f.facts.chance:.4g}.", found)


def loss_falls_slowly(s: Symptoms) -> Sign:
    """The loss hardly moves, but each fifth of the run lies below the one before: it creeps (by chance once in 120 runs)."""
    found = _stuck(s)
    if not found:
        return _moves(s)
    step, x = usable(s.run)
    fifths = levels(x, 5)
    told = ", ".join(f"{v:.5g}" for v in fifths)
    if (np.diff(fifths) < 0).all():
        return seen(f"The loss creeps down from fifth to fifth of the run: {told}.", found, first=int(step[0]), last=int(step[-1]))
    return absent(f"The loss does not creep down: {told} in the fifths of the run.", found)


def loss_fell_little(s: Symptoms) -> Sign:
    """The loss falls by less than half in the whole run."""
    if why := lacking(s.run, plateau.LEAST_VALUES) or begins_late(s.run):
        return cannot_tell(why)
    step, x = usable(s.run)
    first, last = first_level(x), last_level(x)
    if first <= 0:
        return does_not_arise(f"the loss begins at {first:.3g}, of which no share can be taken.")
    if (low := loss_beside_hits.low_for_its_hits(s.run)) is not None:
        return absent(f"The loss moves from {first:.4g} to {last:.4g}, and {low}.")
    if last > peak_rate.FELL * first:
        fall = "falls" if last < first else "moves"
        return seen(f"The loss only {fall} from {first:.4g} to {last:.4g} in the whole run.", first=int(step[0]), last=int(step[-1]))
    return absent(f"The loss falls from {first:.4g} to {last:.4g}.")


def loss_learns_late(s: Symptoms) -> Sign:
    """The loss stands at its first level for a fifth of the run or longer, and falls only then."""
    if found := s.of(plateau.LearnsLate):
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    if why := lacking(s.run, plateau.TENTHS * LEVEL) or begins_late(s.run):
        return cannot_tell(why)
    return absent("The loss does not stand at its beginning for a fifth of the run and fall then.")


def loss_starts_above_chance(s: Symptoms) -> Sign:
    """The first loss lies far above what guessing costs (Karpathy: verify the loss at init)."""
    if found := s.of(initial_loss.Facts):
        f = found[0]
        return seen(f"{f.title}.", found, first=f.first_step, last=f.facts.falls_by)
    if why := lacking(s.run, plateau.LEAST_VALUES, "loss.train") or begins_late(s.run):
        return cannot_tell(why)
    train = series(s.run, "loss.train")
    first, guess = first_level(usable(s.run, "loss.train")[1]), guessing(s.run, train) if train is not None else None
    if guess is None:
        return cannot_tell("config names neither vocabulary nor classes of this loss, so what guessing costs is not known.")
    if known := first_evaluations.knows_another(s.run, first, int(usable(s.run, "loss.train")[0][0]), guess):
        return does_not_arise(f"{known}.")
    if said := initial_weights.of_library(s.run, first, guess):
        return does_not_arise(f"{said}.")
    return absent(f"The first loss is {first:.4g}; guessing costs {guess:.4g}.")


def loss_starts_beyond_any_weights(s: Symptoms) -> Sign:
    """The first loss, of nats, is above a hundred thousand: weights alone make no such logits of inputs near one."""
    found = s.of(initial_loss.Facts)
    if not found:
        return does_not_arise("the first loss does not lie far above what guessing costs.")
    first = found[0].facts.first
    if first > OF_INPUTS:
        text = f"The first loss of {first:.4g} takes logits that large: weights alone do not make them of inputs near one."
        return seen(text, found, first=found[0].first_step, last=found[0].facts.falls_by)
    return absent(f"The first loss of {first:.4g} is no more than weights can make of inputs near one.", found)


def likelihood_below_zero(s: Symptoms) -> Sign:
    """A training loss whose name says that it is the cross entropy of discrete targets, or CTC, comes below zero, as no probability can have it:
    targets lie outside of what it allows (the blank of CTC among them, a binary target of 255). The likelihood of numbers may."""
    loss = series(s.run, "loss.train")
    if loss is None or not _DISCRETE.search(words(loss.tag)):
        return cannot_tell("no loss was logged whose name says that it is a cross entropy of discrete targets.")
    if why := lacking(s.run, plateau.LEAST_VALUES, "loss.train"):
        return cannot_tell(why)
    step, x = usable(s.run, "loss.train")
    under = np.flatnonzero(x < -ROUNDED)
    text = f"{loss.tag} is {x.min():.3g} at its lowest and {last_level(x):.3g} at the end; of {len(x)} values {len(under)} lie below zero"
    if len(under) < BELOW:
        return absent(f"{text}.")
    return seen(f"{text}, the first at step {step[under[0]]}.", first=int(step[under[0]]), last=int(step[-1]))


def loss_zero_throughout(s: Symptoms) -> Sign:
    """The training loss is exactly zero from its first value on."""
    return _zero(s, from_start=True)


def loss_zero_from_step(s: Symptoms) -> Sign:
    """The training loss becomes exactly zero from one value to the next."""
    return _zero(s, from_start=False)


def _zero(s: Symptoms, *, from_start: bool) -> Sign:
    found = s.of(zero_loss.Facts)
    if mine := [f for f in found if f.facts.from_start == from_start]:
        return seen(f"{mine[0].title}.", mine, first=mine[0].first_step, last=mine[0].last_step)
    if found:
        return absent(f"{found[0].title}.", found)
    if why := lacking(s.run, zero_loss.IN_A_ROW, "loss.train"):
        return cannot_tell(why)
    _, x = usable(s.run, "loss.train")
    return absent(f"{int((x == 0).sum())} of {len(x)} values of the training loss are zero; the lowest is {x.min():.3g}.")
