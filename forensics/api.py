"""What the functions of the package do; each is documented there (forensics/__init__.py)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from forensics import at_path
from forensics.frames import Run

if TYPE_CHECKING:  # what judges is imported where it is used: a script that only reads does without it
    from forensics.case import Case
    from forensics.guards.guarded import Guarded
    from forensics.results import Audit, Comparison

StrPath = str | os.PathLike[str]
Progress = Callable[[str, int, int], None]


class AuditOptions(TypedDict, total=False):
    """What `forensics audit` has options of the same names for."""

    engine: str  # local, dask or ray
    jobs: int | None  # runs at once; default the number of cores
    resume: bool  # go on with the audit in `out`: only new and changed runs are analyzed
    limit: int | None  # the first so many run folders only
    known: str | None  # a file of findings already reviewed
    since: str | None  # an earlier audit's folder, to tell what is new, gone or worse
    history: str | None  # a folder or URL that gets a file of each audit, to tell what is new since the last one
    pages: int  # for so many of the worst runs
    timeout: float  # seconds a run
    redact: bool  # hide names, addresses and absolute paths
    run_config: bool  # False: ignore a forensics.toml in the run folders


class ReplayOptions(TypedDict, total=False):
    """What `forensics replay` has options of the same names for."""

    steps: tuple[int, int] | None  # replay from the first and explain the worst effect up to the second
    checkpoint: str | None  # start from this one; default the last good one before the failure
    device: str  # auto, cuda or cpu
    python: str  # the interpreter of the training environment; default this one
    budget: int | None  # training steps to spend
    timeout: float  # seconds that one step may take
    max_time: float | None  # minutes after which no experiment begins
    memory: float | None  # GB of states of the training in memory
    processes: int  # ranks of a run of several, on this machine


def read(path: StrPath, *, run: str | None, metrics: Mapping[str, str] | None, run_config: bool, progress: Progress | None) -> Run:
    return Run.of(at_path.read(os.fspath(path), run=run, metrics=_plain(metrics), run_config=run_config, progress=progress))


def analyze(path: StrPath, *, baseline: StrPath | None, batches: StrPath | None, **where: Any) -> Case:
    from forensics import pipeline

    chosen = read(path, **where)
    if batches is not None:
        from forensics.batches import batch_manifest

        batch_manifest.attach(chosen, Path(batches))
    further = {k: where[k] for k in ("metrics", "run_config", "progress")}
    return pipeline.analyze_run(chosen, baseline=_only(baseline, **further) if baseline is not None else None)


def guard(path: StrPath, **where: Any) -> Guarded:
    from forensics import pipeline
    from forensics.guards.guarded import guarded

    chosen = read(path, **where)
    return guarded(chosen, pipeline.examined(chosen)[0])


def compare(a: StrPath, b: StrPath, **where: Any) -> Comparison:
    from forensics.many_runs import side_by_side
    from forensics.results import Comparison

    return Comparison(side_by_side.compare(*(_only(path, **where) for path in (a, b))))


def audit(roots: StrPath | Sequence[StrPath], out: StrPath, *, force: bool, progress: Progress | None, options: AuditOptions) -> Audit:
    from forensics import audits
    from forensics.audits import written_files
    from forensics.results import Audit
    from reports import audit_page, html

    paths = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots)
    if not (force or options.get("resume")):
        written_files.refuse_another(os.fspath(out))
    drawn = audits.Outputs(html.render, audit_page.render, audit_page.markdown)
    made = audits.audit([os.fspath(p) for p in paths], os.fspath(out), drawn, audits.Options(**options), progress)
    return Audit(os.fspath(out), {k: v for k, v in made.items() if k not in ("rows", "curves")})


def replay(path: StrPath, adapter: StrPath, *, options: ReplayOptions, **where: Any) -> Case:
    from forensics.replays import into_case

    given: dict[str, Any] = {"python": sys.executable, **options}
    return into_case.replayed(read(path, **where), into_case.options_of(os.fspath(adapter), **given), where["progress"])[0]


def _only(path: StrPath, *, metrics: Mapping[str, str] | None, run_config: bool, progress: Progress | None) -> Any:
    where = os.fspath(path)
    found = at_path.read_runs(where, metrics=_plain(metrics), of_all=False, run_config=run_config, progress=progress)
    return at_path.only(found, where)


def _plain(metrics: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if metrics is None else dict(metrics)
