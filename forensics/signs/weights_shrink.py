"""Weights that shrink while they are trained, which a gradient does not make them: the decay does."""

from __future__ import annotations

import numpy as np

from forensics.detectors.plateau import ROOM
from forensics.run import settings, weight_norms
from forensics.run.robust import median
from forensics.run.series import Floats, parts
from forensics.run.usable_values import first_level, lacking, last_level, usable
from forensics.run.usual_rate import is_set
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re

SUBJECT = "parameters"  # a part of it
EFFECTS = {"weights_shrink": "param.norm"}  # a symptom of its own, for which there is no detector

# Of the first norm: weights move away from where they began, further the longer they train (arXiv 1705.08741, section 4), which lengthens them; a
# decay of which rate x decay x steps is 0.4 leaves two thirds of what the gradient does not build again
SHRUNK = 2 / 3
LEARNT = 0.1  # unit: of the first loss; a model that has learnt its task may well do with smaller weights (grokking: arXiv 2201.02177)
FOR_A_QUARTER = 5  # bound: values of the loss in a quarter of the run; a median that two odd ones do not move
_MEANT = lazy_re(r"(?i)(^|[./_])(prun\w*|spars\w*|l0|lasso)([./_]|$)")


def weights_shrink(s: Symptoms) -> Sign:
    """The norm of all weights ends below two thirds of where it began, while the loss falls no further in the second half of the run and what was to be
    learnt is not: more than a tenth of the first loss is left."""
    total = weight_norms.whole(s.run)
    if total is None or len(total[1]) < weight_norms.LEAST or not np.isfinite(total[1]).all() or total[1][0] <= 0:
        return cannot_tell("the norm of all weights was not logged, or it is not finite.")
    if weight_norms.frozen_on_purpose(s.run) or any(is_set(k) and _MEANT.search(k.key) for k in settings.every(s.run)):
        return does_not_arise("config freezes or prunes parts of the model.")
    (step, norm), (_, loss) = total, usable(s.run, "loss.train")
    first, last = float(norm[0]), last_level(norm)
    text = f"The norm of the weights goes from {first:.4g} to {last:.4g}"
    if last >= SHRUNK * first:
        return absent(f"{text}.")
    if why := lacking(s.run, 4 * FOR_A_QUARTER, "loss.train"):
        return cannot_tell(why)
    began, middle, end = first_level(loss), *_later(loss)
    told = f"{middle:.4g} in the second quarter of the run and {end:.4g} in the last"
    if end < (1 - ROOM) * middle or end < LEARNT * began:
        return absent(f"{text}, and the model learns: the loss is {began:.4g} at first, {told}.")
    logged = [*parts(s.run, "param.norm"), *parts(s.run, "param.norm_layer")][0]
    return seen(f"{text} while the loss falls no further: {told}.", where=logged.place(s.run, 0), first=int(step[0]), last=int(step[-1]))


def _later(loss: Floats) -> tuple[float, float]:
    """The levels of the loss in the second quarter of the run and in the last."""
    quarter = len(loss) // 4
    return median(loss[quarter : 2 * quarter]), median(loss[-quarter:])
