"""The records of an audit, kept as they come: one line a place, many places a part, each part written once under a name of its own.

The command that was started gathers what its workers, here or on other machines, found, and alone writes. A part appears whole or not at all, so a kill
costs at most what was not yet written: half a second's work at first, later a two-hundredth of what was done. A line counts where its place has the same
files with the same stamp, so that a part that is there twice, or is old, adds nothing.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from forensics import remote
from forensics.audits import storage, written_files
from forensics.audits.discover import Place
from parsers.lazy_regex import lazy_re

ROWS = f"{storage.STATE}/rows"
FULL = 1000  # lines of a part: 3 MB
SOON, SHARE = 0.5, 1 / 200  # seconds after which a part is written though it is not full; as a share of the time since the beginning
AGAIN = "again"  # in a record: what it says holds for the worker that found it, and --resume tries again
KEY, SPARE = 24, 8  # characters of a place's key; parts more than full ones would be, before they are put together
_HEAD = lazy_re(rb'\{"key":"([0-9a-f]{24})","stamp":"([^"\\]*)","crc32":(\d+),')


def line(place: Place, records: list[dict[str, Any]]) -> str:
    """What is kept of a place; the checksum is that of the text behind it."""
    from parsers import secrets

    rest = json.dumps({"name": secrets.mask_shapes(place.name), "records": records}, separators=(",", ":"))[1:]
    return f'{{"key":"{place.key}","stamp":"{place.stamp}","crc32":{zlib.crc32(rest.encode())},{rest}'


class Kept:
    """The records in an audit's folder. Of one behind a URL the parts lie in ``mirror``, too, so that each is fetched once."""

    def __init__(self, out: str, mirror: Path) -> None:
        self.out = out
        self.folder = mirror / "rows" if remote.is_url(out) else Path(out) / ROWS
        self.at: dict[str, tuple[str, int, int]] = {}  # key and stamp -> part, offset, bytes
        self.parts: set[str] = set()
        self.waiting: dict[str, str] = {}  # key and stamp -> a line that is in no part yet
        self.began = self.written = time.monotonic()
        self.asked: dict[str, None] = {}  # what this audit wants, in the order of its places
        names = [n for n in storage.names(out, ROWS) if written_files.KEPT["rows"].fullmatch(n)]
        if remote.is_url(out):
            self.folder.mkdir(parents=True)
            names = storage.fetch(out, ROWS, names, self.folder)
        for name in names:
            self._index(name, of_before=True)

    def has(self, place: Place) -> bool:
        mark = place.key + place.stamp
        self.asked[mark] = None
        return mark in self.at or mark in self.waiting

    def of(self, place: Place) -> list[dict[str, Any]] | None:
        """The records of a place that is done; None where it is not, or its files have changed since."""
        mark = place.key + place.stamp
        text: str | bytes | None = self.waiting.get(mark) or (self._read(*self.at[mark]) if mark in self.at else None)
        return None if text is None else list(json.loads(text)["records"])

    def add(self, text: str) -> str:
        """Takes a line from a worker; -> the key of its place."""
        head = _HEAD.match(text[:200].encode())
        assert head is not None
        self.waiting[(head[1] + head[2]).decode()] = text
        now = time.monotonic()
        if len(self.waiting) >= FULL or now - self.written > max(SOON, SHARE * (now - self.began)):
            self.flush()
        return head[1].decode()

    def flush(self) -> None:
        if self.waiting:
            self._write(self.waiting.values())
            self.waiting.clear()
        self.written = time.monotonic()

    def tidy(self) -> None:
        """Many small parts, or many lines of what has changed since: written anew in the order of the places, and the old parts go."""
        keys = {mark[:KEY] for mark in self.asked}
        wanted = [m for m in self.asked if m in self.at] + [m for m in self.at if m[:KEY] not in keys]  # those of a larger audit stay
        if len(self.parts) <= len(wanted) // FULL + SPARE and len(self.at) <= 2 * len(wanted):
            return
        old = sorted(self.parts)
        for i in range(0, len(wanted), FULL):
            self._write(self._read(*self.at[m]).decode().rstrip("\n") for m in wanted[i : i + FULL])
        storage.remove(self.out, *(f"{ROWS}/{name}" for name in old))
        self.parts -= set(old)

    def _write(self, lines: Iterable[str]) -> None:
        name, data = f"{uuid.uuid4().hex}.jsonl", "".join(f"{text}\n" for text in lines).encode("utf-8", "backslashreplace")
        storage.write(self.out, f"{ROWS}/{name}", data)
        if remote.is_url(self.out):
            (self.folder / name).write_bytes(data)
        self._index(name)

    def _index(self, name: str, *, of_before: bool = False) -> None:
        at, unproven = 0, f'"{AGAIN}":true'.encode()  # a quote within a text is escaped
        self.parts.add(name)
        with (self.folder / name).open("rb") as f:
            for text in f:
                if of_before and unproven in text:
                    pass
                elif (head := _HEAD.match(text)) and zlib.crc32(text[head.end() : -1]) == int(head[3]):
                    self.at[(head[1] + head[2]).decode()] = name, at, len(text)
                at += len(text)

    def _read(self, name: str, at: int, size: int) -> bytes:
        with (self.folder / name).open("rb") as f:
            f.seek(at)
            return f.read(size)
