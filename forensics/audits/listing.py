"""Every file below a root, here or behind a URL, with what its first bytes say it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parsers
from forensics import remote
from forensics.audits import storage
from forensics.errors import ForensicsError
from forensics.version import VERSION
from parsers import compressed, secrets, zero_head
from parsers.tables import HEAD_BYTES, Gap, Source
from parsers.unclaimed import is_report
from parsers.walk import walk

REFUSED, UNREADABLE = "refused", "unreadable"  # kinds of what is not looked into, and of a file that cannot be opened
SKIPPED = "skipped"  # of what is no file to be read: pipes, links, folders of tools
MOST = 10_000_000  # files of a root: beyond it the list alone takes 3 GB
NO_LOG = frozenset({"config", "checkpoint", "other"})
_KINDS = {"config_file": "config", "checkpoint_files": "checkpoint"}
SEEN = f"{storage.STATE}/seen/listing.json"
_HEADS = 256  # files whose beginnings are fetched at once


@dataclass(frozen=True, slots=True)
class Found:
    """A file below a root: its path, size and time, and what it is (a format, config, checkpoint or other); ``why`` it is refused; its
    ``key`` in the store behind a URL."""

    path: str
    size: int
    time: float
    kind: str
    why: str = ""
    key: str = ""


Known = dict[str, tuple[int, float, str]]  # path -> size, time, kind: what an earlier audit of the root has looked into


def remembered(out: str) -> dict[str, Known]:
    """What earlier audits of a folder found the files of each root to be; nothing where another version did, or with other parsers."""
    try:
        found = json.loads(storage.read(out, SEEN) or b"")
        if found.pop("by") != _readers():
            return {}
        return {root: {path: (size, time, kind) for path, size, time, kind in files} for root, files in found["roots"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):  # damaged, or not there
        return {}


def remember(out: str, kinds: dict[str, Known]) -> None:
    """A name that holds a secret is not written down; its file is looked at anew."""
    files = {root: [(p, *found) for p, found in known.items() if p == secrets.mask_shapes(p)] for root, known in kinds.items()}
    files = {root: found for root, found in files.items() if root == secrets.mask_shapes(root)}
    storage.write(out, SEEN, json.dumps({"by": _readers(), "roots": files}, separators=(",", ":")))


def _readers() -> list[str]:
    return [VERSION, *map(parsers.name_of, parsers.modules())]


def listed(root: str, known: Known) -> Iterator[Found]:
    """In a stable order. What is as it was is not opened again. Raises ForensicsError where the root is not there."""
    return _remote(root, known) if remote.is_url(root) else _local(Path(root), known)


def _local(base: Path, known: Known) -> Iterator[Found]:
    if not base.exists():
        raise ForensicsError(f"no such file or folder: {base}", "Give folders that hold runs.")
    for path in walk(base, MOST):
        if isinstance(path, Gap):
            yield Found(path.path, 0, 0.0, REFUSED, path.what)
        if isinstance(path, Source):
            yield Found(path.path, 0, 0.0, SKIPPED, path.format)
        if not isinstance(path, Path):
            continue
        rel = path.name if path == base else path.relative_to(base).as_posix()
        try:
            info = path.stat()
            kind = _as_before(known, rel, info.st_size, info.st_mtime) or _kind(path, _head(path))
        except OSError:
            yield Found(rel, 0, 0.0, UNREADABLE)  # the gap is noted where the place is read
            continue
        yield Found(rel, info.st_size, info.st_mtime, kind)


def _head(path: Path) -> bytes:
    with path.open("rb") as f:
        head = f.read(HEAD_BYTES)
        if compressed.is_compressed(path, head):
            return head + f.read(compressed.PACKED)
    return parsers.behind_zeros(path, head)[1] if head.startswith(zero_head.MARK) else head


def _as_before(known: Known, path: str, size: int, time: float) -> str | None:
    before = known.get(path)
    return before[2] if before is not None and time and before[:2] == (size, time) else None


def _remote(root: str, known: Known) -> Iterator[Found]:
    fs, _ = remote.opened(root)
    members = remote.listed(root)
    for gap in remote.refused(members):
        yield Found(gap.path, 0, 0.0, REFUSED, gap.what)
    named = [m for m in members if m.name]
    for i in range(0, len(named), _HEADS):
        part = named[i : i + _HEADS]
        new = [m for m in part if _as_before(known, m.name, m.size, m.time) is None]
        heads = (
            fs.cat_ranges([m.key for m in new], [0] * len(new), [min(m.size, HEAD_BYTES) for m in new], on_error="return") if new else []
        )
        kinds = {
            m.name: _kind(Path(m.name), _more(fs, m, d)) if isinstance(d, bytes) else UNREADABLE for m, d in zip(new, heads, strict=True)
        }
        for m in part:
            yield Found(m.name, m.size, m.time, kinds.get(m.name) or known[m.name][2], key=m.key)


def _more(fs: Any, m: remote.Member, head: bytes) -> bytes:
    """The beginning of a remote file, of a compressed one as much as its first block takes."""
    if not compressed.is_compressed(Path(m.name), head):
        return head
    more: bytes = fs.cat_file(m.key, 0, min(m.size, compressed.PACKED))
    return more


def _kind(path: Path, head: bytes) -> str:
    if is_report(head):
        return "other"
    claimed = parsers.claimants(path, head)
    if not claimed and compressed.is_compressed(path, head):
        claimed = parsers.claimants(*compressed.beginning(path, head))
    name = parsers.name_of(claimed[0]) if claimed else "other"
    return _KINDS.get(name, name)
