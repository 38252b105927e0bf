"""Reads the zips of offline trackers: Comet (``<id>.zip``: messages.json, experiment.json) and ClearML (``offline-<id>.zip``: metrics.jsonl, log.jsonl, task.json).

The files that matter are unpacked into a temporary folder, never beside the zip, and read as they are read outside of one. Names of entries are compared with those and
never used as paths; an entry larger than a bound is left. Comet leaves an empty zip where its process was killed.
"""

from __future__ import annotations

import lzma
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.formats import clearml_offline, comet_offline, console
from parsers.lazy_regex import lazy_re
from parsers.tables import HEAD_BYTES, Gap, Note

AT = "line"
_TRACKERS = (("experiment.json", "messages.json"), ("task.json", "metrics.jsonl", "log.jsonl"))
_MOST_BYTES = 1 << 30  # of one entry; a run of a million values has some 200 MB of messages
_EMPTY = b"PK\x05\x06"  # the end record of a zip without entries
_OF_COMET = lazy_re(r"[0-9a-zA-Z]{32,50}")
_FIRST = lazy_re(rb"PK\x03\x04.{22}(..)..", re.DOTALL)
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def claims(path: Path, head: bytes) -> bool:
    if head.startswith(_EMPTY):
        return _OF_COMET.fullmatch(path.stem) is not None and path.suffix == ".zip"
    m = _FIRST.match(head)
    if m is None or path.suffix != ".zip":
        return False
    name = head[30 : 30 + int.from_bytes(m[1], "little")].decode("utf-8", "replace")
    return any(name in names for names in _TRACKERS) and (path.stem.startswith("offline") or _OF_COMET.fullmatch(path.stem) is not None)


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """``at`` counts the lines of each entry. Raises OSError only."""
    with path.open("rb") as f:
        if f.read(4) == _EMPTY:
            yield Gap(
                "byte 0",
                "an empty zip, as Comet leaves it where its process was killed: the values are in messages.json of that process's temporary folder",
                None,
            )
            return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as z:
                found = {i.filename: i for i in z.infolist()}
                names = next((t for t in _TRACKERS if t[1] in found), ())
                for name in names:
                    if name in found:
                        yield from _entry(z, found[name], Path(folder) / name)
        except _BROKEN as e:
            yield Gap("byte 0", f"a damaged zip ({type(e).__name__}): its rest could not be read", None)


def _entry(z: zipfile.ZipFile, entry: zipfile.ZipInfo, to: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    if entry.file_size > _MOST_BYTES:
        yield Gap("byte 0", f"{entry.filename} is {entry.file_size:,} bytes: unpack the zip to have it read", None)
        return
    with to.open("wb") as target:
        try:
            with z.open(entry) as source:
                shutil.copyfileobj(source, target)
        except _BROKEN as e:  # what came before the damage is read, and the other entries are
            yield Gap("byte 0", f"{entry.filename} in a damaged zip ({type(e).__name__}): its rest could not be read", None)
    with to.open("rb") as f:
        head = f.read(HEAD_BYTES)
    for parser in (comet_offline, clearml_offline, console):
        if parser.claims(to, head):
            yield from parser.parse(to)
            return
    yield Gap("byte 0", f"{entry.filename} is not what its name says", None)
