"""Logs that were compressed one by one (``.gz``, ``.bz2``, ``.zst``), as rotation and clean-up jobs leave them.

A file whose first bytes a parser knows is decompressed into a temporary folder, never beside the original, under its name without the suffix, and
read as it would be there; places in it count in the decompressed text. The others stay packed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from parsers.tables import HEAD_BYTES, Gap

MOST_BYTES = 1 << 30  # bound: decompressed; a log of a million steps has a tenth of it, a bomb fills the disk
PACKED = 1 << 18  # bytes: the first block of any codec (zstd's 128 KiB, bzip2's 900 kB), at four to one
_BLOCK = 1 << 13  # bytes: what is lost at most where a file was cut
_CODECS = {".gz": (b"\x1f\x8b", "gzip"), ".bz2": (b"BZh", "bz2"), ".zst": (b"\x28\xb5\x2f\xfd", "zstd")}


@dataclass
class Decompressed:
    """The file, there inside the ``with`` only, below a folder that stands for the run's; and what could not be decompressed."""

    root: Path
    path: Path
    gap: Gap | None = None


def is_compressed(path: Path, head: bytes) -> bool:
    magic, _ = _CODECS.get(path.suffix.lower(), (b"", ""))
    return bool(magic) and head.startswith(magic) and Path(path.stem).suffix.lower() != ".tar"


def beginning(path: Path, packed: bytes) -> tuple[Path, bytes]:
    """The name without the suffix, and the first HEAD_BYTES of the content, of which ``packed`` are the first PACKED compressed bytes."""
    found = b""
    with suppress(OSError, pa.ArrowException), pa.CompressedInputStream(pa.BufferReader(packed), _codec(path)) as stream:
        while len(found) < HEAD_BYTES and (block := stream.read(256)):
            found += block
    return path.with_suffix(""), found


@contextmanager
def whole(path: Path, rel: str) -> Iterator[Decompressed]:
    """The content of a compressed file; ``rel``: its path within the run."""
    with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        found, size = Decompressed(Path(folder), Path(folder, rel).with_suffix("")), 0
        found.path.parent.mkdir(parents=True, exist_ok=True)
        with found.path.open("wb") as target:
            try:
                with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, _codec(path)) as stream:
                    while size < MOST_BYTES and (block := stream.read(_BLOCK)):
                        size += target.write(block)
                    if size >= MOST_BYTES and stream.read(1):
                        found.gap = Gap("byte 0", f"more than {MOST_BYTES >> 30} GiB once decompressed: the rest was not read", None)
            except (OSError, pa.ArrowException) as e:
                found.gap = Gap("byte 0", f"the compressed data is damaged or cut after {size:,} decompressed bytes: {str(e)[:100]}", None)
        yield found


def _codec(path: Path) -> str:
    return _CODECS[path.suffix.lower()][1]
