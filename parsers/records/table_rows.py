"""Columns of a table (CSV, Parquet) into the parts of a log, by their roles. Helpers, no parser."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.records import cells
from parsers.records.cells import Cell, split_ids
from parsers.records.column_roles import Roles
from parsers.records.gather import Gathered
from parsers.records.parts import MISSING, Floats, Ints, Part, Samples
from parsers.records.vocabulary import plain

Column = Any  # an Arrow array, or a list of cells: numbers, texts, lists, None

_RANKS = 2**31


class TableLog(Gathered):
    """Takes blocks of a table. ``roles`` are the columns that its rows have now, ``tags`` their names as metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.tags: list[str] = []
        self.roles = Roles()
        self.row_number = 0
        self.first_run: str | None = None

    def columns_are(self, names: list[str], tags: list[str], roles: Roles) -> None:
        self.names, self.tags, self.roles = names, tags, roles
        if not roles.refusal and roles.steps_are != "steps":
            self.note(f"steps are {roles.steps_are}")

    def used(self) -> list[int]:
        """The columns that :meth:`take` asks for."""
        r = self.roles
        single = (r.step, r.epoch, r.time, r.rank, r.tag, r.value, r.run, r.sample, r.shard, r.position)
        return sorted({i for i in (*single, *r.metrics) if i is not None})

    def take(self, columns: Mapping[int, Column], at: Ints) -> None:
        """A block of rows; ``columns`` by their position in the table."""
        r, n = self.roles, len(at)
        if not n:
            return
        part = Part(at)
        self.parts.append(part)
        part.steps = np.arange(self.row_number, self.row_number + n)
        self.row_number += n
        if r.step is not None:
            part.step_key, part.steps = plain("".join(self.names[r.step : r.step + 1])), _whole(columns[r.step])
            if r.epoch not in (None, r.step):
                part.epochs = _floats(columns[r.epoch])[0]
        if r.time is not None:
            part.times = _times(columns[r.time], r.time_scale)
            part.zoneless = not r.time_scale and any(cells.is_zoneless(x) for x in _items(columns, r.time, n)[:1])
        if r.rank is not None:
            ranks = _whole(columns[r.rank])
            part.ranks = np.where((ranks >= 0) & (ranks < _RANKS), ranks, MISSING)
        if r.sample is not None or r.shard is not None:
            part.samples = [_samples(a, b) for a, b in zip(_items(columns, r.sample, n), _items(columns, r.shard, n), strict=True)]
            part.positions = None if r.position is None else _whole(columns[r.position])
        if r.tag is not None and r.value is not None:
            tags = self._tags(_items(columns, r.tag, n), _items(columns, r.run, n))
            part.columns = _long(tags, *_floats(columns[r.value]))
        for i in r.metrics:
            values, logged = _floats(columns[i])
            places = None if logged is None or logged.all() else np.flatnonzero(logged)
            part.columns.append((self.tags[i], places, values if places is None else values[places]))

    def _tags(self, tags: list[Any], runs: list[Any]) -> list[str | None]:
        """The metrics of a long table; those of another run than the file's first have its name in front."""
        self.first_run = self.first_run or next((str(run) for run in runs if run is not None), None)
        return [
            None if tag is None else str(tag).strip() if run is None or str(run) == self.first_run else f"{run}/{str(tag).strip()}"
            for tag, run in zip(tags, runs, strict=True)
        ]


def as_cell(value: Any) -> Cell:
    """A Python value as a cell of a table: numbers, text; a list as the text that lists its items."""
    if isinstance(value, (bool, bytes)):
        return None
    if isinstance(value, str):
        return cells.cell(value)
    if isinstance(value, list):
        return " ".join(str(v) for v in islice(value, 50))
    return value if isinstance(value, (int, float)) else None


def _items(columns: Mapping[int, Column], i: int | None, n: int) -> list[Any]:
    """The values of a column, None for each row where there is no such column."""
    if i is None:
        return [None] * n
    column = columns[i]
    return column.to_pylist() if isinstance(column, pa.Array) else list(column)


def _whole(column: Column) -> Ints:
    if isinstance(column, pa.Array):
        if column.type == pa.int64():
            return arrow.filled(column, MISSING)
        column = [as_cell(v) for v in column.to_pylist()]
    found = [cells.whole(v) for v in column]
    return np.array([MISSING if v is None else v for v in found], np.int64)


def _floats(column: Column) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Values and which are logged. Text in a column of numbers is not logged unless it says a number ('NaN', 'Infinity')."""
    if isinstance(column, pa.Array):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            column = column if arrow.is_number(column.type) else column.cast(pa.float64(), safe=False)
            found, logged = arrow.values(column).astype(np.float64), arrow.valid(column)
            return found if logged is None else np.where(logged, found, np.nan), logged
        column = [as_cell(v) for v in column.to_pylist()]
    logged = np.array([isinstance(v, (int, float)) for v in column], np.bool_)
    return np.array([v if isinstance(v, (int, float)) else np.nan for v in column], np.float64), logged


def _times(column: Column, unit: float) -> Floats:
    if unit:
        return _floats(column)[0] * unit
    found = [cells.seconds(v) for v in (column.to_pylist() if isinstance(column, pa.Array) else column)]
    return np.array([np.nan if v is None else v for v in found], np.float64)


def _samples(sample: Any, shard: Any) -> Samples:
    ids, shards = split_ids(sample), split_ids(shard)
    paired = bool(ids) and len(shards) in (1, len(ids))
    return ids, shards * len(ids) if paired and len(shards) == 1 else shards, paired


def _long(tags: list[str | None], values: Floats, logged: NDArray[np.bool_] | None) -> list[tuple[str, Ints | None, Floats]]:
    """Rows of one metric each as columns, by metric."""
    codes = {tag: i for i, tag in enumerate(dict.fromkeys(t for t in tags if t is not None))}
    code = np.array([codes.get(t, -1) if t is not None else -1 for t in tags])
    if logged is not None:
        code[~logged] = -1
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(len(codes) + 1))
    groups = zip(codes, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [(tag, order[a:b], values[order[a:b]]) for tag, a, b in groups if b > a]
