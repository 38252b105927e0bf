"""Columns of metric rows and of batches, handed over as Arrow arrays without a copy. Helpers, no parser."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from parsers.json_values import MISSING, Samples
from parsers.tables import record_batch


@dataclass
class Part:
    """Rows of one shape, as columns. An index of None means that a column has a value in every row."""

    at: Sequence[int]
    step_key: str = ""
    steps: array[int] | None = None
    also_iter: bool = False  # the rows have an ``iter`` beside their ``step``
    epochs: array[float] | None = None
    times: array[float] | None = None
    ranks: array[int] | None = None
    evaluation: str = ""  # the word by which the rows say that they are no training rows
    columns: list[tuple[str, Sequence[int] | None, array[float]]] = field(default_factory=list)
    samples: list[Samples] | None = None
    positions: array[int] | None = None  # of single samples, where the row says it

    def step_of(self, row: int) -> int | None:
        return None if self.steps is None or self.steps[row] == MISSING else self.steps[row]

    def rank_of(self, row: int, default: int | None) -> int | None:
        return default if self.ranks is None or self.ranks[row] == MISSING else self.ranks[row]

    def time_of(self, row: int) -> float | None:
        return None if self.times is None or math.isnan(self.times[row]) else self.times[row]


class MetricRows:
    """Rows of the metrics table; ``rank`` stands where a part has none."""

    def __init__(self, rank: int | None = None) -> None:
        self.rank = MISSING if rank is None else rank
        self.codes: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self.values, self.times, self.steps, self.ranks, self.at = (
            array("d"),
            array("d"),
            array("q"),
            array("q"),
            array("q"),
        )
        self.tags = array("i")
        self.timed = False

    def add(self, part: Part) -> None:
        n = len(part.at)
        steps = part.steps if part.steps is not None else array("q", [MISSING]) * n
        times = part.times if part.times is not None else array("d", [math.nan]) * n
        self.timed |= part.times is not None
        ranks = part.ranks if part.ranks is not None else array("q", [self.rank]) * n
        at = array("q", part.at)
        for tag, index, values in part.columns:
            code = self.codes.setdefault(tag, len(self.codes))
            self.tags.extend(array("i", [code]) * len(values))
            self.values.extend(values)
            for whole, target in ((steps, self.steps), (ranks, self.ranks), (at, self.at)):
                target.extend(whole if index is None else array("q", [whole[i] for i in index]))
            self.times.extend(times if index is None else array("d", [times[i] for i in index]))

    def batch(self) -> pa.RecordBatch:
        """The rows so far; the next ones start anew."""
        names = pa.array([t.encode("utf-8", "replace").decode() for t in self.codes], pa.string())
        table = {
            "step": _nullable(self.steps),
            "tag": pa.DictionaryArray.from_arrays(_arrow(pa.int32(), self.tags), names),
            "value": _arrow(pa.float64(), self.values),
            "time": _nullable(self.times) if self.timed else pa.nulls(len(self.times), pa.float64()),
            "rank": _nullable(self.ranks),
            "at": _arrow(pa.int64(), self.at),
        }
        self._clear()
        return record_batch("metrics", table)


class BatchRows:
    """Rows of the batches table, one for each sample.

    Rows of one step and rank that follow each other are one batch, so positions go on counting. Where the shards of
    a row do not belong to its samples one to one, each shard has a row of its own, without sample and position.
    """

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank
        self._next: dict[int | None, tuple[int | None, int]] = {}
        self._clear()

    def _clear(self) -> None:
        self.steps, self.ranks, self.positions, self.at = array("q"), array("q"), array("q"), array("q")
        self.samples: list[str | None] = []
        self.shards: list[str | None] = []

    def add(self, part: Part) -> None:
        for row, (samples, shards, paired) in enumerate(part.samples or ()):
            step, rank = part.step_of(row), part.rank_of(row, self.rank)
            previous, start = self._next.get(rank, (None, 0))
            if part.positions is not None:
                start = part.positions[row]
            elif previous != step or step is None:
                start = 0
            n = len(samples)
            self._next[rank] = (step, start + n)
            self.positions.extend(range(start, start + n))
            self.samples += samples
            self.shards += shards if paired else [None] * n
            if shards and not paired:
                self.positions.extend([MISSING] * len(shards))
                self.samples += [None] * len(shards)
                self.shards += shards
                n += len(shards)
            self.steps.extend(array("q", [MISSING if step is None else step]) * n)
            self.ranks.extend(array("q", [MISSING if rank is None else rank]) * n)
            self.at.extend(array("q", [part.at[row]]) * n)

    def batch(self) -> pa.RecordBatch:
        """The rows so far; the next ones start anew."""
        table = {
            "step": _nullable(self.steps),
            "rank": _nullable(self.ranks),
            "position": _nullable(self.positions),
            "sample": _text(self.samples),
            "shard": _text(self.shards),
            "how": pa.repeat("recorded", len(self.steps)),
            "at": _arrow(pa.int64(), self.at),
        }
        self._clear()
        return record_batch("batches", table)


def _arrow(kind: pa.DataType, values: array[Any]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _nullable(values: array[Any]) -> pa.Array:
    """Whole numbers with MISSING, or floats with NaN, as nulls."""
    if values.typecode == "d":
        times = _arrow(pa.float64(), values)
        return pc.if_else(pc.is_nan(times), None, times)
    found = _arrow(pa.int64(), values)
    missing = pc.equal(found, MISSING)
    return pc.if_else(missing, None, found) if pc.any(missing).as_py() else found


def _text(values: list[str | None]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:  # half of a surrogate pair
        return pa.array([v and v.encode("utf-8", "replace").decode() for v in values], pa.string())
