"""What of a metric can be judged: its finite values on the branch that survived, and what is missing where they are too few."""

from __future__ import annotations

import math

import numpy as np

from forensics.errors import CannotTell
from forensics.run.inputs import loss_of, surviving
from forensics.run.once import once
from forensics.run.robust import median, robust_sigma
from forensics.run.series import Floats, Ints, Series, series
from forensics.spikes.medians import centred_median
from parsers.tables import Run

WORDS = {
    "": "the loss",
    "loss.train": "the training loss",
    "loss.eval": "the evaluation loss",
    "acc.eval": "the evaluation accuracy",
    "grad.norm": "the gradient norm",
    "lr": "the learning rate",
    "rl.reward": "the reward",
    "rl.entropy": "the entropy of the policy",
    "rl.loss_value": "the value loss",
    "pref.acc": "the accuracy of preferences",
}
BEGINNING = 3  # values whose median is the first level, as the detectors of divergence and of the initial loss take it
LATE = 0.1  # share of the steps; a log that begins later goes on from a trained model (as the plateau detector has it)


def metric(run: Run, name: str = "") -> Series | None:
    """The metric; without a name the loss to look at (training, else evaluation, else what stands for it)."""
    if name:
        return series(run, name)
    try:
        return loss_of(run)
    except CannotTell:
        return None


@once
def usable(run: Run, name: str = "") -> tuple[Ints, Floats]:
    """(step, value) of the finite values that no later attempt logged again; empty where the metric was not logged."""
    s = metric(run, name)
    if s is None:
        return np.zeros(0, np.int64), np.zeros(0)
    rows = surviving(s)
    return s.step[rows], s.value[rows]


@once
def nan_from(run: Run) -> int | None:
    """The step from which on the training loss is not a number to the end; what is measured there is of NaN."""
    loss = series(run, "loss.train")
    if loss is None or not loss.alive.any() or np.isfinite(loss.value[loss.alive][-1]):
        return None
    finite = np.flatnonzero(loss.usable)
    return int(loss.step[finite[-1]]) + 1 if len(finite) else int(loss.step[0])


def interval(run: Run, name: str = "") -> int:
    """The usual distance of two logged steps of a metric; 1 where it was not logged."""
    s = metric(run, name)
    return s.interval if s is not None else 1


def lacking(run: Run, least: int, name: str = "") -> str:
    """What keeps a sign from judging by `least` finite values of a metric, as a sentence; empty where nothing does."""
    word = WORDS.get(name, name)
    if metric(run, name) is None:
        return f"{word} was not logged."
    n = len(usable(run, name)[0])
    return "" if n >= least else f"too few finite values of {word} were logged ({n}; {least} are needed)."


def first_level(x: Floats) -> float:
    return median(x[:BEGINNING]) if len(x) else math.nan


def beginning(x: Floats) -> float:
    """The training loss before anything was learnt: the first value where the next ones fall from it, else the median of three."""
    return float(x[0]) if len(x) > 2 and x[0] > x[1] > x[2] else first_level(x)


def last_level(x: Floats) -> float:
    """Median of the last tenth, at least of three values."""
    return median(x[-max(len(x) // 10, BEGINNING) :]) if len(x) else math.nan


def levels(x: Floats, parts: int) -> list[float]:
    """Medians of equal parts, in order."""
    return [median(part) for part in np.array_split(x, parts)]


def scatter(x: Floats) -> float:
    """Standard deviation of single values about their running median, in the unit of the values."""
    return robust_sigma(x - centred_median(x, 9), 0.0) if len(x) else math.nan


def begins_late(run: Run) -> str:
    """Where the log of the loss begins in the middle of the run: a sentence that says so; else empty."""
    step, _ = usable(run)
    late = len(step) > 0 and step[0] > LATE * step[-1] and step[0] > step[min(1, len(step) - 1)] - step[0]
    return f"the log begins at step {step[0]}, and what the loss was before is not known." if late else ""
