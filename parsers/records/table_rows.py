"""From the rows of a table to the rows of ours, for the parsers of tables (CSV, Parquet): helpers, no parser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parsers import arrow
from parsers.tables import Rows, record_batch

if TYPE_CHECKING:
    import numpy as np


@dataclass
class EpochClock:
    """Turns a step that restarts with every epoch (``batch`` of a nested loop) into one that grows through the run.

    An epoch's length is its last step plus the spacing of its steps minus its first; a log whose steps do not restart
    with an epoch is left alone. An epoch seen before (a restart from a checkpoint) keeps its place. Epochs before the
    file's first count nothing, for the file does not say how long they were.
    """

    epoch: int | None = None
    first: int = 0  # of the epoch
    last: int | None = None
    spacing: int = 1
    length: int = 0
    offset: int = 0
    offsets: dict[int, int] = field(default_factory=dict)

    def step(self, step: int | None, epoch: float | None) -> int | None:
        """The growing step of a row; rows without an epoch belong to the epoch before them."""
        if step is None:
            return None
        now = self.epoch if epoch is None or not math.isfinite(epoch) else math.floor(epoch)
        if self.last is None:
            self.first = step
        elif now != self.epoch:
            if self.epoch is not None and now is not None:
                self._turn(step, self.epoch, now)
            self.first = step
        elif step > self.last:
            self.spacing = step - self.last
        self.epoch, self.last = now, step
        return step + self.offset if -(2**63) <= step + self.offset < 2**63 else None

    def _turn(self, step: int, before: int, now: int) -> None:
        assert self.last is not None
        if self.offset:
            self.offsets[before] = self.offset
        if now < before:
            known = max((e for e in self.offsets if e <= now), default=None)
            self.offset = 0 if known is None else self.offsets[known] + self.length * (now - known)
        elif step < self.last and step <= self.first + self.spacing:
            self.length = self.last + self.spacing - self.first
            self.offset += self.length * (now - before)

    def untouched(self, steps: np.ndarray[Any, Any], epochs: np.ndarray[Any, Any]) -> bool:
        """True where no step of a whole block needs an offset: then the block counts as seen. Epochs may be NaN."""
        import numpy as np

        if self.offset or not len(steps) or (np.diff(steps) < 0).any() or (self.last is not None and steps[0] < self.last):
            return False
        known = np.isfinite(epochs)
        if (self.epoch is None and (self.last is not None or not known[0])) or (known.any() and not (np.abs(epochs[known]) < 2**53).all()):
            return False
        place = np.maximum.accumulate(np.where(known, np.arange(len(steps)), -1))
        now = np.where(place < 0, float(self.epoch or 0), np.floor(epochs[np.maximum(place, 0)]))
        before = np.concatenate([[now[0] if self.epoch is None else self.epoch], now[:-1]])
        if (now < before).any():
            return False
        steps_before = np.concatenate([[steps[0] if self.last is None else self.last], steps[:-1]])
        turns = np.flatnonzero(now != before)
        if self.last is None or len(turns):
            self.first = int(steps[turns[-1]] if len(turns) else steps[0])
        moves = np.flatnonzero((now == before) & (steps > steps_before))
        if len(moves):
            self.spacing = int(steps[moves[-1]]) - int(steps_before[moves[-1]])
        self.epoch, self.last = int(now[-1]), int(steps[-1])
        return True


class Manifest:
    """Writes rows of the ``batches`` table, one for each sample.

    Rows of one step and rank that follow each other are one batch, so positions go on counting. Where the shards of a
    row do not match its samples one to one, each shard has a row of its own without a sample.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._next: dict[int | None, tuple[int | None, int]] = {}

    def add(self, step: int | None, rank: int | None, samples: list[str], shards: list[str], position: int | None, at: int) -> None:
        previous, start = self._next.get(rank, (None, 0))
        if position is not None:
            start = position
        elif previous != step:
            start = 0
        self._next[rank] = (step, start + len(samples))
        matched = bool(samples) and (len(shards) == len(samples) or len(shards) == 1)
        for i, sample in enumerate(samples):
            shard = shards[i if len(shards) > 1 else 0] if matched else None
            self.rows.add("batches", step=step, rank=rank, position=start + i, sample=sample, shard=shard, how="recorded", at=at)
        if not matched:
            for shard in shards:
                self.rows.add("batches", step=step, rank=rank, shard=shard, how="recorded", at=at)


def wide_batch(tags: Sequence[str], values: Sequence[pa.Array], **axes: pa.Array | None) -> pa.RecordBatch:
    """Columns of metrics (float64, null where not logged) as metric rows in the order of the table, row by row.

    ``axes`` are step, time, rank and at: one entry for each row of the table.
    """
    import numpy as np

    wide = len(tags)
    logged = [arrow.valid(v) for v in values]
    everywhere = np.ones(len(values[0]), np.bool_)
    places = np.flatnonzero(np.column_stack([everywhere if v is None else v for v in logged]))
    matrix = np.column_stack([arrow.values(v) for v in values]).ravel()
    rows = places // wide
    columns: dict[str, Any] = {name: _taken(axis, rows) for name, axis in axes.items() if axis is not None}
    tag = arrow.coded(places % wide, tags)
    return record_batch("metrics", {"value": arrow.numbers(matrix[places]), "tag": tag, **columns})


def _taken(axis: pa.Array | pa.ChunkedArray, rows: Any) -> pa.Array:
    there = arrow.valid(axis)
    return arrow.numbers(arrow.values(axis)[rows], None if there is None else there[rows])
