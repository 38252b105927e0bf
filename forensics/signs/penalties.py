"""A penalty on the weights that is added to the loss: as config sets it, and as the loss shows it beside the error that it holds."""

from __future__ import annotations

import numpy as np

from forensics.run import boosting, settings
from forensics.run.loss_terms import kl_term
from forensics.run.metrics_in_words import worded
from forensics.run.series import Series, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

SUBJECT = "configured"  # a part of it

L2 = "l2 kernel_l2 l2_reg reg_l2 weight_l2 l2_penalty l2_lambda l2_weight l2_coef lambda_l2 l2_regularization"
L1 = "l1 kernel_l1 l1_reg reg_l1 weight_l1 l1_penalty l1_regularization"  # lambda_L1 weighs the error of pix2pix
USUAL = 0.01  # what Keras gives its penalties unless told otherwise (tf.keras.regularizers), the largest default of any framework
MOST = 10.0  # bound: a number of the same name beyond it weighs an error
HALF = 0.5  # unit: the penalty is the larger part of the loss
_ERROR = r"^(train |epoch )*(mse|rmse|bce|ce|nll|cross entropy|mean squared error|root mean squared error)$"
_ROOT = lazy_re(r"\b(rmse|root)\b")


def penalty_strong(s: Symptoms) -> Sign:
    """Config weighs the squares or the sizes of the weights with more than 0.01 in the loss."""
    if boosting.trees(s.run):
        return does_not_arise("trees are added up; there are no weights.")
    named = [(t, n, "squares") for t in settings.named(s.run, L2) if (n := settings.as_number(t.value))]
    named += [(t, n, "sizes") for t in settings.named(s.run, L1) if (n := settings.as_number(t.value))]
    named = [x for x in named if x[1] <= MOST]
    if not named:
        return cannot_tell("config names no penalty on the weights.")
    told, weight, what = max(named, key=lambda x: x[1])
    text = f"Config adds the {what} of the weights to the loss {weight:g} times over ({told.key})"
    return (seen if weight > USUAL else absent)(f"{text}; no framework's default is above {USUAL:g}.", where=told.where)


def penalty_dominates_loss(s: Symptoms) -> Sign:
    """The error that was logged beside the training loss is less than half of it in the first row of both: the rest is added to it."""
    loss = series(s.run, "loss.train")
    if loss is None or kl_term(s.run) is not None:
        return cannot_tell("no training loss was logged." if loss is None else "the loss is an error and a KL term.")
    for p in worded(s.run, _ERROR):
        if (told := _beside(loss, p)) is None:
            continue
        whole, error = told
        text = f"Training loss is {whole:.4g} where {p.tag} is {p.value[p.usable][0]:.4g}"
        if _ROOT.search(words(p.tag)):
            text += f", whose square is {error:.4g}"
        if error >= HALF * whole or error >= whole**2:  # a mean of absolute errors is never above the root of the mean of their squares
            return absent(f"{text}.", where=p.place(s.run, 0))
        return seen(f"{text}.", where=p.place(s.run, 0), first=int(p.step[p.usable][0]))
    return cannot_tell("no error was logged beside the training loss.")


def _beside(loss: Series, error: Series) -> tuple[float, float] | None:
    """The mean of the loss up to the first row of an error, which is the mean of an epoch, and that error; None where no loss was logged before it."""
    step, x = error.step[error.usable], error.value[error.usable]
    at, y = loss.step[loss.usable], loss.value[loss.usable]
    if not len(y) or at[0] > step[0]:
        return None
    x = x**2 if _ROOT.search(words(error.tag)) else x
    return float(np.mean(y[at <= step[0]])), float(x[0])
