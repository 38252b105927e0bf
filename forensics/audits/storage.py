"""The audit's folder, here or behind an fsspec URL: whole files or none, read back by name."""

from __future__ import annotations

import os
import posixpath
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from forensics import output, remote
from forensics.errors import ForensicsError
from forensics.remote import is_url
from parsers.tables import HEAD_BYTES
from parsers.walk import is_regular

T = TypeVar("T")
WHOLE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "memory"}  # stores in which a file appears whole, in one request
WAITS = (0.2, 1.0, 4.0)  # seconds before the second, third and fourth try: a store that throttles says so for a second or two
STATE = ".audit"  # what is kept for --resume, below the audit's folder


def write(out: str, name: str, data: str | bytes) -> None:
    """Atomically: here by renaming; in an object store by itself; behind another URL by writing under a name that nobody else has and moving it."""
    if not is_url(out):
        output.write(Path(out) / name, data)
        return
    fs, base = remote.opened(out)
    target = posixpath.join(base, name)
    raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        _patiently(lambda: _put(fs, target, raw))
    except (OSError, ValueError, NotImplementedError) as e:
        raise ForensicsError(f"cannot write {out}/{name}: {e}", "Choose another place with --out.") from e


def _put(fs: Any, target: str, raw: bytes) -> None:
    if WHOLE.intersection([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol):
        fs.pipe_file(target, raw)
        return
    part = f"{target}.{uuid.uuid4().hex}.part"
    fs.makedirs(posixpath.dirname(target), exist_ok=True)
    try:
        fs.pipe_file(part, raw)
        fs.mv(part, target)
    except BaseException:
        with suppress(OSError):
            fs.rm_file(part)
        raise


def _patiently(do: Callable[[], T]) -> T:
    """Again, later and later, where a store does not answer; at once where it says no."""
    for wait in WAITS:
        try:
            return do()
        except (FileNotFoundError, PermissionError, FileExistsError, NotADirectoryError, IsADirectoryError):
            raise
        except OSError:
            time.sleep(wait)
    return do()


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
            data: bytes = _patiently(lambda: fs.cat_file(posixpath.join(base, name), start=None if most is None else 0, end=most))
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


def fetch(out: str, folder: str, names: Iterable[str], here: Path) -> list[str]:
    """Copies files of a folder below the audit's, many at once; -> those that are here now."""
    fs, _ = remote.opened(out)

    def one(name: str) -> str | None:
        data = read(out, f"{folder}/{name}")
        if data is not None:
            (here / name).write_bytes(data)
        return name if data is not None else None

    return [name for name in remote.each(fs, one, names) if name is not None]


def remove(out: str, *names: str) -> None:
    """Files that are not there stay so; a store takes many in one request."""
    if not is_url(out):
        for name in names:
            with suppress(OSError):
                (Path(out) / name).unlink(missing_ok=True)
        return
    fs, base = remote.opened(out)
    with suppress(OSError):
        if names:
            fs.rm([posixpath.join(base, name) for name in names])
