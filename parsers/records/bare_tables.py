"""Tables of numbers without names of columns: which of their columns count, and what the file's name says of the one that measures.

``numpy.savetxt("train_loss.txt", losses)`` and rows of episode, step and reward in ``rewards.txt``: where one column is left behind those
that count, the file is named after it. Of two and more nothing says which is which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from parsers import names
from parsers.records.cells import Cell, cell, number, whole

_MEASURED = ("loss.", "acc.", "ppl.", "bpb.", "rl.reward")
_LEAST = 8  # rows: fewer show no habit
_MOST = 0.9  # share of the rows that go on by the same amount, for the next launch begins again


def width(text: str) -> int:
    """How many numbers a line has between blanks; 0 where there is anything else."""
    parts = text.split()
    return len(parts) if all(number(p) is not None for p in parts) else 0


def counters(columns: Sequence[Sequence[Cell]]) -> int:
    """How many of the first columns go on by the same whole amount from row to row."""
    return next((i for i, column in enumerate(columns) if not _counts(column)), len(columns))


def _counts(column: Sequence[Cell]) -> bool:
    places = [whole(c) for c in column]
    if len(places) < 3 or None in places:
        return False
    strides = Counter(b - a for a, b in pairwise(places) if a is not None and b is not None)
    stride, times = strides.most_common(1)[0]
    return stride > 0 and times >= _MOST * (len(places) - 1)


def tag_of(path: Path) -> str:
    """The file's name where it names what a training measures; "" where it does not."""
    return path.stem if names.meaning(path.stem).name.startswith(_MEASURED) else ""


def is_one_metric(path: Path, lines: Sequence[str]) -> bool:
    """Do these lines hold nothing but numbers, of which all but one a row count, and names the file that one?"""
    if len(lines) < _LEAST or not (columns := width(lines[0])) or columns > 4 or not tag_of(path):
        return False
    rows = [[cell(c) for c in line.split()] for line in lines if width(line) == columns]
    return len(rows) == len(lines) and counters(list(zip(*rows, strict=True))) == columns - 1
