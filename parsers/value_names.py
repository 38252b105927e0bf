"""Names that stand for two things, told apart by their values: ``eta`` is the time left or the learning rate, ``step_size`` a number of steps or
the rate, ``rate`` one of anything, ``scale`` too, ``correct`` the share of right answers or their number,
``sec`` the time since the start or of anything.

Rates of successes, errors or clicks are measured and scatter; that of a schedule goes up and down a few times, and hardly ever above a tenth.
An estimate of the time left is in seconds, minutes or hours, mostly above one; a learning rate is hardly ever above one.
Scalers of mixed precision begin at a power of two and multiply by two or halve: PyTorch's ``GradScaler``, Apex, DeepSpeed, Megatron-LM.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from parsers.name_rules import words
from parsers.names import Meaning, meaning

# words of a tag -> those of what it is by its values
EITHER = {
    "eta": "learning rate", "rate": "learning rate", "step size": "learning rate", "scale": "loss scale", "scaler": "loss scale",
    "correct": "accuracy", "sec": "elapsed", "secs": "elapsed", "seconds": "elapsed",
}  # fmt: skip
_LEAST_SCALE = 128.0  # bound: scales begin at 2^16 or above; smaller powers of two may be any factor
_PER_CENT = 100.0  # unit: of all answers
_MOST_RATE = 1.0  # unit: parameters move by no more than their gradient
_SCHEDULED = 0.1  # bound: rates that no schedule of Adam or of SGD without a warmup leaves
_RISES = 0.5  # bound: time that is printed in few digits repeats
_ENOUGH, _TURNS = 5, 0.2  # statistical: values that scatter turn in two of three moves


def candidates(meanings: Mapping[tuple[str, str], Meaning]) -> list[tuple[str, str]]:
    """The tags that values are asked about, by source."""
    return [key for key, m in meanings.items() if m.name.startswith(("other/", "axis/")) and words(key[1]).rpartition("/")[2] in EITHER]


def told(tag: str, values: NDArray[np.float64]) -> Meaning | None:
    """What a tag of `EITHER` means by its values; None where they do not tell."""
    x, is_now = values[np.isfinite(values)], EITHER[words(tag).rpartition("/")[2]]
    if not len(x) or x.min() < 0 or not x.max():
        return None
    if words(tag).rpartition("/")[2] == "rate":
        return meaning(is_now) if x.max() <= _SCHEDULED and _is_schedule(x) else None
    moves = np.diff(x)
    if is_now == "elapsed":  # since the start, where it never falls; else of a step, an epoch or anything
        return meaning(is_now) if len(x) >= _ENOUGH and (moves >= 0).all() and (moves > 0).mean() > _RISES else None
    if is_now == "accuracy":  # "Correct = 97.6%"; whole numbers count the answers
        return meaning(is_now) if x.max() <= _PER_CENT and (x != np.floor(x)).any() else None
    if is_now == "learning rate":
        return meaning(is_now) if x.max() <= _MOST_RATE and (x != np.floor(x)).any() else None
    positive = x[x > 0]
    whole_powers = bool((np.frexp(positive)[0] == 0.5).all())
    return meaning(is_now) if whole_powers and positive.max() >= _LEAST_SCALE else None


def _is_schedule(x: NDArray[np.float64]) -> bool:
    """Whether values move as one who plans them would, or stand."""
    moves = np.sign(np.diff(x))
    moves = moves[moves != 0]
    return len(x) >= _ENOUGH and bool((moves[1:] != moves[:-1]).sum() <= _TURNS * len(x))
