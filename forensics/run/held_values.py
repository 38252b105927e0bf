"""A value of a whole epoch that is printed again with each step of the next, as the bars of Lightning do: one value, not hundreds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.run.series import Series

SHORTEST, STRETCHES = 5, 5  # bound: rows of a stretch, and stretches, of which it can be told that they are alike
LOOKED = 1000  # unit: values looked at first, for time alone
ALIKE, OFF = 0.95, 1  # share of the stretches that are whole epochs long, to a row; by chance a rounded loss changes anywhere


def one_each(s: Series) -> Series:
    """The series with one row for each stretch over which a value is held, where all are as long or a multiple of it; else as it is."""
    if not _held(s.value[:LOOKED]):
        return s
    changes = np.flatnonzero(s.value[1:] != s.value[:-1]) + 1
    if len(changes) < STRETCHES or not _held(s.value):
        return s
    long = np.diff(changes)
    every = int(long.min())
    times = np.maximum(np.rint(long / every).astype(int), 1)
    if every < SHORTEST or (np.abs(long - every * times) <= OFF * times).mean() < ALIKE:
        return s
    begins = [c + n * each // k for c, each, k in zip(changes.tolist(), long.tolist(), times.tolist(), strict=False) for n in range(k)]
    rows = np.array([0, *begins, changes[-1]])
    return replace(s.only(rows), interval=s.interval * every)


def _held(x: np.ndarray) -> bool:
    return len(x) > SHORTEST and float((x[1:] != x[:-1]).mean()) <= 1 / SHORTEST
