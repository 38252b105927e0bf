"""Artefacts in, tables out: ``read(path)`` walks a run folder, asks each parser, and gathers tables, sources and gaps.

The folder is the list: every module of `formats` that has ``claims`` and ``parse`` is a parser (parsers.tables says what these
two do). Other packages add theirs through the entry point group ``run_forensics.parsers``.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa

from parsers import arrow, clocks, compressed, formats, plugins, rank_names, secrets, shown, zero_head
from parsers.records import still_steps
from parsers.records.vocabulary import EPOCH_STEPS
from parsers.runs import assemble, launches, split_runs
from parsers.tables import HEAD_BYTES, Gap, Note, Run, Source, relative, table_of
from parsers.unclaimed import describe, is_report, sampled
from parsers.walk import walk

Progress = Callable[[str, int, int], None]  # what is being read, bytes done, bytes in all


@cache
def modules() -> tuple[ModuleType, ...]:
    """The parsers of `formats`, then those of installed packages, each in alphabetical order."""
    ours = [importlib.import_module(f"{formats.__name__}.{m.name}") for m in pkgutil.iter_modules(formats.__path__)]
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
    """One file into batches and gaps, its names as they are; whatever goes wrong in it stays in it."""
    rel = relative(path, root)
    try:
        with path.open("rb") as f:
            size, head = os.fstat(f.fileno()).st_size, f.read(HEAD_BYTES)
            packed = head + f.read(compressed.PACKED) if compressed.is_compressed(path, head) else b""
    except OSError as e:
        source = Source(rel, "unreadable", 0, claimed=False)
        return assemble.FileRead(path, source, {}, [Gap("byte 0", f"cannot be opened: {e.strerror}", None, rel)])
    if is_report(head):
        return assemble.FileRead(path, Source(rel, "a report of forensics, not read", size, claimed=False), {}, [])
    if head.startswith(zero_head.MARK) and (begin := behind_zeros(path, head)[0]):
        return _without_zeros(path, rel, size, begin)
    parser = next(iter(claimants(path, head)), None) or sampled(path, head)
    if parser is None and packed and (claimants(*(inside := compressed.beginning(path, packed))) or sampled(*inside)):
        return _decompressed(path, rel, size)
    if parser is None:
        what = describe(path, head)
        gaps = [Gap("byte 0", what, None, rel)] if "never fetched" in what else []
        return assemble.FileRead(path, Source(rel, what, size, claimed=False), {}, gaps)
    return _parsed(parser, path, rel, size)


def behind_zeros(path: Path, head: bytes) -> tuple[int, bytes]:
    """How many zeros stand before a log that is written by lines, and its own head; 0, and the head as it is, where it is none."""
    begin, own = zero_head.rest(path, head)
    parser = next(iter(claimants(path, own)), None) or sampled(path, own) if own else None
    return (begin, own) if getattr(parser, "GROWS", "") in zero_head.WRITTEN_BY_LINES else (0, head)


def _without_zeros(path: Path, rel: str, size: int, begin: int) -> assemble.FileRead:
    with zero_head.without(path, rel, begin) as (root, copy):
        read = read_file(copy, root)
    return replace(read, path=path, source=replace(read.source, bytes=size), gaps=[replace(zero_head.gap(begin), path=rel), *read.gaps])


def _decompressed(path: Path, rel: str, size: int) -> assemble.FileRead:
    with compressed.whole(path, rel) as found:
        read = read_file(found.path, found.root)
    note = "; ".join(filter(None, ["decompressed", read.source.note]))
    gaps = [replace(g, path=rel) for g in (*read.gaps, found.gap) if g is not None]
    return replace(read, path=path, source=replace(read.source, path=rel, bytes=size, note=note), gaps=gaps)


def _parsed(parser: ModuleType, path: Path, rel: str, size: int) -> assemble.FileRead:
    batches: dict[str, list[pa.RecordBatch]] = {}
    gaps, notes, records, clock = [], [], 0, ""
    try:
        for item in parser.parse(path):
            if isinstance(item, Gap):
                gaps.append(Gap(item.at, secrets.mask_text(item.what), item.lost, rel))
            elif isinstance(item, Note):
                notes.append(secrets.mask_text(item.text))
                clock = item.clock or clock
            elif item.num_rows:
                batches.setdefault(table_of(item), []).append(item)
                records += item.num_rows
    except (MemoryError, RecursionError) as e:
        gaps.append(Gap("byte 0", f"too large or too deep to read whole ({type(e).__name__})", None, rel))
    except Exception as e:  # our mistake, not the file's; what was read before it stands
        what = f"the {name_of(parser)} parser broke off: {type(e).__name__}: {e}"
        gaps.append(Gap("byte 0", secrets.mask_text(what)[:300], None, rel))
    if "metrics" in batches and EPOCH_STEPS not in "".join(notes) and (again := still_steps.counted(batches["metrics"])) is not None:
        batches["metrics"], notes = again, [*notes, still_steps.NOTE]
    if (rank := rank_names.number(rel)) is not None:
        batches = {table: [_of_rank(b, rank) for b in found] for table, found in batches.items()}
    source = Source(rel, name_of(parser), size, records, unit=getattr(parser, "AT", "line"), note="; ".join(notes), clock=clock)
    return assemble.FileRead(path, source, batches, gaps)


def _of_rank(batch: pa.RecordBatch, rank: int) -> pa.RecordBatch:
    """The batch with the rank that its file's name says, where its rows name none."""
    if "rank" not in batch.schema.names or batch["rank"].null_count < batch.num_rows:
        return batch
    return arrow.with_column(batch, "rank", arrow.numbers(np.full(batch.num_rows, rank, np.int32)))


def _read_files(paths: list[Path], root: Path, progress: Progress | None) -> Iterator[assemble.FileRead]:
    total, done = sum(_size(p) for p in paths) if progress else 0, 0
    for path in paths:
        if progress:
            progress(secrets.mask_shapes(relative(path, root)), done, total)
            done += _size(path)
        yield read_file(path, root)


def read_all(path: str | Path, *, overrides: dict[str, str] | None = None, progress: Progress | None = None) -> list[Run]:
    """Every run below a path, the one that ran last by its own clock at the end; below ``<path>/<run>`` that run of a file or folder of several.
    Raises OSError where there is nothing to open."""
    root = Path(path)
    if not root.exists() and (root.parent.is_file() or (launches.PATH.fullmatch(root.name) and root.parent.exists())):
        runs = [r for r in read_all(root.parent, overrides=overrides, progress=progress) if r.path == str(root)]
        if not runs:
            raise FileNotFoundError(f"no run {root.name} in {root.parent}")
        return runs
    if not root.exists():
        raise FileNotFoundError(f"no such file or folder: {root}")
    found = list(walk(root))
    return _read([p for p in found if isinstance(p, Path)], root, overrides or {}, progress, [x for x in found if not isinstance(x, Path)])


def read_files(paths: list[Path], root: Path, *, overrides: dict[str, str] | None = None, progress: Progress | None = None) -> list[Run]:
    """Every run that these files below root make up, the one that ran last by its own clock at the end."""
    return _read(paths, root, overrides or {}, progress, [])


def _read(paths: list[Path], root: Path, overrides: dict[str, str], progress: Progress | None, unread: list[Source | Gap]) -> list[Run]:
    """``unread``: what the walk found beside the files. Names are hidden last, for what is one run rests on them as they are."""
    files = list(_read_files(paths, root, progress))
    clocks.settle(files)
    places = {f.source.path: f.path for f in files}
    runs = [r for g in split_runs.split(files, root, overrides) for r in assemble.runs(g, overrides)]
    for r in runs:
        r.root = str(root)
        r.sources += [x for x in unread if isinstance(x, Source)]
        r.gaps += [x for x in unread if isinstance(x, Gap)]
    shown.hide(runs, places)
    return runs


def read(path: str | Path, *, overrides: dict[str, str] | None = None, progress: Progress | None = None) -> Run:
    """One run with materialized tables; of several below the path the one that ran last (a sub-path picks one)."""
    return read_all(path, overrides=overrides, progress=progress)[-1]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
