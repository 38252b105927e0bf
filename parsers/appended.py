"""What was appended to a log since it was last looked at, without reading the rest again.

A parser says how its files grow: ``GROWS = "lines"`` (each line stands alone), ``"rows"`` (each below the header in the first
line) or ``"records"`` (TFRecords). The whole new ones are parsed as a file of their own. So what only the whole file tells (a
step that no column names, a plugin that only the first record of a tag names) is missing here: enough to raise an alarm,
not to judge a run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import BinaryIO

import parsers
from parsers.runs.assemble import FileRead

MOST = 4 << 20  # bytes that are parsed at a time; of more the last
_HEADER = 1 << 16  # bytes in which the names of columns end
_FRAME = 16  # bytes around the payload of a TFRecord: its length (8), the checksum of that, the checksum of the payload


def grows(format: str) -> str:
    """How files of a format grow; "" where only the whole file can be read."""
    return next((str(getattr(m, "GROWS", "")) for m in parsers.modules() if parsers.name_of(m) == format), "")


def read(path: Path, how: str, begin: int) -> tuple[FileRead | None, int]:
    """What whole lines or records of a file lie behind byte `begin`, and where they end. Raises OSError."""
    with path.open("rb") as f:
        size = f.seek(0, 2)
        begin = 0 if size < begin else begin  # it was written anew
        if how == "records":
            begin, new = _records(f, begin, size)
        else:
            begin, new = _lines(f, begin, size)
        f.seek(0)
        head = f.readline(_HEADER) if how == "rows" and begin else b""
    if not new.strip():
        return None, begin + len(new)
    with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        piece = Path(folder) / path.name
        piece.write_bytes(head + new)
        return parsers.read_file(piece, Path(folder)), begin + len(new)


def _lines(f: BinaryIO, begin: int, size: int) -> tuple[int, bytes]:
    """The whole lines from `begin` on, of many the last, and where they begin."""
    if size - begin > MOST:
        f.seek(size - MOST)
        begin = size - MOST + len(f.readline())
    f.seek(begin)
    new = f.read(max(size - begin, 0))
    return begin, new[: new.rfind(b"\n") + 1]


def _records(f: BinaryIO, begin: int, size: int) -> tuple[int, bytes]:
    """The whole records from `begin` on, as far as MOST bytes reach, and where they begin. A larger one is passed over."""
    f.seek(begin)
    data, at = f.read(min(size - begin, MOST)), 0
    while at + _FRAME <= len(data):
        following = at + _FRAME + int.from_bytes(data[at : at + 8], "little")
        if following > len(data):
            if not at and len(data) == MOST and begin + following <= size:
                return begin + following, b""
            break
        at = following
    return begin, data[:at]
