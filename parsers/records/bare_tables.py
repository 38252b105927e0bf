"""Tables of numbers without names of columns: which of their columns count, and what the file's name says of the one that measures.

``numpy.savetxt("train_loss.txt", losses)`` and rows of episode, step and reward in ``rewards.txt``: where one column is left behind those
that count, the file is named after it. The log of a split (``train_log.txt``, ``eval.log``) with two is one of loss and accuracy where one
of them alone can be a share of hits or has the same values again and again, or one falls while the other rises; a perplexity between them is ``exp(min(loss, 100))``
(jadore801120/attention-is-all-you-need-pytorch, train.py). Of other columns nothing says which is which.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, takewhile
from pathlib import Path

from parsers import names
from parsers.lazy_regex import lazy_re
from parsers.records.cells import Cell, cell, number, whole
from parsers.records.vocabulary import EVALUATION

_MEASURED = ("loss.", "acc.", "ppl.", "bpb.", "rl.reward")
_LEAST = 8  # rows: fewer show no habit
_MOST = 0.9  # share of the rows that go on by the same amount, for the next launch begins again
_SPLITS = {"train", "training", *EVALUATION}
_LOGS = {"log", "logs", "history", "curve", "curves", "metrics", "stats", "results", "progress"}  # a split alone is a data set
_MOST_EXPONENT, _CLOSE = 100.0, 0.02  # of that perplexity; a loss of five decimals is known better
_SAME = 0.5  # bound: of so many samples there are so many shares of hits; a loss is hardly ever the same twice
_PARTS = lazy_re(r"\s*[,;]\s*|\s+")


def width(text: str) -> int:
    """How many numbers a line has between blanks; 0 where there is anything else."""
    parts = text.split()
    return len(parts) if all(number(p) is not None for p in parts) else 0


def counters(columns: Sequence[Sequence[Cell]]) -> int:
    """How many of the first columns go on by the same whole amount from row to row."""
    return next((i for i, column in enumerate(columns) if not _counts(column)), len(columns))


def are_ids(columns: Sequence[Sequence[Cell]]) -> bool:
    """Rows of whole numbers of which none goes on from row to row: triples of a graph, users and items. What is measured has fractions."""
    several = [c for c in columns if len(c) >= _LEAST]
    return len(several) == len(columns) > 1 and not counters(columns) and all(whole(x) is not None for column in columns for x in column)


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


def tags_of(path: Path, measured: Sequence[Sequence[Cell]], before: Sequence[str] = ()) -> list[str]:
    """The names of the columns that measure, where those above them in the file had the names ``before``; none where nothing tells them."""
    without = [tag for tag in before if not tag.endswith("/ppl")]
    if len(without) == len(measured) == len(before) - 1:
        return without
    if len(measured) == 1:
        return [tag] if (tag := tag_of(path)) else []
    told = re.split(r"[\W_]+", path.stem.lower())
    of_split = [w for w in told if w in _SPLITS]
    if len(of_split) != 1 or not (path.suffix.lower() == ".log" or _LOGS & {*told}):
        return []
    kinds = _kinds([[c if isinstance(c, float) else math.nan for c in column] for column in measured])
    return [f"{of_split[0]}/{kind}" for kind in kinds]


def of_epochs(columns: Sequence[Sequence[Cell]], told: Sequence[str]) -> bool:
    """Does the log of a split count its epochs? So where it has a row with loss and accuracy for each number."""
    one_by_one = sum(isinstance(a, float) and b == a + 1 for a, b in pairwise(columns[0]))
    return any(tag.endswith("/accuracy") for tag in told) and one_by_one >= _MOST * (len(columns[0]) - 1)


def _kinds(measured: Sequence[Sequence[float]]) -> list[str]:
    """What each column measures, of loss and accuracy, or of loss, perplexity and accuracy; none where it is open."""
    if len(measured) == 3 and _hits(measured[2]) and all(map(_is_perplexity, measured[0], measured[1])):
        return ["loss", "ppl", "accuracy"]
    if len(measured) != 2:
        return []
    first, second = (_hits(column) for column in measured)
    few = [len(set(column)) <= _SAME * len(set(other)) for column, other in (measured, measured[::-1])]
    if first and second and any(few):
        first, second = few
    elif first and second:
        ups = [sum(c[-len(c) // 4 :]) - sum(c[: -(-len(c) // 4)]) for c in measured]
        first, second = ups[0] > 0 > ups[1], ups[1] > 0 > ups[0]
    return [] if first == second else ["accuracy", "loss"] if first else ["loss", "accuracy"]


def _hits(column: Sequence[float]) -> bool:
    """May these be shares of hits, of 1 or in percent?"""
    return len(set(column)) > 1 and all(0 <= x <= 100 for x in column)


def _is_perplexity(loss: float, value: float) -> bool:
    if math.isnan(loss):
        return math.isnan(value)
    return math.isclose(value, math.exp(min(loss, _MOST_EXPONENT)), rel_tol=_CLOSE)


def is_measured(path: Path, lines: Sequence[str]) -> bool:
    """Do these lines hold nothing but numbers, and tell file and numbers what is measured in all columns but those that count?"""
    if len(lines) < _LEAST or not 0 < len(_PARTS.split(lines[0].strip())) <= 5:
        return False
    rows = [[cell(c) for c in _PARTS.split(line.strip())] for line in lines]
    if not all(isinstance(c, float) for row in rows for c in row):
        return False
    alike = [*takewhile(lambda row: len(row) == len(rows[0]), rows)]
    columns = list(zip(*alike, strict=True))
    counting = counters(columns)
    measured = columns[counting:]
    if len(measured) == 1:
        return len(alike) == len(rows) and bool(tag_of(path))
    return len(alike) >= _LEAST and counting > 0 and bool(tags_of(path, measured))  # the next launch may log other columns
