"""A model of which few parameters train, and which learns little by them."""

from __future__ import annotations

import numpy as np

from forensics.detectors import peak_rate
from forensics.run import endings, weight_norms
from forensics.run.evaluations import shares
from forensics.run.series import series
from forensics.run.usable_values import first_level, lacking, last_level, usable
from forensics.signs.loss_shape import loss_still_falling
from forensics.signs.parameters import few_parameters_train
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

SUBJECT = "parameters"  # the other half of it
EFFECTS = {"little_learnt_by_few": "loss.train"}  # a symptom of its own, for which there is no detector
GUESSES = 1.5  # times the probability that the loss gives the right answer; bound: one who guesses is right as often, who knows more often


def little_learnt_by_few(s: Symptoms) -> Sign:
    """The log says that less than a twentieth of the parameters train, the model began by guessing, and in the whole run its loss falls by less
    than half and is still on its way at the end: a body that learnt before lets a new head learn at once, and adapters are told by config."""
    few = few_parameters_train(s)
    if few.state != SEEN:
        return (
            cannot_tell(few.text[0].lower() + few.text[1:]) if few.missing else does_not_arise("more than a few of the parameters train.")
        )
    if weight_norms.frozen_on_purpose(s.run) or any("trainable%" in e["text"] for e in endings.events(s.run, "start")):  # as peft prints it
        return does_not_arise("parts of the model are frozen on purpose: config freezes them, or adapters are trained on it.")
    guesses = _begins_by_guessing(s.run)
    if guesses is None:
        return cannot_tell("no accuracy was logged beside the training loss, so that nothing says what the model knew at first.")
    if why := lacking(s.run, 25, "loss.train"):
        return cannot_tell(why)
    step, x = usable(s.run, "loss.train")
    first, last = first_level(x), last_level(x)
    text = f"{few.text[:-1]}, and the loss goes from {first:.4g} to {last:.4g}"
    if not guesses:
        return does_not_arise(f"{text[0].lower()}{text[1:]}; but the model knew something at first.")
    if last <= peak_rate.FELL * first or loss_still_falling(s).state != SEEN:
        return absent(f"{text}.", where=few.where)
    return seen(f"{text}, still falling.", where=few.where, first=int(step[0]), last=int(step[-1]))


def _begins_by_guessing(run: Run) -> bool | None:
    """Whether the first accuracy is no more than what the loss beside it makes the usual answer probable; None where one was not logged."""
    hits, loss = series(run, "acc.train"), series(run, "loss.train")
    if hits is None or loss is None or not hits.usable.any() or not loss.usable.any():
        return None
    accuracy = float(shares(hits.value[hits.usable])[0])
    return accuracy <= GUESSES * float(np.exp(-loss.value[loss.usable][0]))
