"""Weights that are many times as large from one logged value to the next, which no update of an optimizer makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics.run import weight_norms
from forensics.run.metrics_in_words import worded
from forensics.run.series import Floats, Ints, Series, names, parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

SUBJECT = "parameters"  # a part of it
EFFECTS = {"weights_leapt": "param.norm"}  # a symptom of its own, for which there is no detector

CALM, LITTLE = 5, 0.1  # bound: five values after the first five steps of a log, each within a tenth of the one before
TIMES = 3.0  # unit: as large as all weights together and twice as much again; Adam moves each by the rate at most, so that norms grow by percents
LAYER = 10.0  # unit: a small layer, such as a bias that begins near zero, may well triple
STAYS = 3  # bound: the value of the leap and two more: what is off in the log alone is back at once
SAME = 1.1  # of the highest rate of the calm values: a warmup goes on rising by as much
_LARGEST = (
    r"^(?=.*\b(?:params?|parameters?|weights?)\b)(?=.*\b(?:absmax|maxabs|max|maximum)\b)"
    r"(?:(?:params?|parameters?|weights?|absmax|maxabs|max|maximum|abs|train|training|model|stats?|global|debug|value|of|the)(?:[ /]+|$))+$"
)


@dataclass(frozen=True)
class Size:
    """A logged size of weights: at which rows, and how many times as large it has to be."""

    logged: Series
    step: Ints
    value: Floats
    row: Ints
    times: float


def weights_leapt(s: Symptoms) -> Sign:
    """A logged norm or largest value of the weights is three times as large (that of one layer ten times) from one logged value to the next, after five
    that each moved by less than a tenth, and stays there, while the rate does not rise: no update does that."""
    sizes = list(_sizes(s.run))
    if not sizes:
        return cannot_tell(f"neither a norm of the weights nor the largest of them was logged {CALM + 1 + STAYS} times.")
    if weight_norms.frozen_on_purpose(s.run):
        return does_not_arise("config freezes parts of the model: a norm of what trains leaps where more of it does.")
    for z in sizes:
        for k in _leaps(z):
            if not _begins_anew(s.run, z, k) and not _rate_rises(s.run, z, k):
                before, after = int(z.step[k - 1]), int(z.step[k])
                text = f"{z.logged.tag} is {z.value[k - 1]:.4g} at step {before} and {z.value[k]:.4g} at step {after}, {z.value[k] / z.value[k - 1]:.3g} "
                text += f"times as much, after {CALM} values that moved by {_largest_move(z.value[k - CALM - 1 : k]):.1%} each at most, and stays there: "
                text += f"{z.value[-1]:.4g} at step {z.step[-1]}."
                return seen(text, where=z.logged.place(s.run, int(z.row[k])), first=before, last=after)
    z = sizes[0]
    return absent(
        f"{z.logged.tag} goes from {z.value[0]:.4g} to {z.value[-1]:.4g}, by {_largest_move(z.value):.1%} from one value to the next at most."
    )


def _sizes(run: Run) -> Iterator[Size]:
    """The norms of all weights, the largest of them, and the norms of layers, which have the values for it."""
    largest = () if any(name.startswith(("rl.", "pref.")) for name in names(run)) else worded(run, _LARGEST)  # there samples have weights
    for p, times in [(p, TIMES) for p in (*parts(run, "param.norm"), *largest)] + [(p, LAYER) for p in parts(run, "param.norm_layer")]:
        rows = np.flatnonzero(p.usable)
        if len(rows) > CALM + STAYS and p.value[rows].min() > 0:
            yield Size(p, p.step[rows], p.value[rows], rows, times)


def _leaps(z: Size) -> list[int]:
    """The values that are so many times the one before, come after calm ones that moved, and stay."""
    x = z.value
    return [
        int(k)
        for k in np.flatnonzero(x[1:] >= z.times * x[:-1]) + 1
        if CALM < k <= len(x) - STAYS
        and 0 < _largest_move(x[k - CALM - 1 : k]) < LITTLE  # what stood still was frozen, and may have been freed
        and x[k:].min() > (x[k - 1] + x[k]) / 2
    ]


def _largest_move(x: Floats) -> float:
    return float(np.max(np.abs(np.diff(x)) / x[:-1]))


def _begins_anew(run: Run, z: Size, k: int) -> bool:
    """Whether a launch begins between the two values."""
    if z.logged.attempt[z.row[k]] != z.logged.attempt[z.row[k - 1]]:
        return True
    return any(z.step[k - 1] - 1 <= a["steps"][0] <= z.step[k] + 1 for a in run.attempts[1:])


def _rate_rises(run: Run, z: Size, k: int) -> bool:
    """Whether the logged rate is higher between the two values than at the calm ones."""
    rate = series(run, "lr")
    if rate is None:
        return False
    step, x = rate.step[rate.usable], rate.value[rate.usable]
    calm, now = x[(step >= z.step[k - CALM - 1]) & (step <= z.step[k - 1])], x[(step > z.step[k - 1]) & (step <= z.step[k])]
    return bool(len(calm) and len(now) and now.max() > SAME * calm.max())
