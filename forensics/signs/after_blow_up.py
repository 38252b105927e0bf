"""What is left of a model after a blow-up: whether the loss is back where an untrained model begins, or beyond any guess."""

from __future__ import annotations

import numpy as np

from forensics.detectors import initial_loss, plateau
from forensics.run.evaluations import improves_after
from forensics.run.levels import ROOM
from forensics.run.series import names, series
from forensics.run.trained_before import knew_at_first
from forensics.run.usable_values import begins_late, first_level, lacking, last_level, levels, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "loss_shape"  # the third part of it
EFFECTS = {"climbed_before_it_stood": "loss.train"}  # a symptom of its own, for which there is no detector
TENTHS, LEAST = 10, 30  # unit; bound: values whose tenths are three each
# unit: half and twice; bound: evaluations after the first updates of batch norm are off by less. measured: of 917 runs six climb so, all faulty
HALF, TWICE, FAR = 0.5, 2.0, 5.0
BACK = 0.9  # of the first level: less than a tenth of it is left of what was learnt


def learning_undone(s: Symptoms) -> Sign:
    """The loss had fallen well below its first level on the way, and ends there again: it is no loss that never learned."""
    if why := lacking(s.run, LEAST) or begins_late(s.run):
        return cannot_tell(why)
    step, x = usable(s.run)
    first, last = first_level(x), last_level(x)
    tenths = levels(x, TENTHS)
    lowest = int(np.argmin(tenths))
    text = f"The loss is {first:.4g} at first, {tenths[lowest]:.4g} in tenth {lowest + 1} of the run, and {last:.4g} at the end."
    undone = first > 0 and last >= BACK * first and tenths[lowest] < (1 - ROOM) * min(first, last)
    return seen(text, first=int(step[lowest * len(x) // TENTHS]), last=int(step[-1])) if undone else absent(text)


def climbed_before_it_stood(s: Symptoms) -> Sign:
    """The loss ends at half of its first value or above, and was twice as high as that in the first tenth of the run (an evaluation five times):
    the first updates threw the weights far off. What hardly moves, or learns what is in no input, never climbs."""
    if why := lacking(s.run, plateau.LEAST_VALUES, "loss.train") or begins_late(s.run):
        return cannot_tell(why)
    if any(name.startswith("rl.") for name in names(s.run)):
        return does_not_arise("a policy is trained, whose loss need not fall.")
    if knew_at_first(s.run):
        return does_not_arise("the first accuracy is nearly as high as any later one: a trained model goes on.")
    step, x = usable(s.run, "loss.train")
    first, last = float(x[0]), last_level(x)
    if not 0 < HALF * first <= last <= TWICE * first:
        return absent(f"The loss goes from {first:.4g} to {last:.4g}.")
    at = int(np.argmax(x))
    text = f"The loss begins at {first:.4g}, is {x[at]:.4g} at step {step[at]}, and {last:.4g} at the end."
    held_out = usable(s.run, "loss.eval")[1]
    early = len(x) // TENTHS
    again = x[early + 1 :].max() - first > HALF * (x[at] - first)  # and again: the order of the data
    if against := improves_after(s.run, int(step[0])):
        return absent(f"{text[:-1]}, but {against}.")
    if x[at] >= TWICE * first and at <= early and not again:
        return seen(text, first=int(step[0]), last=int(step[at]))
    if len(held_out) and held_out[: max(len(held_out) // TENTHS, 1)].max() >= FAR * first and last >= BACK * first:
        return seen(f"{text} An evaluation gives {held_out.max():.4g}.", first=int(step[0]), last=int(step[-1]))
    return absent(text)


def loss_above_any_guess(s: Symptoms) -> Sign:
    """Through the whole run the loss of a token lies above what guessing among the largest vocabulary costs: the model is confidently wrong."""
    loss = series(s.run, "loss.train")
    if loss is None or (why := lacking(s.run, plateau.LEAST_VALUES, "loss.train")):
        return cannot_tell(why if loss is not None else "the training loss was not logged.")
    if not initial_loss.of_a_token(s.run, loss):
        return cannot_tell("nothing says that the loss is that of a token: neither its unit nor a perplexity was logged.")
    step, x = usable(s.run, "loss.train")
    lowest = float(np.sort(x)[: max(len(x) // TENTHS, 1)].max())
    text = (
        f"The lowest tenth of the training loss reaches {lowest:.4g}; guessing among any vocabulary costs {initial_loss.LARGEST} at most."
    )
    return seen(text, first=int(step[0]), last=int(step[-1])) if lowest > initial_loss.LARGEST else absent(text)
