"""The lowest value that a cross entropy of probabilities can take, beside a loss that stands there."""

from __future__ import annotations

import math

import numpy as np

from forensics.run.usable_values import usable
from forensics.signs.loss_beside_hits import class_count
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "loss_beside_hits"  # another half of it
EFFECTS = {"loss_stands_on_squashed_floor": "loss.train"}  # a symptom of its own, for which there is no detector

LEAST = 5  # bound: values of a quarter of a log, whose median two odd ones do not move
ABOVE, BELOW = 0.04, 0.01  # nats: what wrong and unsure answers add at the end; the digits of a log
BELOW_IT = 0.5  # unit: half of the floor, which no cross entropy of probabilities comes to
FEWEST = 3  # classes: of two the floor is 0.313, where many losses end


def loss_stands_on_squashed_floor(s: Symptoms) -> Sign:
    """The training loss comes down to ln(e + classes - 1) - 1, the least that a cross entropy of numbers between 0 and 1 can be, never goes below, and
    levels off there, while the evaluation loss, of the same classes, ends at less than half of it."""
    (_, train), (_, held) = usable(s.run, "loss.train"), usable(s.run, "loss.eval")
    if min(len(train), len(held)) < LEAST:
        return cannot_tell(f"training and evaluation loss were not both logged {LEAST} times.")
    n = class_count(s.run)
    if n is None or n < FEWEST:
        return cannot_tell(
            "the number of classes is not known: config does not say it, and the loss does not begin at ln of a whole number."
        )
    floor = math.log(math.e + n - 1) - 1
    last, other = float(np.median(train[-max(len(train) // 4, LEAST) :])), float(np.median(held[-LEAST:]))
    text = f"The training loss ends at {last:.4g}, at {train.min():.4g} at its lowest, and the evaluation loss at {other:.4g}"
    text += f"; a cross entropy of numbers between 0 and 1 over {n:.0f} classes is {floor:.4g} at least."
    on_it = train.min() >= floor - BELOW and last <= floor + ABOVE
    return seen(text) if on_it and other < BELOW_IT * floor else absent(text)
