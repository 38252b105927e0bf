"""Evaluation noise

What it sees
    How much evaluations scatter from one to the next, and evaluations that no longer improve beyond that scatter.

How it decides
    The noise is 1.48 times the median absolute second difference over the square root of six, which a smooth trend does not
    touch. The last third of the evaluations is saturated where it improves by less than two standard errors of that noise
    and 0.5 % of the level, after the first third had improved by more than both, where a fifth of that early progress would
    have been seen. With at least fifteen evaluations. For information: a run may be meant to end there.

Cannot tell
    With fewer than fifteen evaluations.

Folklore
    Two evaluations that differ by less than their noise are equal; choosing the better one chooses noise. The noise falls
    with the root of the number of evaluated samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.evaluation_noise import noise_of
from forensics.run.inputs import surviving
from forensics.run.no_better_since import no_better_since
from forensics.run.robust import median
from forensics.run.series import Floats, Series, series
from forensics.spikes.excursions import SEEN
from parsers.tables import Run

NEEDS = ["loss.eval|acc.eval"]
INPUTS = ["loss.eval"]
LEAST = 15  # bound: a third is five, whose two halves are two each; measured: at 10 of them 11 of 107 healthy runs are told to stand still
ERRORS = 2.0  # statistical: standard errors; chance stands beyond once in 22
SHARE = 0.005  # unit: half a percent, which no model is chosen by; not critical: for information only (docs/thresholds.md)
TELLING = 0.2  # of the early pace: what a decaying rate leaves of it; not critical: for information only (docs/thresholds.md)


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Evaluations that stand still."""

    step: int  # from which on
    noise: float  # scatter of one evaluation, in its units
    change: float  # from there to the end, positive: better
    evaluations: int  # that it rests on


def detect(run: Run) -> Iterator[Finding]:
    found = [*saturated(run)]
    if no_better_since(run) is None:  # else told by `plateau`, or by `train_eval_gap` where the training goes on
        yield from found


def saturated(run: Run) -> Iterator[Finding[Facts]]:
    """Evaluations whose last third no longer improves, whatever else is told of them. Raises CannotTell where there are too few."""
    s, x, rows = values(run)
    third = len(x) // 3
    noise, sign = noise_of(x), 1.0 if s.name == "loss.eval" else -1.0
    early = sign * float(np.median(x[: max(third // 3, 1)]) - np.median(x[third : third + max(third // 3, 2)]))
    tail = x[-third:]
    late = sign * float(np.median(tail[: third // 2]) - np.median(tail[-(third // 2) :]))
    error = ERRORS * noise * float(np.sqrt(2 / max(third // 2, 1)))
    level = abs(median(tail))
    if early <= max(error, SHARE * level) or abs(late) >= max(error, SHARE * level):
        return
    if error > TELLING * early:
        return  # too noisy to say that it stopped: progress at a fifth of the early pace would not be seen
    first, last = int(s.step[rows[-third]]), int(s.step[rows[-1]])
    title = f"{s.tag} no longer improves from step {first} on: {late * sign:+.3g} over {third} evaluations that scatter by {noise:.2g}"
    shown = evidence.window(s, first, last, title=s.tag, where=s.place(run, rows[-third]))
    facts = Facts(first, noise, late, third)
    yield evidence.on_rows(s, (rows[-third], rows[-1]), facts, title, "info", shown)


def values(run: Run) -> tuple[Series, Floats, np.ndarray]:
    """The evaluations that are judged: their series, values and rows. Raises CannotTell where there are too few."""
    for name in ("loss.eval", "acc.eval"):
        s = series(run, name)
        if s is not None:
            rows = surviving(s)
            if len(rows) >= LEAST:
                return s, s.value[rows], rows
    raise CannotTell(f"fewer than {LEAST} evaluations were logged")


def smallest_effect(run: Run) -> str:
    _, x, _ = values(run)
    seen = max(ERRORS * np.sqrt(2) * noise_of(x), float(np.percentile(np.abs(np.diff(x)), 100 * SEEN)))  # or its tail
    return f"a difference of {seen:.3g} between two evaluations; what is smaller chance does, too"
