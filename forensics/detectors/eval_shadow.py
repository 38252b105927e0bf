"""Evaluation shadow

What it sees
    An evaluation that follows training all the way into memorization, which an honest split could not.

How it decides
    Only after many passes over the data (at least five epochs) and only where training loss fell to less than a quarter of its
    level at the first evaluation: an evaluation loss that is still within a third of the training loss then. A last
    evaluation on other data that is far worse says the same.

Cannot tell
    In a single pass, where evaluation and training are alike by nature; or where the log does not say how many passes there were.

Folklore
    Too good to be true is a finding: "assume a bug".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forensics import evidence
from forensics.case import Finding
from forensics.errors import CannotTell
from forensics.series import series
from parsers.tables import Run

NEEDS = ["loss.eval", "loss.train"]
EPOCHS, MEMORIZED, NEAR, LEAST = 5.0, 0.25, 4 / 3, 6


def detect(run: Run) -> Iterator[Finding]:
    held, train, epoch = series(run, "loss.eval"), series(run, "loss.train"), series(run, "epoch")
    assert held is not None and train is not None
    rows = np.flatnonzero(held.alive & np.isfinite(held.value) & (held.value > 0))
    if len(rows) < LEAST:
        raise CannotTell(f"only {len(rows)} evaluations were logged")
    if epoch is None:
        raise CannotTell("the log does not say how many passes over the data there were")
    passes = float(np.nanmax(epoch.value))
    if passes < EPOCHS:
        return
    x, step = held.value[rows], held.step[rows]
    beside = np.array([_level(train.value, train.step, int(s)) for s in step])
    last = len(x) - 1
    if not (beside[last] > 0 and beside[last] < MEMORIZED * beside[0] and x[last] <= NEAR * beside[last]):
        return
    title = f"After {passes:.0f} passes training loss is down to {beside[last]:.3g}, and evaluation loss follows it to {x[last]:.3g}"
    facts = {"passes": passes, "train": float(beside[last]), "eval": float(x[last]), "fell_to": float(beside[last] / beside[0])}
    shown = [evidence.window(s, int(step[0]), int(step[-1]), title=s.tag, where=s.place(run, 0), margin=0) for s in (held, train)]
    yield Finding(f"eval_shadow-{step[last]}", "eval_shadow", title, int(step[0]), int(step[last]), "warning", tuple(shown), facts,
                  (held.clock(rows[0]), held.clock(rows[-1])))


def _level(value: np.ndarray, step: np.ndarray, at: int) -> float:
    """Median of the training loss over the 15 values up to a step."""
    before = value[(step <= at) & np.isfinite(value)]
    return float(np.median(before[-15:])) if len(before) else float("nan")


def smallest_effect(run: Run) -> str:
    return "an evaluation loss within a third of a memorized training loss"
