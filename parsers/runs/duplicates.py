"""Leaves out metric rows that another file of the same run says too.

Two *formats* (TensorBoard and a console log, say) are two witnesses of one run: a row is a copy when a better witness
has the same metric, step and float32 value. Files of one format are successive attempts of the run, and equal rows in them
are work done twice, so they stay; except where one file is contained in another (the cumulative ``trainer_state.json``
of every checkpoint, a backup): that is a copy, too. A value that a log rounded differs and stays.

Rows are compared by 64-bit hashes of what must agree: of 35 million rows the chance that any two that differ are taken for equal is 3 in 100,000.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow

# Better witnesses first: exact values with a clock, then exact values, then what was printed for people.
_PRECISION = [
    "tensorboard",
    "wandb_offline",
    "mlflow_sqlite",
    "mlflow_files",
    "jsonl",
    "parquet_log",
    "trainer_state",
    "csv_log",
    "json_log",
    "wandb_folder",
]
_CONTAINED = 0.9  # share of a file's rows found in a sibling from which on it is a copy of that sibling


Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Rows:
    """Rows of metrics that several files log: their places in the table, codes of their files, and hashes of what is compared."""

    row: Ints
    source: Ints
    value: Hashes  # of metric, step and float32 value
    point: Hashes  # of these and rank
    time: NDArray[np.float64]

    def at(self, some: NDArray[np.bool_]) -> _Rows:
        return _Rows(self.row[some], self.source[some], self.value[some], self.point[some], self.time[some])


def drop_copies(metrics: pa.Table, formats: dict[str, str]) -> tuple[pa.Table, int]:
    """The table without copies, order kept, and how many rows were left out."""
    if len(arrow.words(metrics["source"])) < 2:
        return metrics, 0
    source, paths = arrow.codes(metrics["source"])
    rows = _shared(metrics, source, len(paths))
    if not len(rows.row):
        return metrics, 0
    known = sorted({formats[p] for p in paths}, key=lambda f: (_PRECISION.index(f) if f in _PRECISION else len(_PRECISION), f))
    of = np.array([known.index(formats[p]) for p in paths])
    keep = np.ones(metrics.num_rows, np.bool_)
    keep[_contained_files(rows, of, paths)] = False
    rest = rows.at(keep[rows.row])
    keep[_second_witnesses(rest, of[rest.source])] = False
    lost = len(keep) - int(keep.sum())
    return (metrics.filter(arrow.flags(keep)), lost) if lost else (metrics, 0)


def key(name: str) -> str:
    """What two files must agree on to speak of the same metric: the canonical name, else the tag without its punctuation."""
    return re.sub(r"[\s._:/\\-]+", "/", name.lower()) if name.startswith("other/") else name


def _mixed(seed: Hashes, column: NDArray[np.generic]) -> Hashes:
    """The hashes with a column of 64-bit values in them (splitmix64, Steele et al. 2014)."""
    x = (seed ^ column.view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _shared(metrics: pa.Table, source: NDArray[np.int32], files: int) -> _Rows:
    """The rows of metrics that more than one file logs."""
    name, names = arrow.codes(metrics["name"])
    keys: dict[str, int] = {}
    of_name = np.array([keys.setdefault(key(n), len(keys)) for n in names], np.int64)
    pairs = np.unique(of_name[name] * files + source)
    several = np.bincount(pairs // files, minlength=len(keys)) > 1
    row = np.flatnonzero(several[of_name][name])
    value = arrow.values(metrics["value"])[row].astype(np.float32).astype(np.float64) + 0.0  # of the two zeros the one without a sign
    value[np.isnan(value)] = np.nan
    step, rank = (arrow.filled(metrics[c], -(2**31))[row].astype(np.int64) for c in ("step", "rank"))
    hashed = _mixed(_mixed(_mixed(np.zeros(len(row), np.uint64), of_name[name[row]]), step), value)
    return _Rows(row, source[row].astype(np.int64), hashed, _mixed(hashed, rank), arrow.filled(metrics["time"], np.nan)[row])


def _contained_files(rows: _Rows, of: Ints, paths: list[str]) -> Ints:
    """Rows of files that lie, nearly whole, in larger ones of the same format (times included, where logged)."""
    copies = [np.zeros(0, np.int64)]
    format_of = of[rows.source]
    for fmt in np.unique(format_of).tolist():
        same = rows.at(format_of == fmt)
        timed = bool(np.isfinite(same.time).any())
        hashed = _mixed(same.point, np.where(np.isnan(same.time), np.nan, same.time)) if timed else same.point
        size = np.bincount(same.source, minlength=len(paths))
        rank = np.empty(len(paths), np.int64)  # the largest first
        rank[sorted(range(len(paths)), key=lambda i: (size[i], paths[i]), reverse=True)] = np.arange(len(paths))
        found = _least(hashed, rank[same.source]) < rank[same.source]
        contained = np.bincount(same.source[found], minlength=len(paths)) >= _CONTAINED * np.maximum(size, 1)
        copies.append(same.row[found & contained[same.source]])
    return np.concatenate(copies)


def _second_witnesses(rows: _Rows, precision: Ints) -> Ints:
    """Rows that a more precise format has too; the n-th occurrence of one pairs with the n-th of the other."""
    if not len(rows.row) or precision.min() == precision.max():
        return rows.row[:0]
    nth = _mixed(rows.value, arrow.nth_of_group(_mixed(rows.value, precision)))
    return rows.row[precision > _least(nth, precision)]


def _least(group: Hashes, value: Ints) -> Ints:
    """Of each row, the least value in its group."""
    order, first, size = arrow.groups(group)
    found = np.empty(len(group), np.int64)
    found[order] = np.repeat(np.minimum.reduceat(value[order], first), size)
    return found
