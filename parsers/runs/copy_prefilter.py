"""Which of many metric files may be copies of one another: a quick no for nearly all pairs.

Comparing every metric of every pair takes minutes for some hundred runs. Here each file keeps the values of a few steps
of each metric, the steps chosen by a hash of their number, so that files with common steps keep the same ones. Where
these values differ in most of the metrics that two files share, they are no copies; all else has to be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]

_STEPS = 16  # of a metric that are kept, or a few more
_ENOUGH = 8  # common steps that say something: of fewer all may be among those in which a copy was rounded otherwise
_ALIKE = 0.3  # share of equal values below which a metric is another one; copies have more than half
_MOST_COLUMNS = 4096


@dataclass
class Sketch:
    """Some values of a file: its metric's name, by number in ``keys``; the step; the value."""

    keys: list[str]
    key: Ints
    step: Ints
    value: Floats


def sketch(keys: list[str], key: Ints, step: Ints, value: Floats) -> Sketch:
    """Of all rows of a file; those whose key is negative are left out."""
    import numpy as np

    share = _STEPS * max(len(keys), 1) / max(len(step), 1)
    if share < 1:
        rows = np.flatnonzero((step.astype(np.uint32) * np.uint32(0x9E3779B1)) < np.uint32(share * 0xFFFFFFFF))
        rows = rows[key[rows] >= 0]
    else:
        rows = np.flatnonzero(key >= 0)
    return Sketch(keys, key[rows], step[rows], value[rows])


def maybe_copies(sketches: Sequence[Sketch]) -> Bools:
    """A square of pairs, False where two files are surely not copies of each other."""
    import numpy as np

    count = len(sketches)
    numbers: dict[str, int] = {}
    recoded = [np.array([numbers.setdefault(k, len(numbers)) for k in s.keys], np.int64)[s.key] for s in sketches]
    kinds: dict[tuple[str, ...], int] = {}
    kind = np.array([kinds.setdefault(tuple(s.keys), len(kinds)) for s in sketches])
    has = np.zeros((len(kinds), max(len(numbers), 1)), np.float32)  # by kind: few, where runs log alike, so that no threads start
    for keys, n in kinds.items():
        has[n, [numbers[k] for k in keys]] = 1
    shared = has @ has.T
    place = np.concatenate(recoded) << 44 | np.concatenate([s.step for s in sketches]) & (1 << 44) - 1
    value = np.concatenate([s.value for s in sketches])
    owner = np.repeat(np.arange(count), [len(s.step) for s in sketches])
    places, column, often = np.unique(place, return_inverse=True, return_counts=True)
    common = np.flatnonzero(often > 1)
    if len(common) > _MOST_COLUMNS:
        common = np.sort(common[np.argsort(-often[common], kind="stable")[:_MOST_COLUMNS]])
    if not len(common):
        return np.ones((count, count), np.bool_)
    renumbered = np.full(len(places), -1)
    renumbered[common] = np.arange(len(common))
    column = renumbered[column]
    held = np.full((count, len(common)), np.nan)
    held[owner[column >= 0], column[column >= 0]] = value[column >= 0]
    turns = np.flatnonzero(np.diff(places[common] >> 44, prepend=-1))  # where the columns of another metric begin
    whole = bool(np.isfinite(held).all())  # then all pairs have as many values in common
    both = np.diff(turns, append=len(common))
    small = np.uint8 if both.max() < 256 else np.int32
    gap = np.empty_like(held)
    out = np.ones((count, count), np.bool_)
    with np.errstate(invalid="ignore"):
        for i in range(count - 1):
            apart = np.subtract(held[i + 1 :], held[i], out=gap[i + 1 :])
            np.abs(apart, out=apart)
            equal = apart <= 2e-3 * np.abs(held[i]) + 1e-8
            alike = np.add.reduceat(equal, turns, axis=1, dtype=small)
            if not whole:
                both = np.add.reduceat(~np.isnan(apart), turns, axis=1, dtype=np.int32)
            other = ((both >= _ENOUGH) & (alike < _ALIKE * both)).sum(axis=1)
            out[i, i + 1 :] = out[i + 1 :, i] = other <= 0.5 * shared[kind[i], kind[i + 1 :]]
    return out
