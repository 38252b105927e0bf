"""Logs whose first bytes are zeros. Rotation with copytruncate cuts a log to nothing under a process that goes on to write where it was: a hole is left in front.

What a process writes line by line is copied from the first other byte on into a temporary folder and read as it would be there. There is no line
end among zeros, so the numbers of lines are those of the file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from parsers.tables import HEAD_BYTES, Gap

MARK = bytes(4)  # one of them ends a string in C, two or three begin a character of UTF-32: four are no text
WRITTEN_BY_LINES = {"lines", "rows"}  # see parsers.appended: only what grows so is cut while it is written
_MOST = 1 << 30  # bound: bytes that are looked through; what was never written is passed over, and a preallocated file holds nothing else
_BLOCK = 1 << 20


def rest(path: Path, head: bytes) -> tuple[int, bytes]:
    """Where the first byte lies that is not zero, and the HEAD_BYTES from there; none where there is none."""
    begin = len(head) - len(head.lstrip(b"\0"))
    with path.open("rb") as f:
        if begin == len(head):
            begin = _first_other(f.fileno(), begin)
        f.seek(max(begin, 0))
        return begin, f.read(HEAD_BYTES) if begin >= 0 else b""


def _first_other(file: int, begin: int) -> int:
    """The first byte at or behind `begin` that is not zero; -1: none was found."""
    most = begin + _MOST
    while begin < most:
        with suppress(OSError, AttributeError):  # a system that knows no holes
            data = os.lseek(file, begin, os.SEEK_DATA)
            most, begin = most + data - begin, data
        os.lseek(file, begin, os.SEEK_SET)
        block = os.read(file, _BLOCK)
        if block.strip(b"\0"):
            return begin + len(block) - len(block.lstrip(b"\0"))
        if not block:
            return -1
        begin += len(block)
    return -1


def gap(begin: int) -> Gap:
    return Gap(
        "byte 0",
        f"{begin:,} zero bytes before the first line, as a rotation (copytruncate) leaves them under a process that writes on",
        None,
    )


@contextmanager
def without(path: Path, rel: str, begin: int) -> Iterator[tuple[Path, Path]]:
    """A folder that stands for the run's and the file in it from byte `begin` on, there inside the ``with`` only; ``rel``: its path within the run."""
    with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        copy = Path(folder, rel)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, copy.open("wb") as target:
            source.seek(begin)
            shutil.copyfileobj(source, target)
        yield Path(folder), copy
