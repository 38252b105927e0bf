"""Do two logs say the same values at the same steps? Then they tell of one life, whatever their clocks say."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

ENOUGH = 0.5  # share of the common steps at which copies have equal values; what was logged between two flushes may be missing
_FEW = 3  # values that may agree by chance
_SEQUENCE = 10  # values: fewer that are rounded may follow each other by chance
_ENDS = 0.05  # share of the steps by which two logs of one life may differ at either end: one is flushed later
_ONE_MORE = 1  # value at either end of a sequence: a sanity check before the first epoch, an evaluation after the last
_MOST_DIGITS = 9
_NEARLY_ALL = 0.95  # of the values: the first ones of a diverging loss may be printed otherwise
_ROUNDED = 1.02  # units of the last place: one log may round where another cuts off
_SINGLE = 2.0**-22  # relative: two units in the last place of a single-precision number

Points = tuple[NDArray[np.int64], NDArray[np.float64]]  # steps and values


def equal_share(a: Points, b: Points) -> float | None:
    """Share of the common steps where the values agree as far as both were written out; None without a common step, or
    without a value that changes: constants say nothing."""
    steps, i, j = np.intersect1d(a[0], b[0], return_indices=True)
    if not len(steps):
        return None
    one, two = a[1][i], b[1][j]
    if len(steps) > 1 and np.ptp(one) == 0 == np.ptp(two):
        return None
    unit = np.fmax(last_place(one), last_place(two))
    with np.errstate(invalid="ignore"):  # of two infinities
        return float((np.isclose(one, two, rtol=_SINGLE, equal_nan=True) | (np.abs(one - two) <= _ROUNDED * unit)).mean())


def same_stretch(a: Points, b: Points) -> bool:
    """Do both cover the same steps with the same values, up to an interval at which one of them logs? A prefix alone may be another run of the
    same seed, and a stretch that begins later work that was done again."""
    if min(len(a[0]), len(b[0])) < _FEW:
        return False
    reach = max(max(_ENDS * np.ptp(steps), np.median(np.diff(steps))) for steps, _ in (a, b))
    if abs(a[0].min() - b[0].min()) > reach or abs(a[0].max() - b[0].max()) > reach:
        return False
    return (equal_share(a, b) or 0.0) >= ENOUGH


def same_sequence(a: Points, b: Points) -> bool:
    """Do both say the same values in the same order, though at other steps? One of them counts its rows, or epochs."""
    told = _in_order(a, b)
    return told is not None and told[0] >= _SEQUENCE and told[1] >= ENOUGH


def same_together(pairs: Iterable[tuple[Points, Points]]) -> bool:
    """The same of several metrics: those that change count together, and none of them may say other values."""
    told = [found for a, b in pairs if (found := _in_order(a, b)) is not None]
    return sum(n for n, _ in told) >= _SEQUENCE and all(share >= _NEARLY_ALL for _, share in told)


def begins_alike(pairs: Iterable[tuple[Points, Points]]) -> bool:
    """Do the values of the first ones begin those of the second ones, at whatever steps? A state holds what was logged until it was saved, and the
    log goes on. Those that change count together, and none of them may say other values."""
    told = []
    for a, b in pairs:
        begun, whole = _once(a)[1], _once(b)[1]
        if len(begun) < _FEW or len(whole) < len(begun) or _counts(begun):
            continue
        rows = np.arange(len(begun))
        if (share := equal_share((rows, begun), (rows, whole[: len(begun)]))) is not None:
            told.append((len(begun), share))
    return sum(n for n, _ in told) >= _SEQUENCE and all(share >= _NEARLY_ALL for _, share in told)


def _in_order(a: Points, b: Points) -> tuple[int, float] | None:
    """How many values both say, and the share of them that are equal in their order; None where one has many more, nothing changes, or whole numbers
    only rise: these count what was done, in each run of a sweep alike.

    One may have a value more at the beginning or at the end: a check before the training, an evaluation behind it."""
    few, many = sorted((_once(a)[1], _once(b)[1]), key=len)
    length, more = len(few), len(many) - len(few)
    if length < _FEW or _counts(few) or more > max(2 * _ONE_MORE, _ENDS * length):
        return None
    rows = np.arange(length)
    shifted = range(min(more, _ONE_MORE) + 1)
    shares = [equal_share((rows, few), (rows, many[i : i + length])) for i in shifted if more - i <= max(_ONE_MORE, _ENDS * length)]
    return None if None in shares else (length, max(share or 0.0 for share in shares))


def _counts(x: NDArray[np.float64]) -> bool:
    return bool((x == np.floor(x)).all() and (np.diff(x) >= 0).all())


def _once(a: Points) -> Points:
    """Without the rows that are told again, step and value: each of Trainer's states holds the history of those before it."""
    order = np.lexsort((a[1], a[0]))
    step, value = a[0][order], a[1][order]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(step) != 0) | (np.diff(value) != 0)
    rows = np.sort(order[new])
    return a[0][rows], a[1][rows]


def one_step_apart(a: Points, b: Points) -> bool:
    """Do both say the same values at steps that one counts from 0 and the other from 1?"""
    for apart in (-1, 1):
        shifted = (a[0] + apart, a[1])
        if len(np.intersect1d(shifted[0], b[0])) >= _SEQUENCE and (equal_share(shifted, b) or 0.0) >= ENOUGH:
            return True
    return False


def apart_together(pairs: Iterable[tuple[Points, Points]]) -> bool:
    """The same of several metrics, whose values count together: the few epochs that a console prints of what a tracker holds in full. Steps that
    one of them tells twice are of two lives."""
    compared = [(a, b) for a, b in pairs if not _counts(a[1])]
    if any(len(np.unique(steps)) < len(steps) for pair in compared for steps, _ in pair):
        return False
    for apart in (-1, 1):
        told = [(len(np.intersect1d(a[0] + apart, b[0])), equal_share((a[0] + apart, a[1]), b)) for a, b in compared]
        met = [(n, share) for n, share in told if share is not None]
        if sum(n for n, _ in met) >= _SEQUENCE and all(share >= _NEARLY_ALL for _, share in met):
            return True
    return False


def last_place(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit of the last place to which each value is written out, by the decimals and the digits that suffice for nearly all of
    them; 0 where they are not rounded."""
    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        decimals = _coarsest(values, [np.full(len(values), 10.0**-n) for n in range(_MOST_DIGITS)])
        digits = _coarsest(values, [10.0 ** (size - n) for n in range(_MOST_DIGITS)])
    return np.fmax(decimals, digits)


def _coarsest(values: NDArray[np.float64], units: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The first of the units, from coarse to fine, of which nearly all values are multiples; 0 where none is."""
    for unit in units:
        scaled = values / unit
        exact = np.abs(scaled - np.round(scaled)) <= np.abs(scaled) * _SINGLE
        if np.mean(exact | ~np.isfinite(values) | (values == 0)) >= _NEARLY_ALL:
            return unit
    return np.zeros(len(values))
