"""Text into a reader of console lines, and what it gathered out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from parsers import arrow
from parsers.console_format import window_width
from parsers.console_format.blocks import is_border
from parsers.console_format.reader import Reader
from parsers.lazy_regex import lazy_re
from parsers.tables import Gap

ANSI = lazy_re(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78M])")
_WORD = lazy_re(r"[^\W_]")
LOOKED_AT = 200  # lines by which it shows whether a text measures anything at steps


def feed(reader: Reader, text: str, n: int, ended: bool) -> int:
    """Hands the lines of a piece to the reader; returns the number of the line that the next piece begins in."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    lines = text.split("\n")
    torn = lines.pop() if ended else ""
    last = "" if ended else lines.pop() if lines and not torn else torn
    if "At line:" in text:
        lines = window_width.unbroken(lines)
    i = 0
    while i < len(lines):
        if alike := reader.measured.alike(lines, i, n):
            i += alike
            continue
        s = lines[i]
        if "\r" in s or "\0" in s:
            _updates(reader, s, n + i, whole_line=True)
        else:
            reader.line((n + i) << 20, s)
        i += 1
    if (latest := next((i for i in range(len(lines) - 1, -1, -1) if _WORD.search(lines[i])), None)) is not None:
        reader.latest = n + latest, lines[latest].rstrip().rpartition("\r")[2]
    n += len(lines)
    if _WORD.search(last):
        reader.latest = n, last.rstrip().rpartition("\r")[2]
    if last:
        _updates(reader, last, n, whole_line=False)
    return n


def _updates(reader: Reader, text: str, n: int, whole_line: bool) -> None:
    """One line of a bar that was redrawn by carriage returns, or one with a hole of NULs in it."""
    if "\0" in text:
        for hole in re.finditer("\0+", text):
            reader.gaps.append(Gap(f"line {n}", f"{len(hole[0]):,} NUL bytes where text should be"))
    parts = [p for p in re.split(r"(\r+|\0+)", text) if p]
    for i, part in enumerate(parts):
        if part[0] not in "\r\0" and part.strip():
            cut_here = parts[i + 1][0] == "\0" if i + 1 < len(parts) else not whole_line
            reader.line(n << 20 | min(i, (1 << 20) - 1), part, torn=cut_here)


def flush(reader: Reader) -> Iterator[pa.RecordBatch | Gap]:
    """What the reader has gathered so far."""
    yield from reader.gaps
    reader.gaps.clear()
    yield from reader.rows.flush()
    if (batch := reader.measured.flush()) is not None:
        yield batch


_FRAME, _LETTERS = lazy_re(r' {2}File "[^"]{1,300}", line \d{1,6}, in \S'), lazy_re(r"[A-Za-z]{2}")


def says_steps(lines: list[str], *, values: bool = False) -> int:
    """How many of the first lines measure something at a step, or how many values they give: a table of one step has a row for each.

    The lines of a box count, whose values are given at its lower border."""
    reader = Reader(srun=False)
    for n, text in enumerate(lines[:LOOKED_AT]):
        reader.line(n << 20, text[:2000])
    reader.finish()
    found = reader.measured.flush()
    at = [] if found is None else arrow.values(found["at"])[arrow.present(found["step"])].tolist()
    return len(at) if values else sum(_height(lines, n) for n in set(at))


def is_console(lines: list[str]) -> bool:
    """Is a text that is called a table what a console printed? Most of its lines measure something at a step, or a program died in it."""
    if any(_FRAME.match(s) for s in lines[:LOOKED_AT]):
        return True
    worded = sum(_LETTERS.search(s) is not None for s in lines[:LOOKED_AT]) * 2 > len(lines[:LOOKED_AT])
    return worded and says_steps(lines) * 2 > len(lines[:LOOKED_AT])


def _height(lines: list[str], n: int) -> int:
    """Of the box whose lower border line ``n`` is, in lines; 1 for a line that is none."""
    if not is_border(lines[n]):
        return 1
    return 2 + next((i for i in range(n) if is_border(lines[n - 1 - i])), n - 1)
