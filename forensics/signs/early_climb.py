"""A loss that climbs away from what guessing costs instead of coming down to it: updates do it, not the start."""

from __future__ import annotations

import numpy as np

from forensics.detectors import initial_loss, plateau
from forensics.run import boosting
from forensics.run.evaluations import guessing, improves_after
from forensics.run.levels import LEVEL
from forensics.run.series import series
from forensics.run.usable_values import begins_late, lacking, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "loss_shape"  # the fourth part of it
EFFECTS = {"loss_climbs_above_any_guess": "loss.train"}  # a symptom of its own, for which there is no detector
TWICE = 2.0  # unit: of the first level; a start that is too high is left downwards


def loss_climbs_above_any_guess(s: Symptoms) -> Sign:
    """The cross entropy of a token or class lies above what guessing costs and climbs on from its first level, to twice of it for three logged
    values or more: weights that began too large, or inputs that are, are unlearnt from the first update on."""
    loss = series(s.run, "loss.train")
    if loss is None or (why := lacking(s.run, plateau.LEAST_VALUES, "loss.train") or begins_late(s.run)):
        return cannot_tell(why if loss is not None else "the training loss was not logged.")
    if boosting.trees(s.run):
        return does_not_arise("trees are added up; no weights are updated.")
    chance = guessing(s.run, loss)
    if chance is None and not initial_loss.is_mean(s.run, loss):
        return cannot_tell("neither config nor the log says what guessing costs in this loss.")
    step, x = usable(s.run, "loss.train")
    first = float(min(x[0], np.median(x[:LEVEL])))  # the first batch alone has seen no update
    lowest = np.lib.stride_tricks.sliding_window_view(x, LEVEL).min(axis=1)  # what three values in a row reach
    at = int(np.argmax(lowest))
    text = f"The loss begins at {first:.4g}, and from step {step[at]} on three values in a row reach {lowest[at]:.4g}"
    if lowest[at] > max(TWICE * first, initial_loss.ABOVE * chance if chance else initial_loss.LARGEST):
        if against := improves_after(s.run, int(step[0])):
            return absent(f"{text}, but {against}: the data become harder.")
        return seen(f"{text}.", first=int(step[0]), last=int(step[at]))
    return absent(f"{text}.")
