"""Rows in which no episode ended: the mean of none is undefined, and loggers write zero for it.

An episode has one step at least, so a mean length of zero is none. Where lengths were not logged a count of episodes tells.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

MEANS = ("rl.reward", "rl.len")
LEAST = 4  # bound: zeros, which are none of a beginning or an end
_EPISODES = lazy_re(r"\b(?:ep|eps|episodes?|dones)\b")


def may_hold(means: NDArray[np.float64]) -> bool:
    """Whether some values are zero, and some are not."""
    return bool(LEAST <= np.count_nonzero(means == 0) < len(means))


def empty(means: NDArray[np.float64], others: Iterable[tuple[str, str, NDArray[np.float64]]]) -> NDArray[np.bool_]:
    """Which values are means of no episode, by what else stands in the same rows: (canonical name, tag, values) of each."""
    zero = means == 0
    return zero if any(_tells(name, tag, x, zero) for name, tag, x in others) else np.zeros(len(means), np.bool_)


def _tells(name: str, tag: str, x: NDArray[np.float64], zero: NDArray[np.bool_]) -> bool:
    if name == "rl.len":
        return bool((x[zero] == 0).all())
    if name in MEANS or not _EPISODES.search(words(tag)) or not (x == np.round(x)).all():
        return False
    counted = x if (np.diff(x) < 0).any() else np.diff(x, prepend=0)  # in the row, or so far
    return bool(np.array_equal(counted == 0, zero))
