"""Rows of a delimited table into ours, once its columns are known, and what went wrong: a helper of csv_log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import column_roles, csv_blocks, delimited
from parsers.records.column_roles import Cell, Roles
from parsers.records.table_rows import EpochClock, Manifest
from parsers.tables import Gap, Note, Rows

_MAX_GAPS = 100
_MAX_NOTES = 20


class Writer:
    """Knows what the columns are, and keeps what a row needs of the rows before it."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, Rows()
        self.notes: dict[str, None] = {}
        self.names: list[str] = []
        self.tags: list[str] = []
        self.roles = Roles()
        self.delimiter, self.decimal = "", "."
        self.row_number = self.timesteps = 0
        self.monitor: tuple[int, int] | None = None  # columns of episode length and of seconds, in a monitor.csv
        self.t_start: float | None = None
        self.clock, self.manifest = EpochClock(), Manifest(self.rows)
        self.first_run: str | None = None
        self.texts: dict[str, tuple[str, int, bool]] = {}  # tag -> first text, its line, whether it is constant
        self.numeric: set[str] = set()
        self.last_lengths: list[int] = []  # of the last cells, a few rows back
        self._gaps: list[list[Any]] = []  # first line, last line, what, lost, tag

    def dialect(self, lines: Sequence[str]) -> None:
        self.delimiter = delimited.delimiter(lines)
        self.decimal = delimited.decimal(lines, self.delimiter)

    def layout(self, names: list[str], lines: Sequence[str], named: bool) -> None:
        sample: list[list[str]] = []
        for record in delimited.records(lines):
            row = delimited.split(record, self.delimiter) or []
            if sample and delimited.is_header(row, False):
                break  # what follows has other columns
            if len(row) >= len(names) and not record.startswith("#") and "\x00" not in record:
                sample.append(row)
        cells = [[column_roles.cell(row[i], self.decimal) for row in sample] for i in range(len(names))]
        self.names, self.roles = names, column_roles.assign(names, cells, named)
        self.tags = delimited.tags(names, self.path, self.roles.metrics)
        self.monitor = (names.index("l"), names.index("t")) if {"r", "l", "t"} <= set(names) else None
        if self.monitor:
            self.note("rows are episodes, steps the timesteps up to their end")
        elif self.roles.refusal:
            self.note(self.roles.refusal)
        elif self.roles.steps_are != "steps":
            self.note(f"steps are {self.roles.steps_are}")
        if any(n.startswith(("Train/Samples/", "Train_Samples_")) for n in [*names, self.path.name]):
            self.note("steps count samples (DeepSpeed csv_monitor)")

    def row(self, at: int, cells: Sequence[str]) -> None:
        roles = self.roles
        self.last_lengths = [*self.last_lengths[-19:], len(cells[-1].strip())]
        if roles.refusal and not self.monitor:
            return
        values: list[Cell] = [column_roles.cell(c, self.decimal) for c in cells]
        values += [None] * (len(self.names) - len(values))
        step, time, rank = self.axes(at, cells, values)
        if roles.sample is not None or roles.shard is not None:
            samples, shards = (
                [] if i is None or values[i] is None else column_roles.split_ids(cells[i]) for i in (roles.sample, roles.shard)
            )
            position = None if roles.position is None else column_roles.whole(values[roles.position])
            self.manifest.add(step, rank, samples, shards, position, at)
        if roles.tag is not None and roles.value is not None:
            value = values[roles.value]
            if isinstance(value, float) and values[roles.tag] is not None:
                run = None if roles.run is None else values[roles.run]
                self.rows.metric(step, self.run_prefix(run) + cells[roles.tag].strip(), value, time=time, at=at, rank=rank)
            elif value is not None:
                self.gap(at, "a value that is no number or has no name", 1)
        for i in roles.metrics:
            value = values[i]
            if isinstance(value, float):
                self.numeric.add(self.tags[i])
                self.rows.metric(step, self.tags[i], value, time=time, at=at, rank=rank)
            elif isinstance(value, str):
                self.text(i, value, at)
                self.gap(at, f"column {self.tags[i]!r}: no number", 1, self.tags[i])
        for i in roles.text:
            if values[i] is not None:
                self.text(i, cells[i].strip(), at)

    def axes(self, at: int, cells: Sequence[str], values: Sequence[Cell]) -> tuple[int | None, float | None, int | None]:
        """Step, time and rank of a row."""
        roles = self.roles
        self.row_number += 1
        time = None if roles.time is None else column_roles.seconds(values[roles.time], roles.time_scale)
        rank = None if roles.rank is None else column_roles.whole(values[roles.rank])
        rank = rank if rank is not None and 0 <= rank < 2**31 else None
        if self.monitor:
            length, elapsed = (values[i] for i in self.monitor)
            self.timesteps += column_roles.whole(length) or 0
            return (self.timesteps, self.t_start + elapsed if self.t_start and isinstance(elapsed, float) else None, rank)
        if roles.step is None:
            return self.row_number - 1, time, rank
        step = None if values[roles.step] is None else column_roles.whole(cells[roles.step])
        if step is None and values[roles.step] is not None:
            self.gap(at, f"column {self.tags[roles.step]!r}: no step", 1)
        if roles.epoch is not None and roles.epoch != roles.step:
            epoch = values[roles.epoch]
            step = self.clock.step(step, epoch if isinstance(epoch, float) else None)
        return step, time, rank

    def run_prefix(self, run: Cell) -> str:
        """Rows of another run than the file's first carry its name before the tag."""
        if run is None:
            return ""
        self.first_run = self.first_run or str(run)
        return "" if str(run) == self.first_run else f"{run}/"

    def note(self, text: str) -> None:
        if len(self.notes) < _MAX_NOTES:
            self.notes[text] = None

    def text(self, i: int, text: str, at: int) -> None:
        first, line, constant = self.texts.get(self.tags[i], (text, at, True))
        self.texts[self.tags[i]] = (first, line, constant and text == first)

    def fast(self, first: int, data: bytes) -> pa.RecordBatch | None:
        """A block of sound rows by Arrow; None where the tolerant way must look. Both give the same rows."""
        if not self.names or self.roles.refusal or self.monitor or self.decimal == ",":
            return None
        found = csv_blocks.read(data, self.delimiter, self.roles, self.tags, self.clock, first, self.row_number)
        if found is None:
            return None
        batch, column = found
        self.row_number += data.count(b"\n")
        for i in self.roles.text:
            for text in column[i].unique().to_pylist():
                if column_roles.cell(text) is not None:
                    self.text(i, text.strip(), first)
        self.numeric |= {self.tags[i] for i in self.roles.metrics if column[i].null_count < len(column[i])}
        tail = [x.decode("utf-8", "replace") for x in data[:-1].rsplit(b"\n", 20)[-20:]]
        self.last_lengths = [*self.last_lengths, *(len(x.rpartition(self.delimiter)[2].strip()) for x in tail)][-20:]
        return batch

    def gap(self, at: int, what: str, lost: int, tag: str = "") -> None:
        last = self._gaps[-1] if self._gaps else None
        if last and ((last[2] == what and at <= last[1] + 1) or len(self._gaps) >= 50 * _MAX_GAPS):
            last[1], last[3] = at, last[3] + lost
        else:
            self._gaps.append([at, at, what, lost, tag])

    def end(self) -> Iterator[pa.RecordBatch | Gap | Note]:
        for tag, (text, line, constant) in self.texts.items():
            if constant and tag not in self.numeric:
                self.rows.config(tag, text, at=line)
            elif tag not in self.numeric:
                self.note(f"column {tag!r} is text")
        yield from self.rows.flush()
        damaged = [g for g in self._gaps if not g[4] or g[4] in self.numeric]  # text is no damage in a column of text
        for first, last, what, lost, _ in damaged[:_MAX_GAPS]:
            yield Gap(f"line {first}", what if first == last else f"{what} (to line {last})", lost)
        if rest := damaged[_MAX_GAPS:]:
            yield Gap(f"line {rest[0][0]}", "more damaged lines", sum(g[3] for g in rest))
        yield from (Note(text) for text in self.notes)
