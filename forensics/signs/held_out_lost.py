"""What training takes away that had been learnt: an accuracy that is lost where the training loss jumps, and stays lost as that falls again."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.detectors import level_shift, loss_spike
from forensics.findings import GRAVE
from forensics.run import evaluations as held
from forensics.run.robust import median
from forensics.run.scores import scores
from forensics.run.series import Series, parts, series
from forensics.signs.held_out_chance import NO_TRAIN
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "held_out"  # a part of it
EFFECTS = {"accuracy_lost_where_training_jumped": "acc.eval"}  # a symptom of its own, for which there is no detector

LASTS = 3  # bound: values on either side, whose middle one odd value does not move
HALF = 0.5  # bound: more than that is lost, or nearer to the old level than to the jump


def accuracy_lost_where_training_jumped(s: Symptoms) -> Sign:
    """An accuracy loses more than half between two evaluations and never gets it back, while the training loss jumps there and falls again:
    other data are learnt in place of those that it measures. That of the data that are being learnt comes back with their loss."""
    logged = [p for name in ("acc.eval", "acc.train") for p in parts(s.run, name)] + [c.logged for c in scores(s.run) if c.rises]
    judged = [p for p in logged if p.usable.sum() >= 2 * LASTS]
    if not judged or series(s.run, "loss.train") is None:
        return cannot_tell(NO_TRAIN if judged else f"no accuracy was logged {2 * LASTS} times.")
    moved = s.of(loss_spike.Facts, level_shift.Facts, severity=GRAVE)
    for p in judged:
        for row in _lost(p):
            before, at = int(p.step[row - 1]), int(p.step[row])
            there = [f for f in moved if f.first_step is not None and before < f.first_step <= at]
            if there and (text := _learns_again(s, p, row, there[0])):
                return seen(text, there, where=p.place(s.run, row), first=there[0].first_step)
    return absent(f"None of {len(judged)} accuracies is lost for good where the training loss jumps and falls again.")


def _lost(p: Series) -> list[int]:
    """Rows from which on an accuracy has less than half of what it had in the three values before; none of a score that may lie below zero."""
    rows = np.flatnonzero(p.usable)
    x = p.value[rows]
    if x.min() < 0:  # an R2, of which no share can be lost
        return []
    highest = np.maximum.accumulate(x[::-1])[::-1]  # of a row and all later ones
    levels = {k: median(x[k - LASTS : k]) for k in range(LASTS, len(x) - LASTS + 1)}
    return [int(rows[k]) for k, level in levels.items() if highest[k] < HALF * level < x[k - 1]]


def _learns_again(s: Symptoms, p: Series, row: int, jump: Finding[Any]) -> str:
    """The sentence, where the training loss makes up for the most of its jump; nothing otherwise."""
    train = series(s.run, "loss.train")
    assert train is not None and jump.first_step is not None
    before, end = held.level_at(train, int(p.step[row - 1])), held.level_at(train, int(train.step[-1]))
    peak = float(train.value[train.usable & (train.step >= jump.first_step)].max(initial=-np.inf))
    if before is None or end is None or end - before > HALF * (peak - before):
        return ""
    return (
        f"{p.tag} goes from {p.value[row - 1]:.4g} at step {p.step[row - 1]} to {p.value[row]:.4g} at step {p.step[row]} and does not come back, "
        f"while the training loss jumps from {before:.4g} to {peak:.4g} at step {jump.first_step} and falls again, to {end:.4g}."
    )
