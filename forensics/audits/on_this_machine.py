"""The files of a place, on the machine that is to read them: there already, or fetched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forensics import remote, services
from forensics.audits.discover import Place
from forensics.errors import ForensicsError
from parsers.tables import Gap


@dataclass(frozen=True)
class Here:
    """The files of a place on this machine, and what of it could not be fetched."""

    folder: Path
    files: list[Path]
    gaps: list[Gap] = field(default_factory=list)
    copy: Any = None  # forensics.outlines.Copy, behind a URL
    partial: bool = False  # some files were found, and are out of reach here


class Unreachable(Exception):
    """What was found cannot be reached from this worker; the text says why."""


@contextmanager
def files(place: Place, folder: str) -> Iterator[Here]:
    """The files of a place on this machine (a relative root begins at the folder); those behind a URL are fetched, and go again. What
    could not be fetched is a gap. Raises Unreachable where none of them is there, though they were found."""
    if services.of(place.root):
        cached = [Path(f) for f in place.files]
        yield _whole(Here(Path(os.path.commonpath([f.parent for f in cached])), cached))
        return
    if not remote.is_url(place.root):
        root = Path(folder, place.root)
        root = root.parent if root.is_file() else root
        yield _whole(Here(root, [root / f for f in place.files]))
        return
    from forensics.outlines import Copy

    with tempfile.TemporaryDirectory(prefix="forensics-") as name:
        copies = Path(name)
        try:
            members, gaps = (list(place.members), []) if place.members else remote.members(place.root, place.files)
            copy = Copy(place.root, copies)
            gaps += copy.fetch(members)
        except ForensicsError as e:
            raise Unreachable(e.message) from e
        missing = {g.path for g in gaps}
        if missing.issuperset(place.files):
            raise Unreachable(f"none of its files can be fetched: {gaps[0].what}")
        yield Here(copies, [copies / f for f in place.files if f not in missing], gaps, copy, bool(gaps))


def _whole(here: Here) -> Here:
    """With whether some of the files are out of reach."""
    missing = [f for f in here.files if not os.access(f, os.R_OK)]
    if len(missing) == len(here.files):
        raise Unreachable("its worker can read none of its files, though they were listed")
    return replace(here, partial=bool(missing))


def size(place: Place, folder: str) -> int:
    """The bytes of the files; 0 behind a URL."""
    return 0 if remote.is_url(place.root) else sum(_size(Path(folder, place.root, f)) for f in place.files)  # a cache's are absolute


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
