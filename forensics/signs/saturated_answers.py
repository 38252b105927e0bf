"""Answers that are all certain, right or wrong: each wrong one costs the most that the library lets one cost."""

from __future__ import annotations

import numpy as np

from forensics.run.evaluations import shares
from forensics.run.robust import median
from forensics.run.series import series
from forensics.run.usable_values import first_level
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

EFFECTS = {
    "wrong_answers_cost_the_clip": "loss.train",
    "wrong_answers_cost_beyond_belief": "loss.eval",
}  # symptoms of their own, without a detector

LEAST = 3  # bound: pairs of a loss and its hits
WRONG = 0.01  # of the answers; fewer leave too few digits
NEAR = 0.005  # relative: a clip and the float next to it are further apart (ln 1.19e-7 and ln 1e-7: 1.1 %)
# nats for each wrong answer; bound: odds of 10^13 to 1, for which no data set has samples enough
BELIEF = 30.0
TIMES = 10.0  # the training loss when it knew nothing; bound: what training itself would have called absurd
MOSTLY = 0.5  # unit: more right than wrong, so that the answers belong to the questions
# -ln of what a probability is clipped to: 1e-7 (Keras), the last place of a float below 1 (Keras in single precision), 1e-7 twice over (TensorFlow's
# binary cross entropy), a logarithm clamped to -100 (torch.nn.BCELoss), 1e-15 and the last place of a double (scikit-learn before and since 1.2)
CLIPS = {16.118: "1e-7", 15.942: "1.2e-7", 15.425: "2e-7", 100.0: "exp(-100)", 34.539: "1e-15", 36.044: "2.2e-16"}


def wrong_answers_cost_the_clip(s: Symptoms) -> Sign:
    """Loss over the share of wrong answers is one of the numbers to which libraries clip a logarithm: every output is exactly 0 or 1, and no gradient
    passes through it. Famous as the binary cross entropy of 7.97 at an accuracy of one half."""
    for split in ("eval", "train"):
        loss, hits = series(s.run, f"loss.{split}"), series(s.run, f"acc.{split}")
        if loss is None or hits is None:
            continue
        both, i, j = np.intersect1d(loss.step[loss.usable], hits.step[hits.usable], return_indices=True)
        wrong = 1 - shares(hits.value[hits.usable])[j]
        if len(both) < LEAST or (wrong < WRONG).any():
            continue
        cost = loss.value[loss.usable][i][-LEAST:] / wrong[-LEAST:]
        text = f"{loss.tag} is {cost[-1]:.4g} for each wrong answer at the end"
        clip = next((c for c in CLIPS if (np.abs(cost / c - 1) <= NEAR).all()), None)
        if clip is None:
            return absent(f"{text}.")
        text += f", the most that a probability clipped to {CLIPS[clip]} can cost: all answers are certain, and no gradient passes"
        return seen(f"{text}.", where=loss.place(s.run, int(np.flatnonzero(loss.usable)[i[-1]])), last=int(both[-1]))
    return cannot_tell(f"no loss was logged {LEAST} times beside its accuracy, or hardly an answer is wrong.")


def wrong_answers_cost_beyond_belief(s: Symptoms) -> Sign:
    """Most answers of the evaluation are right from the first on, and each wrong one costs more than any data set could make a model sure of, far more
    than training ever cost: what is evaluated comes in on another scale than what is trained on, which leaves the largest output the largest."""
    loss, hits, train = (series(s.run, name) for name in ("loss.eval", "acc.eval", "loss.train"))
    if loss is None or hits is None or train is None or not train.usable.any():
        return cannot_tell("an evaluation loss was not logged beside its accuracy and a training loss.")
    both, i, j = np.intersect1d(loss.step[loss.usable], hits.step[hits.usable], return_indices=True)
    if len(both) < LEAST:
        return cannot_tell(f"fewer than {LEAST} evaluation losses were logged beside their accuracy.")
    x, right = loss.value[loss.usable][i][:LEAST], shares(hits.value[hits.usable])[j][:LEAST]
    began = first_level(train.value[train.usable])
    cost = median(x / np.maximum(1 - right, WRONG))
    text = f"The first {LEAST} evaluations cost {cost:.3g} for each wrong answer, with {median(right):.1%} right; training began at {began:.3g}."
    absurd = cost >= BELIEF and median(x) >= TIMES * began > 0 and median(right) > MOSTLY
    return seen(text, where=loss.place(s.run, 0), first=int(both[0]), last=int(both[-1])) if absurd else absent(text)
