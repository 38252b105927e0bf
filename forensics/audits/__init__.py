"""Analyze over many runs: one row each, what they share, pages for those worth opening. Top to bottom:

    find places -> work (in parallel, kept one by one) -> join restarts -> rows and conclusions -> pages -> outputs

Everything that is finished is kept below `<out>/.audit` as it comes, so that `--resume` does nothing twice.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from forensics import output, remote, services
from forensics.audits import (
    collect,
    discover,
    engines,
    history,
    kept,
    listing,
    one_place,
    pages,
    redaction,
    skipped,
    storage,
    suppressions,
    totals,
    written_files,
)
from forensics.audits.discover import Place
from forensics.audits.engines import probe, work
from forensics.audits.row_columns import COLUMNS
from forensics.case import jsonable
from forensics.causes.files import UNKNOWN, named_cause
from forensics.causes.files import causes as causes_of_ours
from forensics.errors import ForensicsError
from forensics.run.goodput import ENDED_BADLY
from forensics.version import VERSION
from parsers import arrow

SCHEMA = 1
OUTPUTS = written_files.OUTPUTS
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Outputs:
    """How the results are drawn; forensics knows no pixels, so the caller says it. Each must be importable by name."""

    page: Callable[[dict[str, Any]], str]  # a case -> runs/<id>.html
    index: Callable[[dict[str, Any]], str]  # the document of `audit` -> index.html
    markdown: Callable[[dict[str, Any]], str]


@dataclass(frozen=True)
class Options:
    """What the command's options of the same names say."""

    engine: str = "local"  # local, dask or ray
    jobs: int | None = None  # runs at once; default the number of cores
    resume: bool = False
    limit: int | None = None  # places
    known: str | None = None  # a file of findings judged before
    since: str | None = None  # an earlier audit
    history: str | None = None  # a folder or URL with a file of each night
    pages: int = 50
    timeout: float = 300.0  # seconds a run, and more for large ones
    redact: bool = False
    run_config: bool = True
    prepare: Callable[[], None] | None = None  # what each worker does first


def audit(
    roots: Sequence[str], out: str, outputs: Outputs, options: Options | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Audits every run below the roots (folders, files, fsspec URLs) into `out`; -> the document that the page is drawn from:
    that of `audit.json`, with ``rows`` and ``curves``. Raises ForensicsError where nothing is found or written."""
    options, tick = options or Options(), progress or (lambda what, done, total: None)
    _check(roots, options)
    accepted = suppressions.read_known(options.known) if options.known else []
    before = suppressions.read_previous(options.since) if options.since else None
    if options.history and options.redact:
        raise ForensicsError("a history keeps the names and paths that --redact hides", "Audit once for the history, and again to share.")
    past, night = (history.read(options.history) if options.history else None), history.now()
    survey = discover.survey(roots, out, options.limit, tick, listing.remembered(out) if options.resume else None)
    found = survey.places
    if not found:
        raise ForensicsError(f"nothing readable in {', '.join(roots)}", "Give folders that hold runs, or a folder above them.")
    written_files.begin(out, options.redact)
    if not options.resume:
        written_files.forget(out, "rows", "cases")
    listing.remember(out, survey.kinds)
    target = out if remote.is_url(out) else os.path.abspath(out)  # a worker may be in another folder
    ask = partial(probe.of, found, target, os.getcwd())
    in_memory = any(p.root.startswith("memory://") for p in found) or out.startswith("memory://")  # a file system of this process
    name = "here" if in_memory else options.engine
    with tempfile.TemporaryDirectory(prefix="forensics-audit-") as notes, engines.opened(name, options.jobs, Path(notes), ask) as engine:
        job = one_place.Job(target, notes, options.timeout, os.getpid(), os.getcwd(), options.run_config, options.prepare)
        records = kept.Kept(out, Path(notes))
        _analyze(found, records, job, engine, partial(tick, "runs"))
        found = _join(found, records, job, engine)
        table = collect.load(found, records, accepted)
        if not table.rows:
            raise ForensicsError(f"no run in {', '.join(roots)}", "Nothing there has steps, events or checkpoints.")
        document = _document(roots, table, before) | {"skipped": _skipped(survey, found, table)}
        document["history"] = history.since(past, table.dicts(), table.marks, night) if past is not None else None
        chosen = pages.worth_opening(table.dicts(), options.pages)
        names = None
        if options.redact:
            names = redaction.names(table, roots, pages.cases(chosen, table, job), redaction.texts(found))
            document = redaction.hide(table, document, names)
        drawing = pages.Drawing(outputs.page, names)
        document["pages_not_written"] = pages.write(chosen, table, job, engine, drawing, partial(tick, "pages"))
        records.tidy()
    _write(out, table, document, _drawn(table, document, outputs))
    if options.history:
        history.append(options.history, table.rows, table.marks, night)
    written_files.forget(out, "cases", *(["rows", "seen"] if options.redact else []))  # they hold what --redact hides
    return document | {"rows": table.dicts(), "curves": table.curves}


def _drawn(table: collect.Table, document: dict[str, Any], outputs: Outputs) -> dict[str, str]:
    """The texts for people, by file: a cause that does not lead clearly is open there, as it is on the page of its run."""
    rows = table.dicts(lambda r: r | {"top_cause": named_cause(r), "candidate": r["top_cause"]})
    shown = document | {"rows": rows, "curves": table.curves, "titles": _titles()}
    return {"summary.md": outputs.markdown(shown), "index.html": outputs.index(shown)}


def _check(roots: Sequence[str], options: Options) -> None:
    """Raises ForensicsError where an option cannot be meant."""
    wrong = {
        "no root to audit": not roots,
        f"there is no engine {options.engine}: local, dask or ray": options.engine not in ("here", "local", "dask", "ray"),
        "jobs must be at least 1": options.jobs is not None and options.jobs < 1,
        "pages must not be negative": options.pages < 0,
        "limit must be at least 1": options.limit is not None and options.limit < 1,
        "timeout must be above 0 seconds": options.timeout <= 0,
    }
    for said, holds in wrong.items():
        if holds:
            raise ForensicsError(said, "")


def _analyze(places: list[Place], records: kept.Kept, job: one_place.Job, engine: work.Engine, tick: Callable[[int, int], None]) -> None:
    """Every place whose records are not there yet, or did not say all. They are kept here as they come."""
    left = {p.key: p for p in places if not records.has(p)}
    before = len(places) - len(left)

    def done(key: str) -> bool:
        return records.has(left[key])

    def give_up(place: Place, why: str, proven: bool) -> None:
        records.add(kept.line(place, [one_place.failed(place, job, why) | ({} if proven else {kept.AGAIN: True})]))

    task = partial(one_place.do, job=job)
    try:
        work.run(work.Work(left, task, done, give_up, lambda n: tick(before + n, len(places)), records.add), engine)
    finally:
        records.flush()


def _join(found: list[Place], records: kept.Kept, job: one_place.Job, engine: work.Engine) -> list[Place]:
    """Places that are one run, restarted in another folder, become one place; where they are not, all stays as it is."""
    tried = [(discover.joined([found[n] for n in group]), group) for group in collect.restarts(found, records)]
    _analyze([place for place, _ in tried], records, job, engine, lambda done, total: None)
    out: list[Place | None] = list(found)
    for place, group in tried:
        together = records.of(place) or []
        if 0 < len(together) < len(group) and not any(r["row"]["error"] for r in together):
            for n in group:
                out[n] = None
            out[group[0]] = place
    return [p for p in out if p is not None]


def _skipped(survey: discover.Survey, found: list[Place], table: collect.Table) -> list[dict[str, Any]]:
    """What is in no row, with the reason."""
    rows = {place.key for place, _ in table.origins}
    empty = [skipped.Skipped(p.root, f, skipped.NO_RUN) for p in found if p.key not in rows and not services.of(p.root) for f in p.files]
    taken = {(p.root, f) for p in found if p.key in rows for f in p.files or (p.home,)}
    return skipped.listed([*survey.skipped, *empty], taken)


def _titles() -> dict[str, str]:
    return {c.id: c.title for c in causes_of_ours().values()} | {UNKNOWN: "Cause open"}


def _causes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many runs each cause has, the open ones last, with the candidates that lead there."""
    bad, titles = [r for r in rows if r["verdict"] == "unhealthy"], _titles()
    named = Counter(named_cause(r) for r in bad)
    nearest = Counter(r["top_cause"] for r in bad if named_cause(r) == UNKNOWN != r["top_cause"])

    def told(counted: Counter[str | None]) -> list[dict[str, Any]]:
        order = sorted(counted.items(), key=lambda x: (x[0] == UNKNOWN, -x[1], str(x[0])))
        return [{"cause": c, "title": titles.get(str(c), str(c)), "runs": n} for c, n in order]

    return [entry | ({"nearest": told(nearest)} if entry["cause"] == UNKNOWN else {}) for entry in told(named)]


def _document(roots: Sequence[str], table: collect.Table, before: dict[str, Any] | None) -> dict[str, Any]:
    told = collect.conclusions(table)
    rows = table.dicts()
    document: dict[str, Any] = jsonable(
        {
            "schema": SCHEMA,
            "tool": {"name": "forensics", "version": VERSION},
            "roots": list(roots),
            "runs": len(rows),
            "verdicts": {v: sum(r["verdict"] == v for r in rows) for v in ("unhealthy", "inconclusive", "healthy")},
            "failed": [{"id": r["id"], "path": r["path"], "error": r["error"]} for r in rows if r["error"]],
            "known": sum(r["known"] for r in rows),
            "causes": _causes(rows),
            "endings": dict(Counter(r["status"] for r in rows if r["status"] in ENDED_BADLY).most_common()),
            "costs": totals.of(rows),
            **told,
            "since": suppressions.changes(before, rows) if before is not None else None,
        }
    )
    return document


def _write(out: str, table: collect.Table, document: dict[str, Any], drawn: dict[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [arrow.column([row[i] for row in table.rows], pa.type_for_alias(t)) for i, t in enumerate(COLUMNS.values())]
    buffer = io.BytesIO()
    marked = pa.Table.from_arrays(arrays, names=list(COLUMNS)).replace_schema_metadata({"forensics": "audit"})  # no log to read
    pq.write_table(marked, buffer, compression="zstd")
    for name, text in {**drawn, "audit.json": output.case_json(document)}.items():
        storage.write(out, name, text)
    storage.write(out, "audit.parquet", buffer.getvalue())
