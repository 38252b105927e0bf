"""Several evaluations beside each other: what one of them does that neither the others nor training do."""

from __future__ import annotations

import numpy as np

from forensics.detectors import eval_jump
from forensics.run.inputs import surviving
from forensics.run.series import Floats, Ints, Series, parts, series
from forensics.signs.held_out_chance import NO_TRAIN
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "held_out"  # a part of it
EFFECTS = {"one_evaluation_steps_alone": "loss.eval"}  # a symptom of its own, for which there is no detector

LASTS = 3  # bound: values on either side, whose middle one odd value does not move
FLAT = 0.2  # of the step: less than a fifth of it is what the values on either side still move by, as for the step of hits (eval_jump)
BESIDE = 1 / 3  # of the step; unit: what the others and training move by is small beside it, as for eval_jump


def one_evaluation_steps_alone(s: Symptoms) -> Sign:
    """The loss of one evaluation steps up between two evaluations and stays there, while the other evaluations and the training loss go on as
    before: they are its control, so that three evaluations on either side are enough. What a model forgets gets worse from one evaluation to the next."""
    train = series(s.run, "loss.train")
    sets = [(p, rows) for p in parts(s.run, "loss.eval") if len(rows := surviving(p)) >= 2 * LASTS and (p.value[rows] > 0).all()]
    if len(sets) < 2:
        return cannot_tell(f"no two evaluations with a loss of their own were logged {2 * LASTS} times.")
    if train is None:
        return cannot_tell(NO_TRAIN)
    for p, rows in sets:
        others = [(o, at) for o, at in sets if o.tag != p.tag and np.array_equal(o.step[at], p.step[rows])]
        if (
            others
            and (i := _alone(p.value[rows], [o.value[at] for o, at in others])) is not None
            and _goes_on(train, p.step[rows], i, p.value[rows])
        ):
            x, step = p.value[rows], p.step[rows]
            text = f"{p.tag} steps from {x[i]:.4g} at step {step[i]} to {x[i + 1]:.4g} at step {step[i + 1]} and stays there"
            text += f", while {others[0][0].tag} goes from {others[0][0].value[others[0][1][i]]:.4g} to {others[0][0].value[others[0][1][i + 1]]:.4g}"
            return seen(f"{text} and the training loss goes on as before.", where=p.place(s.run, int(rows[i + 1])), first=int(step[i + 1]))
    return absent(f"None of {len(sets)} evaluations steps up alone and stays.")


def _alone(x: Floats, others: list[Floats]) -> int | None:
    """The evaluation before a lasting step up of a loss that none of the others takes."""
    y = np.log(x)
    change = np.diff(y)
    i = int(np.argmax(change))
    size = float(change[i])
    before, after = y[: i + 1], y[i + 1 :]
    if min(len(before), len(after)) < LASTS or size < eval_jump.SHARE or float(np.delete(change, i).max()) > FLAT * size:
        return None
    stays = float(after.min() - before[-1]) > (1 - FLAT) * size and float(np.ptp(after)) < FLAT * size
    moved = max(float(np.abs(np.log(o[i + 1] / o[i]))) for o in others)
    return i if stays and moved < BESIDE * size else None


def _goes_on(train: Series, step: Ints, i: int, x: Floats) -> bool:
    """Whether the training loss between the evaluations on either side moves by little beside the step."""
    good = train.usable
    old = train.value[good & (train.step > step[i - 1]) & (train.step <= step[i])]
    new = train.value[good & (train.step > step[i]) & (train.step <= step[i + 1])]
    if not len(old) or not len(new) or min(np.median(old), np.median(new)) <= 0:
        return False
    return bool(abs(np.log(np.median(new) / np.median(old))) < BESIDE * np.log(x[i + 1] / x[i]))
