"""Lines of one shape that no grammar knows, read with the meaning that they prove: a number that rises from line to line is the step, a word before a number is its name.

`@120 => loss<2.31> gn<0.5>`: where nearly all lines of a file have the same text between their numbers, the first number is whole and rises from each line to the next, and
words stand before others, it is a log. Numbers without a word before them are left: nothing says what they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import line_blocks
from parsers.records.cells import number, whole
from parsers.tables import Gap, Note, Rows

AT = "line"
_NUMBER = lazy_re(r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)(?![\w.]*\w)", re.IGNORECASE)
_BLANKS = lazy_re(r"\s+")
_WORD = lazy_re(r"[A-Za-z][\w./-]*(?=\W*$)")
_LEAST, _MOST = (
    20,
    0.9,
)  # unit: lines that show a habit; share of them that must have one shape, for a header and a last word may have others
_LONGEST = 20_000  # characters of a line: those of one shape are short
Shape = tuple[str, ...]


def shape_of(line: str) -> Shape:
    """The text around the numbers of a line."""
    return tuple(_BLANKS.sub(" ", piece) for piece in _NUMBER.split(line.strip()))


def usual(lines: Sequence[str]) -> Shape | None:
    """The shape that nearly all lines have, where its first number rises and a word names another; None where there is none."""
    lines = [s for s in lines if s.strip()]
    if len(lines) < _LEAST:
        return None
    ((shape, count),) = Counter(map(shape_of, lines)).most_common(1)
    if count < _MOST * len(lines) or len(shape) < 3 or not any(names(shape)):
        return None
    steps = [whole(_NUMBER.findall(s)[0]) for s in lines if shape_of(s) == shape]
    rises = all(a is not None and b is not None and a < b for a, b in pairwise(steps))
    return shape if rises else None


def names(shape: Shape) -> list[str]:
    """The word before each number but the first; nothing where there is none."""
    return [m[0] if (m := _WORD.search(piece)) is not None else "" for piece in shape[1:-1]]


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    rows, shape, other = Rows(), None, 0
    for block in line_blocks.blocks(path):
        if isinstance(block, Gap):
            yield block
            continue
        lines = block[1].decode("utf-8", "replace").split("\n")
        shape = shape or usual(lines[:500])
        for at, line in enumerate(lines, block[0]):
            found = _NUMBER.findall(line) if len(line) <= _LONGEST else []
            if shape is None or not found or shape_of(line) != shape:
                other += bool(line.strip())
                continue
            for name, text in zip(names(shape), found[1:], strict=True):
                if name and (value := number(text)) is not None:
                    rows.metric(whole(found[0]), name, value, at=at)
        yield from rows.flush()
    if shape is not None:
        yield Note(
            f"no known format: all lines are like '{'0'.join(shape)}'; the first number rises from line to line and is taken for the step"
        )
    if other:
        yield Gap("line 1", f"{other} line{'s' if other > 1 else ''} of other shapes", other)
