"""What a worker does with one place: read, analyze, give back the records. Whatever goes wrong in a run costs that run only."""

from __future__ import annotations

import faulthandler
import gzip
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forensics import remote, services
from forensics.audits import kept, storage
from forensics.audits.discover import Place
from parsers.tables import Gap

CASES = f"{storage.STATE}/cases"
LONGEST = 150  # bytes of an id
PER_BYTE = 60 / 100e6  # seconds more for every byte: a large run is not a hung one
_started = threading.Lock()
_prepared: set[tuple[str, str]] = set()  # what was done first in this process, by name: loky keeps its workers between audits


@dataclass(frozen=True)
class Job:
    """What every worker is told: where the results go, how long one place may take, and what to do first in a new process."""

    out: str
    notes: str  # a folder here, in which a process notes what it has in hand
    seconds: float
    home: int  # the process that must not be ended
    folder: str  # that the command was given in: relative names begin there
    run_config: bool = True  # whether a forensics.toml that came with a run counts
    prepare: Callable[[], None] | None = None


@dataclass(frozen=True)
class Here:
    """The files of a place on this machine, and what of it could not be fetched."""

    folder: Path
    files: list[Path]
    gaps: list[Gap] = field(default_factory=list)
    copy: Any = None  # forensics.outlines.Copy, behind a URL


def do(place: Place, job: Job) -> str:
    """Analyzes a place and writes the cases of its runs; -> the line that is kept of it."""
    with at_work(place, job):
        records, cases = _records(place, job)
        for name, data in cases.items():
            storage.write(job.out, f"{CASES}/{name}", data)
        return kept.line(place, records)


def case_of(place: Place, raw: str, job: Job) -> dict[str, Any]:
    """The case of a run that a worker kept; made again where it was removed after an earlier audit."""
    data = storage.read(job.out, f"{CASES}/{case_name(place, raw)}")
    document: dict[str, Any] = json.loads(gzip.decompress(data or _records(place, job)[1][case_name(place, raw)]))
    return document


def _records(place: Place, job: Job) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The records of the runs of a place, and the cases of those that are not healthy, packed."""
    from forensics import at_path, pipeline
    from forensics.audits import row
    from parsers.tables import Run

    records, cases = [], {}
    if place.refused:
        return [row.failed(id_of(place, place.name), where(place), place.refused)], {}
    with _local(place) as here:
        try:
            runs = _read(place, job, here)
        except Exception as e:
            return [row.failed(id_of(place, place.name), where(place), _said(e))], {}
        while runs:
            run: Run = runs.pop(0)
            try:
                if not at_path.trained(run):
                    continue
                case = pipeline.analyze_run(run, command=["forensics", "analyze", run.path], brief=True)
                found = row.of(run, case)
                if case.verdict == "unhealthy":
                    text = json.dumps(case.to_json(), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
                    cases[case_name(place, run.id)] = gzip.compress(text.encode("utf-8", "backslashreplace"), 1, mtime=0)
            except Exception as e:
                found = row.failed(run.id, run.path, _said(e))
            records.append(found)
            run.cache.clear()
    return records, cases


def _read(place: Place, job: Job, here: Here) -> list[Any]:
    """The runs of a place, with ids and paths as seen from the root."""
    import parsers
    from forensics.run import metric_aliases

    folder = here.folder
    common = Path(os.path.commonpath([f.parent for f in here.files]))
    aliases = metric_aliases.read(common, run_config=job.run_config)
    runs = parsers.read_files(here.files, common, overrides=aliases.names)
    gaps = [*here.gaps, *aliases.gaps]
    above = "" if common == folder else common.relative_to(folder).as_posix()
    for run in runs:
        if len(runs) == 1:
            run.id = id_of(place, place.name)
            run.path = where(place)
        else:
            run.id = id_of(place, "__".join(filter(None, (above, run.id))))
            run.path = where(place) if services.of(place.root) else run.path.replace(str(folder), place.root.rstrip("/"), 1)
        run.gaps += gaps
        run.copy = here.copy
        run.aliases = aliases
    return runs


def where(place: Place) -> str:
    """The path that `forensics analyze` takes."""
    root = place.root.rstrip("/") or "/"
    if services.of(root):
        return place.home
    if not place.name or (not remote.is_url(root) and Path(root).is_file()):
        return root
    path = f"{root}/{place.name}"
    if remote.is_url(root) or Path(path).exists():
        return path
    return f"{root}/{os.path.commonpath([f.rpartition('/')[0] or '.' for f in place.files])}"  # wandb: the home is an id


def id_of(place: Place, name: str) -> str:
    from parsers import secrets

    own = name or Path(place.root.rstrip("/")).resolve().name or "run"
    shown = secrets.mask_shapes(f"{place.prefix}/{own}".lstrip("/"))  # two ids that are the same then are told apart in collect.py
    text = shown.replace("/", "__")
    text = "".join(c if c.isprintable() and c not in '\\:*?"<>|' else "_" for c in text).lstrip(".") or "run"
    raw = text.encode("utf-8", "replace")
    if len(raw) > LONGEST:
        text = raw[: LONGEST - 9].decode("utf-8", "ignore") + "-" + hashlib.sha256(raw).hexdigest()[:8]
    return text


def case_name(place: Place, id: str) -> str:
    return f"{place.key}-{hashlib.sha256(id.encode()).hexdigest()[:12]}.json.gz"


def _said(e: Exception) -> str:
    return f"{type(e).__name__}: {e}"[:400]


@contextmanager
def _local(place: Place) -> Iterator[Here]:
    """The files of a place on this machine; those behind a URL are fetched, and go again. What could not be fetched is a gap."""
    if services.of(place.root):
        files = [Path(f) for f in place.files]
        yield Here(Path(os.path.commonpath([f.parent for f in files])), files)
        return
    if not remote.is_url(place.root):
        root = Path(place.root)
        root = root.parent if root.is_file() else root
        yield Here(root, [root / f for f in place.files])
        return
    from forensics.outlines import Copy

    with tempfile.TemporaryDirectory(prefix="forensics-") as name:
        folder = Path(name)
        members, gaps = (list(place.members), []) if place.members else remote.members(place.root, place.files)
        copy = Copy(place.root, folder)
        gaps += copy.fetch(members)
        yield Here(folder, [folder / f for f in place.files if f not in {g.path for g in gaps}], gaps, copy)


@contextmanager
def at_work(place: Place, job: Job) -> Iterator[None]:
    """Notes what this process works at, and ends the process where that takes too long.

    The clock is faulthandler's: a thread in C, that also ends a process that hangs inside a system call or a library.
    """
    _prepare(job)
    note = Path(job.notes) / f"now-{os.getpid()}-{threading.get_ident()}"
    watched = os.getpid() != job.home and Path(job.notes).is_dir()
    if not watched:
        yield
        return
    note.write_text(place.key)
    trace_path = Path(job.notes) / f"hung-{place.key}"
    if trace_path.exists() and "Timeout" in trace_path.read_text(errors="replace"):
        raise TimeoutError("took too long before")  # an engine of its own mind sends it again
    size = 0 if remote.is_url(place.root) else sum(_size(Path(place.root) / f) for f in place.files)  # files of a cache are absolute
    with _started, trace_path.open("w") as trace:
        faulthandler.dump_traceback_later(job.seconds + size * PER_BYTE, exit=True, file=trace)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            trace_path.unlink(missing_ok=True)
    note.unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _prepare(job: Job) -> None:
    with suppress(OSError):  # another machine's worker may not have it
        if os.getpid() != job.home and os.getcwd() != job.folder:
            os.chdir(job.folder)
    if job.prepare is None:
        return
    name = (job.prepare.__module__, job.prepare.__qualname__)
    if name not in _prepared:
        job.prepare()
        _prepared.add(name)
