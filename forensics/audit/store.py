"""The audit's folder, here or behind an fsspec URL: whole files or none, read back by name."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forensics import output
from forensics.errors import ForensicsError

if TYPE_CHECKING:
    from forensics.audit.places import Found

STATE = ".audit"  # what is kept for --resume, below the audit's folder
_HEADS = 256  # files whose beginnings are fetched at once


def is_url(path: str) -> bool:
    return "://" in path


def write(out: str, name: str, data: str | bytes) -> None:
    """Atomically: here by renaming; behind a URL by writing under another name and moving it."""
    if not is_url(out):
        output.write(Path(out) / name, data)
        return
    fs, base = _open(out)
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
            return path.read_bytes() if path.is_file() else None  # a named pipe would wait for ever
        fs, base = _open(out)
        data: bytes = fs.cat_file(posixpath.join(base, name))
        return data
    except OSError:
        return None


def exists(out: str, name: str) -> bool:
    if not is_url(out):
        return (Path(out) / name).exists()
    fs, base = _open(out)
    return bool(fs.exists(posixpath.join(base, name)))


def names(out: str, folder: str) -> list[str]:
    """The names of the files in a folder below the audit's, sorted."""
    try:
        if not is_url(out):
            return sorted(p.name for p in (Path(out) / folder).iterdir() if not p.name.startswith("."))
        fs, base = _open(out)
        found = fs.ls(posixpath.join(base, folder), detail=False)
        return sorted(n.rsplit("/", 1)[-1] for n in found if not n.endswith(".part"))
    except OSError:
        return []


def remove(out: str, name: str) -> None:
    try:
        if not is_url(out):
            (Path(out) / name).unlink(missing_ok=True)
            return
        fs, base = _open(out)
        fs.rm_file(posixpath.join(base, name))
    except OSError:
        pass


def listed(root: str, kind: Callable[[Path, bytes], str], head: int) -> Iterator[Found]:
    """Every file behind a URL, with what its first bytes say it is."""
    from forensics.audit.places import Found

    fs, base = _open(root)
    try:
        found: dict[str, dict[str, Any]] = fs.find(base, detail=True)
        if not found:
            raise FileNotFoundError(root)
        paths = sorted(found)
        for i in range(0, len(paths), _HEADS):
            part = paths[i : i + _HEADS]
            sizes = [int(found[p].get("size") or 0) for p in part]
            heads = fs.cat_ranges(part, [0] * len(part), [min(s, head) for s in sizes], on_error="return")
            for p, size, data in zip(part, sizes, heads, strict=True):
                rel = p[len(base) :].lstrip("/") or p.rsplit("/", 1)[-1]
                what = kind(Path(p), data) if isinstance(data, bytes) else "unreadable"
                yield Found(rel, size, _time(found[p]), what)
    except (OSError, ImportError, ValueError) as e:
        raise ForensicsError(f"cannot open {root}: {e}", "Remote folders need `pip install 'run-forensics[remote]'`.") from e


def fetch(root: str, files: tuple[str, ...], folder: Path) -> None:
    """Copies files from behind a URL into a folder here, under the same relative paths."""
    fs, base = _open(root)
    for name in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        alone = base.endswith("/" + name) and fs.isfile(base)
        fs.get_file(base if alone else posixpath.join(base, name), str(target))


def _time(info: dict[str, Any]) -> float:
    for key in ("mtime", "LastModified", "updated", "last_modified", "created"):
        value = info.get(key)
        if isinstance(value, (int, float)):
            return float(value)
        if value is not None and hasattr(value, "timestamp"):
            return float(value.timestamp())
    return 0.0


def _open(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        fs, base = fsspec.core.url_to_fs(url)
    except (OSError, ImportError, ValueError) as e:
        raise ForensicsError(f"cannot open {url}: {e}", "Remote folders need `pip install 'run-forensics[remote]'`.") from e
    return fs, base.rstrip("/")
