"""Runs that live with a tracker: fetched into a folder of the user's cache, in the form in which that tracker keeps a run on disk.

A service is one module, named as its scheme, with two functions; the parsers of its files do the rest::

    def claims(text: str) -> bool                       # is this a name of mine? wandb:entity/project/run
    def runs(text: str) -> Iterator[Found]              # the runs that it names; raises ForensicsError

What was fetched stays, and is fetched again only where ``Found.stamp`` says that the run has changed.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from forensics.errors import ForensicsError
from parsers.lazy_regex import lazy_re

_PAGE = lazy_re(r"https?://[^/\s]+/\S*")
STAMP = ".fetched"  # the ending of a file beside what was fetched

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Found:
    """A run of a service. ``place`` names its folder in the cache (service, host, project); ``text`` is what names it alone."""

    id: str
    text: str
    place: tuple[str, ...]
    stamp: str  # changes when the run does
    fetch: Callable[[Path], None]  # into a folder, which may hold an earlier part of it; raises ForensicsError


def of(text: str) -> ModuleType | None:
    """The service that a name belongs to; None for paths and URLs of files."""
    scheme, colon, _ = text.partition(":")
    if not colon or os.path.lexists(text):
        return None
    here = [m.name for m in pkgutil.iter_modules(__path__)]
    names = [scheme] if scheme in here else here if _PAGE.fullmatch(text) else []
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    return next((m for m in modules if hasattr(m, "claims") and m.claims(text)), None)


def runs(text: str, limit: int | None = None, progress: Progress | None = None) -> Iterator[tuple[Found, Path | ForensicsError]]:
    """The runs that a name stands for, each with its folder in the cache, or why it could not be fetched."""
    service = of(text)
    assert service is not None
    with _understood(text):
        found = list(itertools.islice(service.runs(text), limit))
    for done, run in enumerate(found):
        if progress:
            progress(f"fetching {run.id}", done, len(found))
        try:
            yield run, fetched(run)
        except ForensicsError as e:
            yield run, e


def fetched(run: Found) -> Path:
    """The folder of a run, with all of it. Raises ForensicsError."""
    from forensics import output

    folder = cache().joinpath(*map(plain, run.place), plain(run.id))
    note = folder.with_name(folder.name + STAMP)
    try:
        cache().mkdir(mode=0o700, parents=True, exist_ok=True)  # what a tracker knows may hold keys
        folder.mkdir(parents=True, exist_ok=True)
        with output.locked(folder), _understood(run.text):
            if not note.is_file() or note.read_text("utf-8", "replace") != run.stamp:
                run.fetch(folder)
                output.write(note, run.stamp)
    except OSError as e:
        raise ForensicsError(f"{run.text} cannot be kept in {folder}: {e}", "FORENSICS_CACHE names another folder.") from e
    return folder


@contextmanager
def _understood(text: str) -> Iterator[None]:
    """What a service answers may be anything."""
    import sqlite3

    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, sqlite3.Error) as e:
        raise ForensicsError(
            f"{text}: an answer that is not understood: {type(e).__name__}: {e}"[:300], "Is that the service's address?"
        ) from e


def cache() -> Path:
    """Where services are kept: FORENSICS_CACHE, else the user's cache folder."""
    if named := os.environ.get("FORENSICS_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forensics"


def plain(name: str) -> str:
    """A name of a service as one that a folder can have; different names stay different."""
    kept = re.sub(r"[^\w.\-]+", "_", name).lstrip(".")[:80]
    return kept if kept == name else f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
