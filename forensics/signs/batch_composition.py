"""What the answers within single batches say of the samples that stand together in them."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.evaluations import shares
from forensics.run.series import Floats, names, series
from forensics.run.usable_values import last_level
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

EFFECTS = {"batch_answers_alike": "acc.train"}  # a symptom of its own, for which there is no detector

STRETCH, STRETCHES = 10, 3  # bound: values whose spread is known to a quarter; stretches, since hits that rise at once spread over one
BATCH = 8  # bound: samples, of which hits are shares of more than a few steps
# unit: half of what answers spread by that are all right or all wrong within a batch, which is `BATCH` times and more what samples do that
# were drawn one by one (intraclass correlation; Fisher 1925, chapter VII)
ALIKE = 0.5
LOW = 0.5  # unit: held-out answers of which fewer than half are right; batches by task or length may differ, and teach all the same


def batch_answers_alike(s: Symptoms) -> Sign:
    """The answers within a training batch are right or wrong together, through three stretches of the log and more, and few held-out answers are
    right: each batch holds samples of one kind, as data have them that are read in the order of their classes."""
    hits, held_out, size = series(s.run, "acc.train"), series(s.run, "acc.eval"), settings.number(s.run, "batch_size")
    if any(name.startswith(("rl.", "pref.")) for name in names(s.run, 1)):
        return does_not_arise("the samples of a batch are answers of a policy, or pairs.")
    if hits is None or hits.usable.sum() < STRETCHES * STRETCH:
        return cannot_tell(f"the training accuracy was not logged {STRETCHES * STRETCH} times.")
    if size is None or size < BATCH:
        return cannot_tell(f"config names no batch of {BATCH} samples or more.")
    if held_out is None or not held_out.usable.any():
        return cannot_tell("no accuracy of held-out data was logged.")
    x, step = shares(hits.value[hits.usable]), hits.step[hits.usable]
    alike = correlations(x, size)
    known = alike[np.isfinite(alike)]
    end = last_level(shares(held_out.value[held_out.usable]))
    text = (
        f"By {hits.tag} {np.median(known) if len(known) else 0:.0%} of the spread of answers lies between batches of {size:.0f}, in "
        f"{len(known)} stretches of {STRETCH} values; {held_out.tag} ends at {end:.3g}"
    )
    where, first = hits.place(s.run, int(np.flatnonzero(hits.usable)[0])), int(step[0])
    if len(known) >= STRETCHES and np.median(known) >= ALIKE and end < LOW:
        return seen(f"{text}.", where=where, do=("Shuffle the training data.",), first=first, last=int(step[-1]))
    return absent(f"{text}.", where=where)


def correlations(x: Floats, size: float) -> Floats:
    """Of each stretch the correlation of the answers within a batch: 0 where samples were drawn one by one, 1 where all are right or all are
    wrong; NaN where all answers of the stretch are alike."""
    rows = x[: len(x) // STRETCH * STRETCH].reshape(-1, STRETCH)
    p = rows.mean(axis=1)
    drawn = p * (1 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(drawn > 0, size * rows.var(axis=1, ddof=1) / drawn, np.nan)
    return np.asarray((ratio - 1) / (size - 1))
