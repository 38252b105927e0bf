"""The training loss by its place in the epoch, beside the hits at the same place."""

from __future__ import annotations

import numpy as np

from forensics.run.evaluations import shares
from forensics.run.metrics_in_words import together
from forensics.run.series import Floats, Ints, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "logged_wrongly"  # a part of it
EFFECTS = {"loss_lifted_by_place": "loss.train"}  # a symptom of its own, for which there is no detector

EPOCHS, PLACES = 5, 8  # bound: epochs, of which five agree by chance once in thousands; values of an epoch, of which a quarter are two
LIFTED, FEW = 3.0, 0.25  # unit: a sum over three, as of a loss that is a multiple throughout; of the places, so that the others are most
TELLING = 3  # bound: epochs with wrong answers, whose median one odd epoch does not move
POINTS = 0.02  # of hits; as the plateau detector calls accuracies equal


def loss_lifted_by_place(s: Symptoms) -> Sign:
    """At the same few places of every epoch the logged training loss is three times that of the epoch's other places, and more, and the hits there
    are not fewer: another number is logged there, such as a sum for a mean. Samples that are harder would be missed more often."""
    loss, hits, epoch = (series(s.run, name) for name in ("loss.train", "acc.train", "epoch"))
    if loss is None or hits is None or epoch is None:
        return cannot_tell("training loss, training accuracy and epoch were not logged together.")
    step, (x, right, of) = together(loss, hits, epoch)
    table = _by_epoch(of)
    if table is None or not (x > 0).all():
        return cannot_tell(f"there are no {EPOCHS} epochs with the same {PLACES} values of loss and accuracy, or more.")
    level, right = x[table], shares(right)[table]
    ratio = level / np.median(level, axis=1, keepdims=True)
    lifted = np.flatnonzero((ratio >= LIFTED).all(axis=0))
    if not 0 < len(lifted) <= FEW * level.shape[1]:
        return absent(
            f"In {len(level)} epochs of {level.shape[1]} values no few places have a training loss {LIFTED:g} times that of the others."
        )
    others = np.setdiff1d(np.arange(level.shape[1]), lifted)
    right = right[np.median(right[:, others], axis=1) <= 1 - POINTS]  # where all are right, harder samples are, too
    if len(right) < TELLING:
        return cannot_tell(f"fewer than {TELLING} epochs have wrong answers, which harder samples would show.")
    there, elsewhere = float(np.median(right[:, lifted])), float(np.median(right[:, others], axis=0).min())
    which = ", ".join(str(i + 1) for i in lifted)
    text = (
        f"In each of {len(level)} epochs {loss.tag} is {ratio[:, lifted].min():.2g} times the epoch's median and more at value {which} of "
        f"{level.shape[1]}; {hits.tag} is {there:.3g} there, and {elsewhere:.3g} at the lowest of the other places"
    )
    rows = table[:, lifted]
    where = loss.place(s.run, int(np.flatnonzero(loss.step == step[rows.min()])[0]))
    if there < elsewhere - POINTS:
        return absent(f"{text}.", where=where)
    return seen(f"{text}.", where=where, first=int(step[rows.min()]), last=int(step[rows.max()]))


def _by_epoch(of: Floats) -> Ints | None:
    """The rows of each epoch, one epoch a line; None where too few epochs have as many rows as most."""
    begins = np.flatnonzero(np.diff(np.floor(of), prepend=-np.inf))
    counts = np.diff(np.append(begins, len(of)))
    if not len(counts):
        return None
    usual = int(np.bincount(counts).argmax())
    whole = begins[counts == usual]
    if usual < PLACES or len(whole) < max(EPOCHS, len(begins) / 2):
        return None
    return np.asarray(whole[:, None] + np.arange(usual)[None, :], np.int64)
