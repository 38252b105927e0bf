"""Writes results: whole or not at all, never over somebody else's file."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from forensics.errors import ForensicsError
from parsers.walk import is_regular

PATIENCE = 30.0  # seconds to wait for another command that writes into the same folder


def check(path: Path, *, force: bool) -> None:
    """Raises ForensicsError where something stands in the way."""
    if os.path.lexists(path):
        _regular(path)
        if not force:
            raise ForensicsError(f"{path} already exists", "Use --force to replace it, or --out for another name.")


def _regular(path: Path) -> None:
    """Only a regular file is ever replaced: a link, a pipe or a device is somebody's way to another place."""
    with _told(path):
        try:
            regular = stat.S_ISREG(path.lstat().st_mode)
        except (FileNotFoundError, NotADirectoryError):  # a name that is too long is an error, before anything is written
            return
        if not regular:
            raise ForensicsError(f"{path} is not a regular file: not overwritten", "Give another name with --out.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One command at a time reads, decides and writes in a folder. Where there are no such locks, the others just go on."""
    with ExitStack() as stack:
        with suppress(OSError, ImportError):
            import fcntl

            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY)  # of the folder itself: a lock file would stay behind
            stack.callback(os.close, handle)
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.02)
            else:
                raise ForensicsError(f"another command has been writing into {folder} for {PATIENCE:.0f} seconds", "Try again.")
        yield


def write(path: Path, text: str | bytes) -> None:
    """Atomically: a file of that name is either the old one or the whole new one."""
    write_all([(path, text)])


def write_all(files: Iterable[tuple[Path, str | bytes]]) -> None:
    """Several files, none of which appears before all of them are on the disk: a full disk leaves the old ones, or none."""
    with ExitStack() as stack:
        staged = [(path, stack.enter_context(_staged(path, text))) for path, text in files]
        for path, handle in staged:
            with _told(path):
                _publish(handle, path)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise ForensicsError(f"cannot write {path}: {e.strerror}", "Choose another place with --out.") from e


@contextmanager
def _staged(path: Path, text: str | bytes) -> Iterator[int | str]:
    """The content beside its place: in a file without a name, that vanishes with us however we end, where the system has
    such (a descriptor); else in one of another name."""
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    _regular(path)
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = _unnamed(path.parent), ""
        if handle is None:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-")
    try:
        with _told(path), os.fdopen(handle, "wb", closefd=False) as f:
            f.write(data)
            f.flush()
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(handle, 0o666 & ~umask)
        yield name or handle
    finally:
        os.close(handle)
        if name:
            Path(name).unlink(missing_ok=True)


def _unnamed(folder: Path) -> int | None:
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, os.O_WRONLY | flag, 0o600)
    except OSError:  # a file system without them; what else is wrong shows when a file of another name is tried
        return None


def _publish(staged: int | str, path: Path) -> None:
    if isinstance(staged, str):
        os.replace(staged, path)
        return
    try:
        _name(staged, path)
    except FileExistsError:
        beside = path.with_name(f".{path.name[:40]}-{os.getpid()}")
        _name(staged, beside)
        try:
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def _name(handle: int, path: Path) -> None:
    """Gives a file without a name one. With a folder's descriptor Python follows the link in /proc, without it does not."""
    os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)


def saved_case(path: Path) -> dict[str, Any]:
    """A case that was written earlier. Raises ForensicsError where it is none, or of another schema."""
    try:
        if path.exists() and not is_regular(path):
            raise ValueError("not a regular file: not opened")
        document = json.loads(path.read_text("utf-8"))
        known = document["schema"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise ForensicsError(f"{path} is not a forensics case file: {e}", "`forensics analyze RUN --json CASE.json` writes one.") from e
    if known != 1:
        raise ForensicsError(f"{path} has schema {known}, this version knows schema 1", "Analyze the run again.")
    return dict(document)


@contextmanager
def edited(path: Path) -> Iterator[None]:
    """Whatever breaks on a saved case that was damaged or edited by hand becomes a sentence."""
    try:
        yield
    except (ForensicsError, OSError):
        raise
    except Exception as e:
        what = next(iter(str(e).splitlines()), "") or type(e).__name__
        raise ForensicsError(f"{path} cannot be used: it was damaged or edited ({what[:160]})", "Analyze the run again.") from e


def case_json(document: dict[str, Any]) -> str:
    """The case as text: `tool` comes early, so that our own files are known by their first bytes; in ASCII, so that no character
    of a log hides, reorders or steers where somebody looks at it."""
    return json.dumps(document, allow_nan=False, indent=1).replace("\x7f", "\\u007f") + "\n"
