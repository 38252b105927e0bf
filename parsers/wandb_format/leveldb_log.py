"""Frames the LevelDB log format (W&B's ``.wandb`` files): bytes in, whole records out. It does not look into records.

A file is blocks of 32 KiB, each filled with chunks: crc32 (u32), length (u16), kind (u8), data. A record is one FULL
chunk or FIRST MIDDLE* LAST over the following blocks; fewer than 7 bytes at the end of a block are padding. The
checksum covers kind and data; W&B takes zlib's CRC-32 where LevelDB takes the masked CRC-32C.
Source: LevelDB's ``doc/log_format.md``; ``wandb/sdk/internal/datastore.py`` of wandb 0.29.

Damage costs the record it hits: reading goes on at the next place whose checksum is right, first where the broken
header says, then anywhere in the block, at the latest in the next block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from zlib import crc32

from parsers.lazy_regex import lazy_re
from parsers.tables import Gap

BLOCK = 32768
WINDOW = 64 * BLOCK  # bytes per read; memory follows this, not the size of the file
PAD = 32  # zero bytes behind the records of a window, so that 8-byte loads near their ends stay inside
MAX_RECORD = 1 << 30
_HEADER = Struct("<IHB")
_DAMAGED, _FULL, _FIRST, _MIDDLE, _LAST = range(5)
_SEED = {kind: crc32(bytes([kind])) for kind in (_FULL, _FIRST, _MIDDLE, _LAST)}
_KIND = lazy_re(rb"[\x01-\x04]")
_MAX_TESTS = 1_000_000  # places tested for a chunk; a file that asks for more is noise, and noise must not cost minutes


@dataclass
class Window:
    """Records that end in one stretch of the file: record i is ``data[start[i] : start[i] + length[i]]``."""

    data: bytes = b""
    start: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)  # where the record begins in the file, in bytes


def windows(path: Path, first: int = 0) -> Iterator[Window | Gap]:
    """The records of a file in file order, a Gap for each damaged stretch. ``first``: length of the file's own header.

    Raises OSError where the file cannot be read.
    """
    pending, search, base = _Pending(), _Search(), 0
    with path.open("rb") as file:
        while data := file.read(WINDOW):
            view, window, joined, tail = memoryview(data), Window(), [], len(data)
            for block in range(0, len(data), BLOCK):
                skip = first if base + block == 0 else 0
                end = min(block + BLOCK, len(data))
                for kind, start, stop in _chunks(view, block + skip, end, search):
                    if kind == _FULL and pending.idle:
                        window.start.append(start)
                        window.length.append(stop - start)
                        window.at.append(base + start - 7)
                    elif kind == _DAMAGED:
                        pending.damage(base + start, base + stop, _lost(view, start, stop))
                    elif record := pending.join(kind, base + start - 7, bytes(view[start:stop])):
                        window.start.append(tail)
                        window.length.append(len(record))
                        window.at.append(pending.began)
                        joined.append(record)
                        tail += len(record)
            yield from pending.take_gaps()
            window.data = b"".join([data, *joined, bytes(PAD)])
            yield window
            base += len(data)
    pending.end_of_file(base)
    yield from pending.take_gaps()


class _Pending:
    """What stands between two sound records: the fragments of one that is not whole yet, or a damaged stretch."""

    def __init__(self) -> None:
        self.idle = True
        self.began = 0  # where the record that is being put together begins
        self._parts: list[bytes] = []
        self._bad: tuple[int, int, int | None] | None = None  # from, to, records lost
        self._gaps: list[Gap] = []

    def join(self, kind: int, at: int, data: bytes) -> bytes | None:
        """Takes a sound chunk; returns the record that it completes."""
        if kind in (_MIDDLE, _LAST) and not self._parts:
            if self._bad is None:  # else it belongs to the record that the damage cost
                self._gaps.append(Gap(f"byte {at}", "the end of a record whose beginning is missing", 1))
            return None
        self._close_damage()
        if kind in (_FULL, _FIRST):
            if self._parts:
                self._gaps.append(Gap(f"byte {self.began}", "a record whose end is missing", 1))
            self._parts, self.began = [], at
        self._parts.append(data)
        self.idle = kind in (_FULL, _LAST)
        if not self.idle:
            return None
        record, self._parts = b"".join(self._parts), []
        if len(record) > MAX_RECORD:
            self._gaps.append(Gap(f"byte {self.began}", "a record larger than 1 GiB, not read", 1))
            return None
        return record

    def damage(self, start: int, stop: int, lost: int | None) -> None:
        if self._bad and self._bad[1] == start:
            self._bad = (self._bad[0], stop, None)
        else:
            self._close_damage()
            self._bad = (self.began if self._parts else start, stop, lost)
        self._parts, self.idle = [], False

    def end_of_file(self, size: int) -> None:
        if self._bad and self._bad[1] == size:
            self._gaps.append(Gap(f"byte {self._bad[0]}", "the file is cut off or damaged at its end", self._bad[2]))
            self._bad = None
        self._close_damage()
        if self._parts:
            self._gaps.append(Gap(f"byte {self.began}", "the last record is cut off", 1))

    def take_gaps(self) -> list[Gap]:
        gaps, self._gaps = self._gaps, []
        return gaps

    def _close_damage(self) -> None:
        if self._bad:
            start, stop, lost = self._bad
            what = f"damaged record ({stop - start} bytes)" if lost else f"{stop - start} damaged bytes"
            self._gaps.append(Gap(f"byte {start}", what, lost))
            self._bad = None


def _lost(view: memoryview, start: int, stop: int) -> int | None:
    """1 where the damaged bytes are one chunk by their own header, or the head of one that the file's end cut off."""
    if stop - start < 7:
        return 1
    _, length, kind = _HEADER.unpack_from(view, start)
    promised = start + 7 + length
    cut_off = stop == len(view) and promised > stop
    return 1 if kind in _SEED and (cut_off or promised <= stop < promised + 7) else None


def _chunks(view: memoryview, pos: int, end: int, search: _Search) -> list[tuple[int, int, int]]:
    """The chunks of one block: (kind, start and end of their data), or (_DAMAGED, from, to)."""
    found = []
    unpack, seed = _HEADER.unpack_from, _SEED
    while end - pos >= 7:
        checksum, length, kind = unpack(view, pos)
        start = pos + 7
        stop = start + length
        if kind in seed and stop <= end and crc32(view[start:stop], seed[kind]) == checksum:
            found.append((kind, start, stop))
        else:
            start, stop, kind = pos, search.next_sound(view, pos, stop, end), _DAMAGED
            found.append((kind, start, stop))
        pos = stop
    if pos < end < len(view) or not any(view[pos:end]):
        return found  # padding
    if pos < end and end % BLOCK:
        found.append((_DAMAGED, pos, end))  # a header of which the file's end left less than 7 bytes
    return found


class _Search:
    """Finds the next sound chunk of a block, within a number of tests for the whole file."""

    def __init__(self) -> None:
        self._left = _MAX_TESTS

    def next_sound(self, view: memoryview, pos: int, promised: int, end: int) -> int:
        """Where the broken header at ``pos`` promises the next chunk, else anywhere behind it, else ``end``."""
        if promised <= end < promised + 7:
            return end  # the broken chunk was the last of its block
        if _sound(view, promised, end):
            return promised
        for match in _KIND.finditer(view, pos + 7, end):
            self._left -= 1
            if self._left < 0:
                break
            if _sound(view, match.start() - 6, end):
                return match.start() - 6
        return end


def _sound(view: memoryview, pos: int, end: int) -> bool:
    if pos + 7 > end:
        return False
    checksum, length, kind = _HEADER.unpack_from(view, pos)
    stop = pos + 7 + length
    return kind in _SEED and stop <= end and crc32(view[pos + 7 : stop], _SEED[kind]) == checksum
