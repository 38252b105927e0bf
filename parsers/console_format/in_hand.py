"""The measurements of a console log that wait to be handed over: those of lines that were read by their words, and those of known shapes."""

from __future__ import annotations

import pyarrow as pa

from parsers.console_format.line_prefix import Where
from parsers.console_format.line_shapes import Row, Shapes
from parsers.console_format.redraws import Redraws, moved
from parsers.console_format.shape_columns import batch


class InHand:
    """Rows of ``metrics`` and of ``shapes``, those of a bar until its count moves."""

    def __init__(self) -> None:
        self.metrics, self.shapes = list[Row](), Shapes()
        self._redraws, self._handed_over = Redraws(), False
        self.redrawn: tuple[object, int] = (None, 0)  # key and number of the rows that the next update may replace

    def size(self) -> int:
        """Rows that wait."""
        return len(self.metrics) + self.shapes.size()

    def empty(self) -> bool:
        """Was nothing measured so far?"""
        return not self._handed_over and not self.size()

    def flush(self) -> pa.RecordBatch | None:
        """What waits, as a table; None where nothing does."""
        self._place(*self._redraws.handed_over())
        rows, self.metrics, self.redrawn = self.metrics, [], (None, 0)
        shapes = self.shapes.with_rows()
        self._handed_over = self._handed_over or bool(rows or shapes)
        return batch(rows, shapes) if rows or shapes else None

    def put(self, where: Where, step: int | None, pairs: list[tuple[str, float]], key: object = None) -> None:
        """Rows; those of an update that has the same key are replaced."""
        if key is not None and self.redrawn[0] == key and self.redrawn[1] <= len(self.metrics):
            del self.metrics[len(self.metrics) - self.redrawn[1] :]
        self.redrawn = (key, len(pairs))
        self.metrics += [(where.place, step, tag, value, where.time, where.rank) for tag, value in pairs]

    def drawn(self, place: int, step: int | None, values: tuple[str, ...]) -> None:
        """An update of a bar that counts batches, whose row comes next: what it says of those before."""
        self._place(*self._redraws.drawn(place, step, values))

    def _place(self, steps: dict[int, int], replaced: set[int]) -> None:
        if steps or replaced:
            self.metrics = moved(self.metrics, steps, replaced)
            self.shapes.redrawn(steps, replaced)
