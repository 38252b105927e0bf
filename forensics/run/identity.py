"""Tells a run from another of the same folder name, so that reports and notes stay with the run they were written for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from forensics import output, remote, services
from forensics.errors import ForensicsError
from parsers.lazy_regex import lazy_re
from parsers.tables import Run
from parsers.unclaimed import is_report
from parsers.walk import is_regular

LENGTHS = (16, 64, 256, 1024, 4096)  # bytes: how a log begins does not change while it grows, and a young one is short
FILES = 64
_TAIL = 4096  # bytes at whose end a summary says what made it
_NO_LOG = ("config_file", "checkpoint_files")  # a folder used again keeps its settings
_META = lazy_re(rb'<meta name="run" content="([0-9a-f.+ ]*)">')


def of(run: Run) -> list[str]:
    """For each of its first logs hashes of where the run lies and how that log begins, the short beginnings first."""
    place = os.fsencode(run.path if remote.is_url(run.path) or services.of(run.path) else os.path.realpath(run.path))
    claimed = sorted((s for s in run.sources if s.claimed), key=lambda s: s.path)
    logs = [s for s in claimed if s.format not in _NO_LOG and s.records] or claimed
    heads = dict.fromkeys(_head(run.file(s.path)) for s in logs[:FILES])
    return [_hashes(place, head) for head in heads] or [_hashes(place, b"")]


def _hashes(place: bytes, head: bytes) -> str:
    known = [head[:n] for n in LENGTHS if n <= len(head)]
    return ".".join(hashlib.sha256(place + b"\0" + beginning).hexdigest()[:12] for beginning in known or [b""])


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as f:
            return f.read(LENGTHS[-1])
    except OSError:
        return b""


def of_two(a: Run, b: Run) -> list[str]:
    """The identity of a comparison."""
    return [f"{x}+{y}" for x in of(a)[:8] for y in of(b)[:8]]


def same(a: Any, b: Any) -> bool:
    """Do two identities share a log, as far as the shorter one goes? A run that grows has more, a folder that was used
    again has others."""
    if not isinstance(a, list) or not isinstance(b, list):
        return False
    return any(_grown(str(x), str(y)) for x in a for y in b)


def _grown(x: str, y: str) -> bool:
    """Is each part of one the beginning of the other's?"""
    pairs = list(zip(x.split("+"), y.split("+"), strict=False))
    parts = [(one.split("."), two.split(".")) for one, two in pairs]
    return x.count("+") == y.count("+") and all(one[: len(two)] == two[: len(one)] and one[0] for one, two in parts)


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
            f.seek(max(path.stat().st_size - _TAIL, 0))
            return b"\nMade by forensics " in f.read(_TAIL)
    except OSError:
        return False
