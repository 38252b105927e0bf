"""The audit's folder, here or behind an fsspec URL: whole files or none, read back by name."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from forensics import output, remote
from forensics.errors import ForensicsError
from forensics.remote import is_url
from parsers.tables import HEAD_BYTES
from parsers.walk import is_regular

if TYPE_CHECKING:
    from forensics.audit.discover import Found

STATE = ".audit"  # what is kept for --resume, below the audit's folder
_HEADS = 256  # files whose beginnings are fetched at once


def write(out: str, name: str, data: str | bytes) -> None:
    """Atomically: here by renaming; behind a URL by writing under another name and moving it."""
    if not is_url(out):
        output.write(Path(out) / name, data)
        return
    fs, base = remote.opened(out)
    target = posixpath.join(base, name)
    raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        fs.makedirs(posixpath.dirname(target), exist_ok=True)
        fs.pipe_file(target + ".part", raw)
        if fs.exists(target):
            fs.rm_file(target)
        fs.mv(target + ".part", target)
    except (OSError, ValueError, NotImplementedError) as e:
        raise ForensicsError(f"cannot write {out}/{name}: {e}", "Choose another place with --out.") from e


def read(out: str, name: str) -> bytes | None:
    """The bytes of a file; None where there is none."""
    try:
        if not is_url(out):
            path = Path(out) / name
            return path.read_bytes() if is_regular(path) else None
        fs, base = remote.opened(out)
        data: bytes = fs.cat_file(posixpath.join(base, name))
        return data
    except OSError:
        return None


def head(out: str, name: str) -> bytes:
    """How a file begins; nothing where there is no regular file."""
    try:
        if not is_url(out):
            path = Path(out) / name
            if not is_regular(path, links=False):
                return b""
            with path.open("rb") as f:
                return f.read(HEAD_BYTES)
        fs, base = remote.opened(out)
        data: bytes = fs.cat_file(posixpath.join(base, name), start=0, end=HEAD_BYTES)
        return data
    except OSError:
        return b""


def exists(out: str, name: str) -> bool:
    if not is_url(out):
        return os.path.lexists(Path(out) / name)
    fs, base = remote.opened(out)
    return bool(fs.exists(posixpath.join(base, name)))


def names(out: str, folder: str) -> list[str]:
    """The names of the files in a folder below the audit's, sorted."""
    try:
        if not is_url(out):
            return sorted(p.name for p in (Path(out) / folder).iterdir() if not p.name.startswith("."))
        fs, base = remote.opened(out)
        found = fs.ls(posixpath.join(base, folder), detail=False)
        return sorted(n.rsplit("/", 1)[-1] for n in found if not n.endswith(".part"))
    except OSError:
        return []


def remove(out: str, name: str) -> None:
    try:
        if not is_url(out):
            (Path(out) / name).unlink(missing_ok=True)
            return
        fs, base = remote.opened(out)
        fs.rm_file(posixpath.join(base, name))
    except OSError:
        pass


def listed(root: str, kind: Callable[[Path, bytes], str], head: int) -> Iterator[Found]:
    """Every file behind a URL, with what its first bytes say it is."""
    from forensics.audit.discover import REFUSED, Found

    fs, _ = remote.opened(root)
    members = remote.listed(root)
    for gap in remote.refused(members):
        yield Found(gap.path, 0, 0.0, REFUSED)
    named = [m for m in members if m.name]
    for i in range(0, len(named), _HEADS):
        part = named[i : i + _HEADS]
        heads = fs.cat_ranges([m.key for m in part], [0] * len(part), [min(m.size, head) for m in part], on_error="return")
        for m, data in zip(part, heads, strict=True):
            yield Found(m.name, m.size, m.time, kind(Path(m.name), data) if isinstance(data, bytes) else "unreadable")
