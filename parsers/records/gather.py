"""Gathers what one file says, and hands it over once all of its steps are known. A helper, no parser."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from parsers.records import step_clock
from parsers.records.emit import BatchRows, MetricRows
from parsers.records.parts import Part
from parsers.tables import FLUSH_ROWS, Note, Rows

_MAX_NOTES = 20


class Gathered:
    """What one file gave so far: parts (metrics and batches), rows of other tables, and notes on what was left out.

    ``fill``: epochs or row numbers stand for steps in a file that has none. ``rank``: of rows that name none.
    """

    def __init__(self, *, fill: bool = True, rank: int | None = None) -> None:
        self.fill, self.rank = fill, rank
        self.rows = Rows()
        self.parts: list[Part] = []
        self.notes: dict[str, int] = {}

    def note(self, text: str, count: int = 1) -> None:
        if text in self.notes or len(self.notes) < _MAX_NOTES:
            self.notes[text] = self.notes.get(text, 0) + count

    def finish(self) -> Iterator[pa.RecordBatch | Note]:
        """All rows, with the steps that the whole file gives them."""
        for text in step_clock.place(self.parts, self.fill):
            self.note(text)
        metrics, batches = MetricRows(self.rank), BatchRows(self.rank)
        for part in self.parts:
            metrics.add(part)
            batches.add(part)
            part.columns, part.samples = [], None
            if metrics.length >= FLUSH_ROWS:
                yield metrics.batch()
            if len(batches.steps) >= FLUSH_ROWS:
                yield batches.batch()
        if metrics.length:
            yield metrics.batch()
        if batches.steps:
            yield batches.batch()
        yield from self.rows.flush()
        if any(p.zoneless for p in self.parts):
            yield Note("clock without zone, read as UTC", clock="local")
        for text, count in self.notes.items():
            yield Note(text if count == 1 else f"{text} ({count} times)")
