"""Tables whose columns are set apart by blanks, below a comment with their names: DeepXDE's ``loss.dat``, ``numpy.savetxt``, gnuplot's data.

- The last line of comment before the numbers names the columns, by commas, by two or more blanks, or by words: ``# step, loss_pde, loss_bc``. A comment that
  names as many columns further down names those of what follows.
- Which column is the step is told as in JSON lines. Rows of another width are gaps, and so is a last line that lacks its line end and is shorter than all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import cells, line_blocks
from parsers.records.gaps import GapList
from parsers.records.gpu_monitor_rows import dmon_columns
from parsers.records.json_rows import Log
from parsers.tables import HEAD_BYTES, Gap, Note

AT = "line"
GROWS = "rows"

_LOOKED_AT = 20  # rows, of which three in four have to be numbers
# One name for all terms of a loss (deepxde.utils.external.save_loss_history). How many metrics follow is not told: none or one, by the width
_DEEPXDE = lazy_re(r"step, loss_train, loss_test, metrics_test")
_WIDE = lazy_re(r"\s{2,}|\t")


def claims(path: Path, head: bytes) -> bool:
    if not head.lstrip().startswith(b"#") or line_blocks.encoding(head) != "utf-8" or head.translate(None, line_blocks.CONTROLS) != head:
        return False
    lines = [x for x in head.decode("utf-8", "replace").splitlines() if x.strip()]
    lines = lines[:-1] if len(head) >= HEAD_BYTES else lines
    first = next((i for i, x in enumerate(lines) if not x.startswith("#")), 0)
    if not first or dmon_columns(lines[0]):
        return False
    rows = [_numbers(x) for x in lines[first : first + _LOOKED_AT] if not x.startswith("#")]
    width = len(rows[0] or ())
    sound = sum(r is not None and len(r) == width for r in rows)
    return width > 1 and sound * 4 >= 3 * len(rows) and _names(lines[first - 1], width) is not None


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metric rows in file order. Raises OSError only."""
    log, gaps, names, comment, shortest = Log(), GapList(), list[str](), "", 0
    for block in line_blocks.blocks(path):
        if isinstance(block, Gap):
            yield block
            continue
        at, data = block
        rows: list[dict[str, float]] = []
        places: list[int] = []
        *lines, torn = data.decode("utf-8", "replace").split("\n")
        for n, line in enumerate([*lines, torn] if torn else lines, start=at):
            if not line.strip() or line.startswith("#"):
                comment = line if line.strip() else comment
                continue
            values = _numbers(line)
            if values is not None and comment:
                names, comment = _names(comment, len(values)) or names, ""
            if values is None or len(values) != len(names):
                gaps.add(n, f"not the {len(names)} numbers that the comment above names", 1)
            elif n == at + len(lines) and len(line) < shortest:
                gaps.add(n, "the last line is cut off", 1)
            else:
                rows.append(dict(zip(names, values, strict=True)))
                places.append(n)
                shortest = min(shortest or len(line), len(line))
        yield from log.add(rows, places)
    yield from gaps.told()
    yield from log.finish()


def _numbers(line: str) -> list[float] | None:
    found = [cells.number(x) for x in line.split()]
    return None if any(x is None for x in found) else [x for x in found if x is not None]


def _names(comment: str, width: int) -> list[str] | None:
    """The names in a comment, where there is one for each column."""
    text = comment.lstrip("#").strip()
    if _DEEPXDE.fullmatch(text) and width > 2:
        metrics = (width - 1) % 2
        terms = range((width - 1 - metrics) // 2)
        return ["step", *(f"loss_train/{i}" for i in terms), *(f"loss_test/{i}" for i in terms), *["metrics_test"] * metrics]
    for parts in (text.split(","), _WIDE.split(text), text.split()):
        names = [p.strip().strip("\"'") for p in parts]
        if len(names) == width and all(re.search("[A-Za-z]", n) for n in names) and len(set(names)) == width:
            return names
    return None
