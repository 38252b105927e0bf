"""Runs behind an fsspec URL (an object store, an archive): what lies there, and copies of it in a folder here.

Names there are data. One that would lead out of the folder is refused and told, never joined.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from forensics.errors import ForensicsError
from parsers.tables import Gap

AT_ONCE = 16  # files that are copied at once: an object store answers each request late, and many together
A = TypeVar("A")
B = TypeVar("B")
INSTALL = "Remote folders need `pip install 'run-forensics[remote]'`."
HINT = "Is the address right, and may you read what is there? The store's own credentials are used."


@dataclass(frozen=True)
class Member:
    """A file behind a URL: its name there, and below the URL; "" where that leads elsewhere."""

    key: str
    name: str
    size: int
    time: float


def is_url(path: str) -> bool:
    return "://" in path


def local(path: str) -> str:
    """`file://` names a folder here, which is read as any other: without following links out of it."""
    return path.removeprefix("file://") if path.startswith("file:///") else path


def opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    import fsspec

    try:
        fs, base = fsspec.core.url_to_fs(url)
    except Exception as e:  # each file system has errors of its own
        raise ForensicsError(f"cannot open {url}: {_said(e)}", INSTALL if isinstance(e, ImportError) else HINT) from e
    return fs, base.rstrip("/")


def listed(url: str) -> list[Member]:
    """Every file behind a URL, by name. Raises ForensicsError where nothing is there."""
    fs, base = opened(url)
    try:
        found: dict[str, dict[str, Any]] = fs.find(base, detail=True)
    except Exception as e:  # a damaged archive: each file system has errors of its own
        raise ForensicsError(f"cannot open {url}: {_said(e)}", HINT) from e
    if not found:
        raise ForensicsError(f"cannot open {url}: nothing is there", HINT)
    files = [(key, info) for key, info in sorted(found.items()) if info.get("type") != "directory"]
    return [Member(key, _below(key, base), int(info.get("size") or 0), _time(info)) for key, info in files]


def _said(e: Exception) -> str:
    """What an error says, in a line: each file system has errors of its own."""
    return f"{type(e).__name__}: {next(iter(str(e).strip().splitlines()), '')}"[:300]


def _below(key: str, base: str) -> str:
    """The name relative to the base; "" where it is not below it, or is no plain path."""
    if key == base:
        return _plain(key.rpartition("/")[2])
    return _plain(key[len(base) + 1 :] if base and key.startswith(base + "/") else "" if base else key)


def _plain(name: str) -> str:
    name = name.removeprefix("./")  # as `tar -C run .` writes them
    fine = all(part not in ("", ".", "..") and len(part.encode("utf-8", "replace")) <= 255 for part in name.split("/"))
    return name if fine and "\0" not in name else ""


def refused(members: Iterable[Member]) -> list[Gap]:
    """The members whose names lead out of the folder."""
    return [Gap("byte 0", "its name leads out of the folder: not read", None, m.key) for m in members if not m.name]


def members(url: str, names: Iterable[str]) -> tuple[list[Member], list[Gap]]:
    """The files of these names below a URL, and those that are not there."""
    fs, base = opened(url)

    def found(name: str) -> Member | Gap:
        try:
            key, info = next((k, i) for k in _spellings(base, name) if _plain(name) and (i := _info(fs, k)) is not None)
        except Exception as e:  # each file system has errors of its own
            return Gap("byte 0", f"it cannot be copied from there: {_said(e)}", None, name)
        return Member(key, name, int(info.get("size") or 0), _time(info))

    known = list(each(fs, found, names))
    return [m for m in known if isinstance(m, Member)], [g for g in known if isinstance(g, Gap)]


def fetch(url: str, wanted: Iterable[Member], folder: Path, progress: Callable[[int], None] | None = None) -> list[Gap]:
    """Copies files behind a URL into a folder here, under the names that they have below it, several at once where its file system
    allows that; -> those that could not be copied. ``progress`` is told how many are done."""
    fs, _ = opened(url)
    gaps: list[Gap] = []
    for done, gap in enumerate(each(fs, lambda m: _copy(fs, m, folder), wanted), 1):
        gaps += [gap] if gap is not None else []
        if progress:
            progress(done)
    return gaps


def each(fs: Any, do: Callable[[A], B], what: Iterable[A]) -> Iterator[B]:
    """``do`` with each, in order: AT_ONCE at a time where the file system can answer several threads."""
    if not (getattr(fs, "async_impl", False) or "hf" in fs.protocol):  # an archive has one position to read from, FTP one connection
        yield from map(do, what)
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(do, what)


def _copy(fs: Any, m: Member, folder: Path) -> Gap | None:
    target = folder / m.name
    if not m.name or not target.resolve().is_relative_to(folder.resolve()):
        return Gap("byte 0", "its name leads out of the folder: not read", None, m.key)
    try:
        if m.size > (free := shutil.disk_usage(folder).free):
            return Gap("byte 0", f"it says that it has {m.size} bytes, and the disk has room for {free}", None, m.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        fs.get_file(m.key, str(target))
        dated(target, m.time)
    except Exception as e:  # each file system has errors of its own, a damaged archive anything
        target.unlink(missing_ok=True) if target.is_file() else None
        return Gap("byte 0", f"it cannot be copied from there: {_said(e)}", None, m.name)
    return None


def _info(fs: Any, key: str) -> dict[str, Any] | None:
    """What the store says of a file; None where there is none."""
    try:
        info: dict[str, Any] = fs.info(key)
    except FileNotFoundError:
        return None
    return info if info.get("type") == "file" else None


def dated(path: Path, time: float) -> None:
    """A copy has the time of the file that it is of, where that is known."""
    if time > 0:
        os.utime(path, (time, time))


def _spellings(base: str, name: str) -> Iterator[str]:
    if base.endswith("/" + name) or base == name:
        yield base  # the URL is that of the file
    yield posixpath.join(base, name)
    yield posixpath.join(base, "./" + name)


def _time(info: dict[str, Any]) -> float:
    for key in ("mtime", "LastModified", "updated", "last_modified", "created"):
        value = info.get(key)
        if isinstance(value, (int, float)):
            return float(value)
        if value is not None and hasattr(value, "timestamp"):
            return float(value.timestamp())
    return 0.0
