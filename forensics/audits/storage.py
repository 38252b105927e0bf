"""The audit's folder, here or behind an fsspec URL: whole files or none, read back by name."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from forensics import output, remote
from forensics.errors import ForensicsError
from forensics.remote import is_url
from parsers.tables import HEAD_BYTES
from parsers.walk import is_regular

STATE = ".audit"  # what is kept for --resume, below the audit's folder


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
    return _read(out, name, None, links=True)


def head(out: str, name: str) -> bytes:
    """How a file begins; nothing where there is no regular file."""
    return _read(out, name, HEAD_BYTES, links=False) or b""


def _read(out: str, name: str, most: int | None, *, links: bool) -> bytes | None:
    try:
        if is_url(out):
            fs, base = remote.opened(out)
            data: bytes = fs.cat_file(posixpath.join(base, name), start=None if most is None else 0, end=most)
            return data
        path = Path(out) / name
        if not is_regular(path, links=links):
            return None
        with path.open("rb") as f:
            return f.read(-1 if most is None else most)
    except OSError:
        return None


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
