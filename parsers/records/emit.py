"""Columns of metric rows and of batches, handed over as Arrow arrays without a copy. Helpers, no parser."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.records.parts import MISSING, Ints, Part
from parsers.tables import record_batch


class MetricRows:
    """Rows of the metrics table; ``rank`` stands where a part has none."""

    def __init__(self, rank: int | None = None) -> None:
        self.rank = MISSING if rank is None else rank
        self.codes: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[dict[str, NDArray[Any]]] = []
        self.length = 0
        self.timed = False

    def add(self, part: Part) -> None:
        """Row by row, the metrics of a row in the order of its keys."""
        n = len(part.at)
        codes = np.array([self.codes.setdefault(tag, len(self.codes)) for tag, _, _ in part.columns], np.int32)
        columns = [values for _, _, values in part.columns]
        if all(places is None for _, places, _ in part.columns):
            row = np.repeat(np.arange(n), len(columns))
            tag = np.tile(codes, n)
            value = np.stack(columns, axis=1).ravel() if columns else np.zeros(0)
        else:
            row = np.concatenate([np.arange(n) if places is None else places for _, places, _ in part.columns])
            order = np.argsort(row, kind="stable")
            row, tag = row[order], np.repeat(codes, [len(c) for c in columns])[order]
            value = np.concatenate(columns)[order]
        self.timed |= part.times is not None
        wide = {
            "at": part.at,
            "step": np.full(n, MISSING) if part.steps is None else part.steps,
            "rank": np.full(n, self.rank) if part.ranks is None else part.ranks,
            "time": np.full(n, np.nan) if part.times is None else part.times,
        }
        self._pieces.append({"tag": tag, "value": value, **{name: column[row] for name, column in wide.items()}})
        self.length += len(value)

    def batch(self) -> pa.RecordBatch:
        """The rows so far; the next ones start anew."""
        first = self._pieces[0]
        whole = first if len(self._pieces) == 1 else {k: np.concatenate([p[k] for p in self._pieces]) for k in first}
        table = {
            "step": _nullable(whole["step"]),
            "tag": arrow.coded(whole["tag"], list(self.codes)),
            "value": arrow.numbers(whole["value"]),
            "at": arrow.numbers(whole["at"]),
        }
        if self.timed:
            table["time"] = arrow.numbers(whole["time"], ~np.isnan(whole["time"]))
        if (whole["rank"] != MISSING).any():
            table["rank"] = _nullable(whole["rank"], np.int32)
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
            if part.positions is not None and part.positions[row] != MISSING:
                start = int(part.positions[row])
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
            "step": _nullable(np.array(self.steps)),
            "rank": _nullable(np.array(self.ranks), np.int32),
            "position": _nullable(np.array(self.positions)),
            "sample": arrow.texts(self.samples),
            "shard": arrow.texts(self.shards),
            "how": arrow.repeated("recorded", len(self.steps)),
            "at": arrow.numbers(np.array(self.at)),
        }
        self._clear()
        return record_batch("batches", table)


def _nullable(values: Ints, kind: type[np.integer[Any]] = np.int64) -> pa.Array:
    """Whole numbers, MISSING as null."""
    return arrow.numbers(values.astype(kind, copy=False), values != MISSING)
