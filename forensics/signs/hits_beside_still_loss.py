"""Hits that rise beside a loss that stands still: what is learnt does not show in the loss."""

from __future__ import annotations

import numpy as np

from forensics.detectors import plateau
from forensics.run.evaluations import shares
from forensics.run.robust import median
from forensics.run.series import series
from forensics.run.usable_values import begins_late, lacking
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "loss_beside_hits"  # the other half of it

LEAST = 4  # bound: as many evaluations as the plateau detector wants; two values that make a level at either end
HALF = 0.5  # bound: of what there was to gain, and more right than wrong at the end


def hits_rise_beside_still_loss(s: Symptoms) -> Sign:
    """The loss stands still while the share of right answers rises to more than half, by half of all that was missing: the answers are learnt, so labels
    and gradients are sound, and something else than the answers makes the loss: a floor, or a second softmax."""
    found = s.of(plateau.Facts, severity=["warning"])
    if not found:
        why = lacking(s.run, plateau.LEAST_VALUES) or begins_late(s.run)
        return cannot_tell(why) if why else does_not_arise("the loss does not stand still.")
    told = ""
    for name in ("acc.eval", "acc.train"):
        a = series(s.run, name)
        if a is None or a.usable.sum() < LEAST:
            continue
        x = shares(a.value[a.usable])
        first, last = median(x[:2]), median(x[-2:])
        told = f"{a.tag} goes from {first:.3g} to {last:.3g}, while the loss goes from {found[0].facts.first:.4g} to {found[0].facts.last:.4g}."
        if last > HALF and last - first >= HALF * (1 - first):
            rows = np.flatnonzero(a.usable)
            return seen(told, found, where=a.place(s.run, int(rows[0])), first=int(a.step[rows[0]]), last=int(a.step[rows[-1]]))
    return absent(told, found) if told else cannot_tell(f"an accuracy was not logged {LEAST} times.")
