"""Rows of a delimited table into the columns of a log, and what went wrong: a helper of csv_log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from parsers.records import bare_tables, cells, column_roles, csv_blocks, delimited
from parsers.records.gaps import GapList
from parsers.records.table_rows import TableLog
from parsers.records.vocabulary import MONITOR_STEPS
from parsers.tables import FLUSH_ROWS, Gap, Note


class Writer(TableLog):
    """Knows the dialect, and keeps what a row needs of the rows before it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.delimiter, self.decimal = "", "."
        self.named, self.told = False, list[str]()  # by a header; how the columns are called that measure, where there is none
        self.timesteps = 0
        self.monitor: tuple[int, int] | None = None  # columns of episode length and of seconds, in a monitor.csv
        self.t_start: float | None = None
        self.texts: dict[str, tuple[str, int, bool]] = {}  # tag -> first text, its line, whether it is constant
        self.numeric: set[str] = set()
        self.last_lengths: list[int] = []  # of the last cells, a few rows back
        self.gaps = GapList()
        self._held: list[list[Any]] = []  # the cells of rows that were not taken yet ...
        self._lines: list[int] = []  # ... and their lines

    def dialect(self, lines: Sequence[str]) -> None:
        self.delimiter = delimited.delimiter(lines)
        self.decimal = delimited.decimal(lines, self.delimiter)

    def unnamed(self, width: int, lines: Sequence[str]) -> None:
        """Columns without a header."""
        self.note("no header: columns are counted")
        self.layout([f"column_{n + 1}" for n in range(width)], lines, named=False)

    def widen(self, at: int, width: int, lines: Sequence[str]) -> None:
        """Rows of another width than those above: more columns than the header has, or other ones where there is no header."""
        if not self.named:
            self.unnamed(width, lines)
            return
        self.note(f"from line {at} on, rows have {width} columns, {len(self.names)} of them named")
        self.layout([*self.names, *(f"column_{n + 1}" for n in range(len(self.names), width))], lines, named=True)

    def layout(self, names: list[str], lines: Sequence[str], named: bool) -> None:
        self.settle()
        self.named = named
        sample: list[list[str]] = []
        for record in delimited.records(lines):
            row = delimited.split(record, self.delimiter) or []
            if sample and delimited.is_header(row, False):
                break  # what follows has other columns
            if len(row) >= len(names) and not record.startswith("#") and "\x00" not in record:
                sample.append(row)
        columns = [[cells.cell(row[i], self.decimal) for row in sample] for i in range(len(names))]
        roles = column_roles.assign(names, columns, named)
        tags = delimited.tags(names, self.path, roles.metrics)
        left = [] if named else [i for i in roles.metrics if i >= bare_tables.counters(columns)]
        known = bare_tables.tags_of(self.path, [columns[i] for i in left], self.told)
        for i, tag in zip(left, known, strict=False):
            tags[i] = tag
        self.told = [tags[i] for i in left]
        if not named and not known and bare_tables.are_ids(columns):
            roles = replace(roles, refusal="no header, and whole numbers that count nothing: a data set")
        if len(left) > 1 and bare_tables.of_epochs(columns, self.told):
            roles = replace(roles, steps_are="epochs")
        self.monitor = (names.index("l"), names.index("t")) if {"r", "l", "t"} <= set(names) else None
        if self.monitor:
            self.note(MONITOR_STEPS)
            roles = replace(roles, step=len(names), steps_are="steps", time=len(names) + 1, time_scale=1.0, refusal="")
            self.names = names
        if roles.refusal:
            self.note(roles.refusal)
        self.columns_are(names, tags, roles)
        if any(n.startswith(("Train/Samples/", "Train_Samples_")) for n in [*names, self.path.name]):
            self.note("steps count samples (DeepSpeed csv_monitor)")

    def row(self, at: int, texts: Sequence[str]) -> None:
        roles = self.roles
        self.last_lengths = [*self.last_lengths[-19:], len(texts[-1].strip())]
        if roles.refusal:
            return
        values: list[Any] = [cells.cell(c, self.decimal) for c in texts]
        values += [None] * (len(self.names) - len(values))
        if self.monitor:
            values += self._episode(*(values[i] for i in self.monitor))
        elif roles.step is not None and values[roles.step] is not None:
            step = cells.whole(texts[roles.step])  # of the text, for a float holds no step beyond 2**53
            if step is None:
                self.gaps.add(at, f"column {self.tags[roles.step]!r}: no step", 1)
            else:
                values[roles.step] = step
        self._look(at, texts, values)
        for i in (roles.sample, roles.shard, roles.tag):
            if i is not None and values[i] is not None:
                values[i] = texts[i]
        self._held.append(values)
        self._lines.append(at)
        if len(self._held) >= FLUSH_ROWS:
            self.settle()

    def _look(self, at: int, texts: Sequence[str], values: Sequence[Any]) -> None:
        """Remembers what the columns hold, and what should be a number and is none."""
        roles = self.roles
        for i in roles.metrics:
            if isinstance(values[i], (int, float)):
                self.numeric.add(self.tags[i])
            elif values[i] is not None:
                self.text(i, values[i], at)
                self.gaps.add(at, f"column {self.tags[i]!r}: no number", 1, self.tags[i])
        for i in roles.text:
            if values[i] is not None:
                self.text(i, texts[i].strip(), at)
        if roles.tag is not None and roles.value is not None:
            value, tag = values[roles.value], values[roles.tag]
            if value is not None and (tag is None or not isinstance(value, float)):
                self.gaps.add(at, "a value that is no number or has no name", 1)

    def _episode(self, length: Any, elapsed: Any) -> tuple[int, float | None]:
        """Timesteps and time at the end of an episode."""
        self.timesteps += cells.whole(length) or 0
        return self.timesteps, self.t_start + elapsed if self.t_start and isinstance(elapsed, float) else None

    def settle(self) -> None:
        """Takes the rows that were held back."""
        held, lines, self._held, self._lines = self._held, self._lines, [], []
        self.take({i: [row[i] for row in held] for i in self.used()}, np.array(lines, np.int64))

    def text(self, i: int, text: str, at: int) -> None:
        first, line, constant = self.texts.get(self.tags[i], (text, at, True))
        self.texts[self.tags[i]] = (first, line, constant and text == first)

    def fast(self, first: int, data: bytes) -> bool:
        """Takes a block of sound rows by Arrow; False where the tolerant way must look. Both give the same rows."""
        if not self.names or self.roles.refusal or self.monitor or self.decimal == ",":
            return False
        column = csv_blocks.read(data, self.delimiter, self.roles, len(self.tags))
        if column is None:
            return False
        self.settle()
        self.take(column, np.arange(first, first + data.count(b"\n")))
        for i in self.roles.text:
            for text in column[i].unique().to_pylist():
                if cells.cell(text) is not None:
                    self.text(i, text.strip(), first)
        self.numeric |= {self.tags[i] for i in self.roles.metrics if column[i].null_count < len(column[i])}
        tail = [x.decode("utf-8", "replace") for x in data[:-1].rsplit(b"\n", 20)[-20:]]
        self.last_lengths = [*self.last_lengths, *(len(x.rpartition(self.delimiter)[2].strip()) for x in tail)][-20:]
        return True

    def end(self) -> Iterator[pa.RecordBatch | Gap | Note]:
        self.settle()
        for tag, (text, line, constant) in self.texts.items():
            if constant and tag not in self.numeric:
                self.rows.config(tag, text, at=line)
            elif tag not in self.numeric:
                self.note(f"column {tag!r} is text")
        yield from self.gaps.told(self.numeric)  # text is no damage in a column of text
        yield from self.finish()
