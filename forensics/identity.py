"""Tells a run from another of the same folder name, so that reports and notes stay with the run they were written for."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from forensics import output, remote
from forensics.errors import ForensicsError
from parsers.tables import Run
from parsers.unclaimed import is_report
from parsers.walk import is_regular

HEAD = 4096  # bytes of a log that do not change while it grows
FILES = 64
_NO_LOG = ("config_file", "checkpoint_files")  # a folder used again keeps its settings
_META = re.compile(rb'<meta name="run" content="([0-9a-f ]*)">')


def of(run: Run) -> list[str]:
    """A hash of where the run lies and how a log of it begins, for each of its first logs."""
    place = run.path if remote.is_url(run.path) else os.path.realpath(run.path)
    claimed = sorted((s for s in run.sources if s.claimed), key=lambda s: s.path)
    logs = [s for s in claimed if s.format not in _NO_LOG and s.records] or claimed
    heads = [_head(run.file(s.path)) for s in logs[:FILES]] or [b""]
    return [hashlib.sha256(os.fsencode(place) + b"\0" + head).hexdigest()[:16] for head in dict.fromkeys(heads)]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as f:
            return f.read(HEAD)
    except OSError:
        return b""


def same(a: Any, b: Any) -> bool:
    """Do two identities share a log? A run that grows has more, a folder that was used again has others."""
    return isinstance(a, list) and isinstance(b, list) and bool(set(map(str, a)) & set(map(str, b)))


def of_report(path: Path) -> list[str] | None:
    """The identity of the run that a page or case of ours is about; None where the file is not ours."""
    try:
        if not is_regular(path, links=False):
            return None
        with path.open("rb") as f:
            head = f.read(8192)
    except OSError:
        return None
    if not is_report(head):
        return None
    if found := _META.search(head):
        return found[1].decode().split()
    try:
        return list(map(str, output.saved_case(path)["run"]["identity"]))
    except (ForensicsError, KeyError, TypeError):
        return []


def is_input(path: Path, runs: Iterable[Run]) -> bool:
    """Is there such a file, and was it read of one of the runs? Reports of ours among them may be written again."""
    if not os.path.lexists(path) or of_report(path) is not None or _is_summary(path):
        return False
    real = os.path.realpath(path)
    return any(os.path.realpath(run.file(s.path)) == real for run in runs for s in run.sources)


def _is_summary(path: Path) -> bool:
    """Is it a Markdown report of ours? It says so at its end, where it disturbs nobody."""
    try:
        if not is_regular(path, links=False):
            return False
        with path.open("rb") as f:
            f.seek(max(path.stat().st_size - HEAD, 0))
            return b"\nMade by forensics " in f.read(HEAD)
    except OSError:
        return False
