"""Every file below a root, here or behind a URL, with what its first bytes say it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import parsers
from forensics import remote
from forensics.errors import ForensicsError
from parsers import compressed
from parsers.tables import HEAD_BYTES, Gap
from parsers.unclaimed import is_report
from parsers.walk import walk

REFUSED, UNREADABLE = "refused", "unreadable"  # kinds of what is not looked into, and of a file that cannot be opened
NO_LOG = frozenset({"config", "checkpoint", "other"})
_KINDS = {"config_file": "config", "checkpoint_files": "checkpoint"}
_HEADS = 256  # files whose beginnings are fetched at once


@dataclass(frozen=True)
class Found:
    """A file below a root: its path, size and time, and what it is (a format, config, checkpoint or other); ``why`` it is refused."""

    path: str
    size: int
    time: float
    kind: str
    why: str = ""


def listed(root: str) -> Iterator[Found]:
    """In a stable order. Raises ForensicsError where the root is not there."""
    return _remote(root) if remote.is_url(root) else _local(Path(root))


def _local(base: Path) -> Iterator[Found]:
    if not base.exists():
        raise ForensicsError(f"no such file or folder: {base}", "Give folders that hold runs.")
    for path in walk(base):
        if isinstance(path, Gap):
            yield Found(path.path, 0, 0.0, REFUSED, path.what)
        if not isinstance(path, Path):
            continue
        rel = path.name if path == base else path.relative_to(base).as_posix()
        try:
            info = path.stat()
            with path.open("rb") as f:
                head = f.read(HEAD_BYTES)
                head += f.read(compressed.PACKED) if compressed.is_compressed(path, head) else b""
        except OSError:
            yield Found(rel, 0, 0.0, UNREADABLE)  # the gap is noted where the place is read
            continue
        yield Found(rel, info.st_size, info.st_mtime, _kind(path, head))


def _remote(root: str) -> Iterator[Found]:
    fs, _ = remote.opened(root)
    members = remote.listed(root)
    for gap in remote.refused(members):
        yield Found(gap.path, 0, 0.0, REFUSED, gap.what)
    named = [m for m in members if m.name]
    for i in range(0, len(named), _HEADS):
        part = named[i : i + _HEADS]
        heads = fs.cat_ranges([m.key for m in part], [0] * len(part), [min(m.size, HEAD_BYTES) for m in part], on_error="return")
        for m, data in zip(part, heads, strict=True):
            if isinstance(data, bytes) and compressed.is_compressed(Path(m.name), data):
                data = fs.cat_file(m.key, 0, min(m.size, compressed.PACKED))
            yield Found(m.name, m.size, m.time, _kind(Path(m.name), data) if isinstance(data, bytes) else UNREADABLE)


def _kind(path: Path, head: bytes) -> str:
    if is_report(head):
        return "other"
    claimed = parsers.claimants(path, head)
    if not claimed and compressed.is_compressed(path, head):
        claimed = parsers.claimants(*compressed.beginning(path, head))
    name = parsers.name_of(claimed[0]) if claimed else "other"
    return _KINDS.get(name, name)
