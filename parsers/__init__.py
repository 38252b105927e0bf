"""Artefacts in, tables out: ``read(path)`` walks a run folder, asks each parser, and gathers tables, sources and gaps.

The folder is the list: every module here that has ``claims`` and ``parse`` is a parser (parsers.tables says what these
two do). Other packages add theirs through the entry point group ``run_forensics.parsers``.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from parsers import assemble, grouping, plugins
from parsers.tables import HEAD_BYTES, Gap, Note, Run, Source, relative, table_of
from parsers.unclaimed import describe
from parsers.walk import walk

Progress = Callable[[str, int, int], None]  # what is being read, bytes done, bytes in all


@cache
def modules() -> tuple[ModuleType, ...]:
    """The parsers of this folder, then those of installed packages, each in alphabetical order."""
    ours = [importlib.import_module(f"parsers.{m.name}") for m in pkgutil.iter_modules(__path__)]
    theirs = plugins.load("run_forensics.parsers")
    return tuple(m for m in [*ours, *theirs] if hasattr(m, "claims") and hasattr(m, "parse"))


def name_of(parser: ModuleType) -> str:
    """The name of a format: the module's name."""
    return parser.__name__.rsplit(".", 1)[-1]


def claimants(path: Path, head: bytes) -> list[ModuleType]:
    """The parsers that claim a file; the tests hold that there is at most one."""
    found = []
    for parser in modules():
        try:
            claimed = parser.claims(path, head)
        except Exception:  # a parser that chokes on a head does not claim it
            claimed = False
        if claimed:
            found.append(parser)
    return found


def read_file(path: Path, root: Path) -> assemble.FileRead:
    """One file into batches and gaps; whatever goes wrong in it stays in it."""
    rel = relative(path, root)
    try:
        size = path.stat().st_size
        with path.open("rb") as f:
            head = f.read(HEAD_BYTES)
    except OSError as e:
        source = Source(rel, "unreadable", 0, claimed=False)
        return assemble.FileRead(path, source, {}, [Gap("byte 0", f"cannot be opened: {e.strerror}", None, rel)])
    parser = next(iter(claimants(path, head)), None)
    if parser is None:
        what = describe(path, head)
        gaps = [Gap("byte 0", what, None, rel)] if "never fetched" in what else []
        return assemble.FileRead(path, Source(rel, what, size, claimed=False), {}, gaps)
    batches: dict[str, list[pa.RecordBatch]] = {}
    gaps, notes, records = [], [], 0
    try:
        for item in parser.parse(path):
            if isinstance(item, Gap):
                gaps.append(Gap(item.at, item.what, item.lost, rel))
            elif isinstance(item, Note):
                notes.append(item.text)
            elif item.num_rows:
                batches.setdefault(table_of(item), []).append(item)
                records += item.num_rows
    except (MemoryError, RecursionError) as e:
        gaps.append(Gap("byte 0", f"too large or too deep to read whole ({type(e).__name__})", None, rel))
    except Exception as e:  # our mistake, not the file's; what was read before it stands
        gaps.append(Gap("byte 0", f"the {name_of(parser)} parser broke off: {type(e).__name__}: {e}"[:300], None, rel))
    unit = getattr(parser, "AT", "line")
    source = Source(rel, name_of(parser), size, records, unit=unit, note="; ".join(notes))
    return assemble.FileRead(path, source, batches, gaps)


def read_all(
    path: str | Path, *, overrides: dict[str, str] | None = None, progress: Progress | None = None
) -> list[Run]:
    """Every run below a path, the one written last at the end. Raises OSError where there is nothing to open."""
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"no such file or folder: {root}")
    found = list(walk(root))
    paths = [p for p in found if isinstance(p, Path)]
    total, done = sum(_size(p) for p in paths), 0
    files = []
    with _no_collection():
        for p in paths:
            if progress:
                progress(relative(p, root), done, total)
            files.append(read_file(p, root))
            done += _size(p)
    others = [s for s in found if isinstance(s, Source)]
    gaps = [g for g in found if isinstance(g, Gap)]
    groups = grouping.split(files, root, overrides or {})
    runs = [assemble.run(g, overrides or {}) for g in groups]
    for r in runs:
        r.root = str(root)
        r.sources += others
        r.gaps += gaps
        r.siblings = [x.path for x in runs if x is not r]
    return runs


def read(path: str | Path, *, overrides: dict[str, str] | None = None, progress: Progress | None = None) -> Run:
    """One run with materialized tables. Where several runs lie below the path: the one written last, its
    ``siblings`` naming the others (a sub-path picks one)."""
    return read_all(path, overrides=overrides, progress=progress)[-1]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Rows of text formats are millions of objects and no cycles: looking for those takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
