"""What a worker on a cluster is asked before it gets work: can it read what is to be audited and write the results, and with what?"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from forensics import remote, services
from forensics.audits import storage, written_files
from forensics.audits.discover import Place
from forensics.errors import ForensicsError
from forensics.version import VERSION


@dataclass(frozen=True)
class Answer:
    """A worker's host and versions, and what it cannot do, in words; "" where it can do all."""

    host: str
    forensics: str
    python: str
    pyarrow: str
    trouble: str = ""


@dataclass(frozen=True)
class Probe:
    """Called on a worker. ``samples`` are roots, each with a file below it that can be read here."""

    samples: tuple[tuple[str, str], ...]
    out: str
    manifest: str  # of the audit's folder, as it is seen here

    def __call__(self) -> Answer:
        found = filter(None, [*(_unreadable(root, name) for root, name in self.samples), self._unwritable()])
        python = ".".join(platform.python_version_tuple()[:2])
        return Answer(socket.gethostname(), VERSION, python, metadata.version("pyarrow"), next(found, ""))

    def _unwritable(self) -> str:
        name = f"{storage.STATE}/probe-{uuid.uuid4().hex}"
        try:
            if _manifest(self.out) != self.manifest:
                return f"cannot see {self.out}, where the results go"
            storage.write(self.out, name, b"")
        except Exception:  # each file system has errors of its own
            return f"cannot write to {self.out}, where the results go"
        storage.remove(self.out, name)
        return ""


def of(places: Iterable[Place], out: str, folder: str) -> Probe:
    """For places that were found; names begin at the folder. What cannot be read here either is nothing to ask for."""
    first: dict[str, str] = {}
    for place in places:
        if place.files and place.root not in first:
            first[place.root] = place.files[0]
    absolute = (_absolute(root, name, folder) for root, name in first.items())
    return Probe(tuple(s for s in absolute if not _unreadable(*s)), out, _manifest(out))


def _absolute(root: str, name: str, folder: str) -> tuple[str, str]:
    if services.of(root):  # its files are those of the cache
        return os.path.split(name)
    return (root if remote.is_url(root) else str(Path(folder, root))), name


def _unreadable(root: str, name: str) -> str:
    """Why a file below a root cannot be read; empty where it can."""
    if remote.is_url(root):
        try:
            _, gaps = remote.members(root, [name])
        except ForensicsError as e:
            return f"cannot read {root}: {e.message}"
        return f"cannot read {root}: {gaps[0].what}" if gaps else ""
    base = Path(root)
    try:
        with (base if base.is_file() else base / name).open("rb") as f:
            f.read(1)
    except OSError as e:
        return f"cannot read {root}: {e.strerror}"
    return ""


def _manifest(out: str) -> str:
    return hashlib.sha256(written_files.manifest(out)).hexdigest()
