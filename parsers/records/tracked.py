"""What the parsers of offline trackers share: rows of one value each, the console that the tracker kept, and the values that it could not write."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from parsers.console_format import unwrapped
from parsers.console_format.unwrapped import Record
from parsers.records.json_rows import Log
from parsers.tables import Gap, Note, table_of

_NAMED = 8  # steps that a note lists


class Tracked(Log):
    """Gathers one run of a tracker: values with the step that they were logged at, and the lines that its program printed."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: list[Record] = []
        self._waiting: list[dict[str, object]] = []
        self._at: list[int] = []

    def value(self, tag: str, value: object, *, step: object, time: float | None, at: int, epoch: object = None) -> None:
        """A value as the tracker wrote it; text ("NaN") is read as the number that it names."""
        row = {"metric": tag, "value": value, "step": step, "timestamp": time}
        self._waiting.append(row if epoch is None else row | {"epoch": epoch})
        self._at.append(at)

    def line(self, text: object, time: float | None, at: int) -> None:
        if isinstance(text, str) and text.strip():
            self.printed.append(Record(at, text, time))

    def rows_out(self) -> Iterator[pa.RecordBatch | Gap | Note]:
        """Everything. Numbers that the program printed stand in the tracker as well: of the console, events and settings are kept."""
        if self._waiting:
            yield from self.add(self._waiting, self._at)
        yield from self.finish()
        for item in unwrapped.read(self.printed) if self.printed else ():
            if isinstance(item, (Gap, Note)) or not self._waiting or table_of(item) != "metrics":
                yield item


def listed(steps: list[int]) -> str:
    """ "steps 3, 7 and 12 more"."""
    shown = ", ".join(map(str, steps[:_NAMED]))
    return f"step{'s' if len(steps) > 1 else ''} {shown}" + (f" and {len(steps) - _NAMED} more" if len(steps) > _NAMED else "")
