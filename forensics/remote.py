"""Runs behind an fsspec URL (an object store, an archive): what lies there, and copies of it in a folder here.

Names there are data. One that would lead out of the folder is refused and told, never joined.
"""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics.errors import ForensicsError
from parsers.tables import Gap

HINT = "Remote folders need `pip install 'run-forensics[remote]'`."


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
        raise ForensicsError(f"cannot open {url}: {type(e).__name__}: {e}", HINT) from e
    return fs, base.rstrip("/")


def listed(url: str) -> list[Member]:
    """Every file behind a URL, by name. Raises ForensicsError where nothing is there."""
    fs, base = opened(url)
    try:
        found: dict[str, dict[str, Any]] = fs.find(base, detail=True)
    except Exception as e:  # a damaged archive: each file system has errors of its own
        raise ForensicsError(f"cannot open {url}: {type(e).__name__}: {e}", HINT) from e
    if not found:
        raise ForensicsError(f"cannot open {url}: nothing is there", HINT)
    files = [(key, info) for key, info in sorted(found.items()) if info.get("type") != "directory"]
    return [Member(key, _below(key, base), int(info.get("size") or 0), _time(info)) for key, info in files]


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


def fetch(url: str, names: Iterable[str], folder: Path) -> list[Gap]:
    """Copies files below a URL into a folder here, under the same relative names; -> those that could not be copied."""
    fs, base = opened(url)
    return [gap for name in names if (gap := _copy(fs, base, name, folder)) is not None]


def _copy(fs: Any, base: str, name: str, folder: Path) -> Gap | None:
    target = folder / name
    if not _plain(name) or not target.resolve().is_relative_to(folder.resolve()):
        return Gap("byte 0", "its name leads out of the folder: not read", None, name)
    try:
        key = next(k for k in _spellings(fs, base, name) if fs.isfile(k))
        size, free = int(fs.info(key).get("size") or 0), shutil.disk_usage(folder).free
        if size > free:
            return Gap("byte 0", f"it says that it has {size} bytes, and the disk has room for {free}", None, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        fs.get_file(key, str(target))
    except Exception as e:  # each file system has errors of its own, a damaged archive anything
        target.unlink(missing_ok=True) if target.is_file() else None
        return Gap("byte 0", f"it cannot be copied from there: {type(e).__name__}: {e}"[:300], None, name)
    return None


def _spellings(fs: Any, base: str, name: str) -> Iterator[str]:
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
