"""Tables whose rows are what is measured and whose columns are of which data: ``METRIC | TRAIN | VALIDATION``, then ``Loss | 0.18 | 0.87``."""

from __future__ import annotations

from parsers.console_format.grammars import EVAL, NUM
from parsers.console_format.line_prefix import number
from parsers.lazy_regex import lazy_re

_CORNER = {"metric", "metrics", "measure", "name", "score"}  # what stands above the names of the rows
_SPLITS = {"train": "train", "training": "train"} | EVAL
_NAME, _NUMBER = lazy_re(r"[A-Za-z][\w @/.()-]{0,40}"), lazy_re(rf"({NUM}) ?%?")
_LONGEST = 200  # characters of such a line (a bound)


class SplitColumns:
    """The columns of the table that is open; a line of no row closes it, but for one of rules."""

    def __init__(self) -> None:
        self._columns: list[str] = []

    def read(self, body: str) -> list[tuple[str, float]] | None:
        """What a row of the table measures, nothing for the line of its names; None for any other line."""
        if "|" not in body or len(body) > _LONGEST:
            if self._columns and body.strip("-=+ \t"):
                self._columns = []
            return None
        first, *cells = [c.strip() for c in body.strip().strip("|").split("|")]
        named = [_SPLITS.get(c.lower(), "") for c in cells]
        if first.lower() in _CORNER and len(named) > 1 and all(named):
            self._columns = named
            return []
        values = [_NUMBER.fullmatch(c) for c in cells]
        if not self._columns or len(cells) != len(self._columns) or not _NAME.fullmatch(first) or not all(values):
            self._columns = self._columns if not body.strip("-=+| \t") else []
            return None
        return [(f"{split} {first}", number(m[1])) for split, m in zip(self._columns, values, strict=True) if m is not None]
