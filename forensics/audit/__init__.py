"""Analyze over many runs: one row each, what they share, pages for those worth opening. Top to bottom:

    find places -> work (in parallel, kept one by one) -> join restarts -> rows and conclusions -> pages -> outputs

Everything that is finished is kept below `<out>/.audit` as it comes, so that `--resume` does nothing twice.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from forensics import output, rules
from forensics.audit import backends, collect, discover, redaction, row, storage, suppressions, worker, written_files
from forensics.audit.discover import Place
from forensics.case import jsonable
from forensics.errors import ForensicsError
from forensics.version import VERSION

SCHEMA = 1
PAGES = 50
SECONDS = 300.0
OUTPUTS = written_files.OUTPUTS
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Outputs:
    """How the results are drawn; forensics knows no pixels, so the caller says it. Each must be importable by name."""

    page: Callable[[dict[str, Any]], str]  # a case -> runs/<id>.html
    index: Callable[[dict[str, Any]], str]  # the document of `audit` -> index.html
    markdown: Callable[[dict[str, Any]], str]


def audit(
    roots: Sequence[str],
    out: str,
    outputs: Outputs,
    *,
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    limit: int | None = None,
    known: str | None = None,
    since: str | None = None,
    pages: int = PAGES,
    seconds: float = SECONDS,
    redact: bool = False,
    run_config: bool = True,
    prepare: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Audits every run below the roots (folders, files, fsspec URLs) into `out`; -> the document that the page is drawn from:
    that of `audit.json`, with ``rows`` and ``curves``. Raises ForensicsError where nothing is found or written."""
    accepted = suppressions.read_known(known) if known else []
    before = suppressions.read_previous(since) if since else None
    found = discover.find(roots, out)[:limit]
    if not found:
        raise ForensicsError(f"nothing readable in {', '.join(roots)}", "Give folders that hold runs, or a folder above them.")
    written_files.begin(out, redact)
    if not resume:
        written_files.forget(out, "rows", "cases")
    jobs = jobs or _cores()
    if any(p.root.startswith("memory://") for p in found) or out.startswith("memory://"):
        engine = "here"  # this file system lives in this process
    with tempfile.TemporaryDirectory(prefix="forensics-audit-") as notes, backends.opened(engine, jobs, _empty_folder(notes)) as pool:
        job = worker.Job(out, notes, seconds, os.getpid(), os.getcwd(), run_config, prepare)
        run = partial(backends.run, pool=pool, jobs=jobs, notes=Path(notes))
        _work(found, job, run, progress)
        found = _join(found, job, run)
        table = collect.load(found, out, accepted)
        if not table.rows:
            raise ForensicsError(f"no run in {', '.join(roots)}", "Nothing there has steps, events or checkpoints.")
        document = _document(roots, table, before)
        chosen = _worth_opening(list(table.dicts()), pages)
        names = redaction.names(table, roots, _cases(chosen, found, table, out), redaction.texts(found)) if redact else None
        if names is not None:
            document = redaction.hide(table, document, names)
        document["pages_not_written"] = _pages(chosen, found, table, job, run, outputs, progress, names)
    _write(out, table, document, outputs)
    written_files.forget(out, "cases", *(["rows"] if redact else []))  # the rows hold what --redact hides
    return document | {"rows": list(table.dicts()), "curves": table.curves}


def _empty_folder(above: str) -> Path:
    folder = Path(above) / "empty"
    folder.mkdir()
    return folder


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _work(found: list[Place], job: worker.Job, run: Callable[..., None], progress: Progress | None) -> None:
    have = set(storage.names(job.out, worker.ROWS))
    left = {p.key: p for p in found if f"{p.key}.json" not in have or worker.kept(p, job.out) is None}
    done, total = len(found) - len(left), len(found)

    def tick(n: int) -> None:
        if progress:
            progress("runs", done + n, total)

    run(left, partial(worker.do, job=job), done=partial(_is_kept, left, job.out), give_up=partial(_give_up, job.out), tick=tick)


def _is_kept(wanted: dict[str, Place], out: str, key: str) -> bool:
    return worker.kept(wanted[key], out) is not None


def _give_up(out: str, place: Place, why: str) -> None:
    name = place.name or place.home
    worker.keep(place, out, [row.failed(worker.id_of(place, name), worker.where(place), why)])


def _join(found: list[Place], job: worker.Job, run: Callable[..., None]) -> list[Place]:
    """Places that are one run, restarted in another folder, become one place; where they are not, all stays as it is."""
    tried = {i[0]: (discover.joined([found[n] for n in i]), i) for i in collect.restarts(found, job.out)}
    left = {p.key: p for p, _ in tried.values() if worker.kept(p, job.out) is None}
    run(left, partial(worker.do, job=job), done=partial(_is_kept, left, job.out), give_up=partial(_give_up, job.out), tick=lambda n: None)
    out = list(found)
    gone: set[int] = set()
    for first, (place, parts) in tried.items():
        records = worker.kept(place, job.out) or []
        if 0 < len(records) < len(parts) and not any(r["row"]["error"] for r in records):
            out[first] = place
            gone |= set(parts[1:])
    return [p for i, p in enumerate(out) if i not in gone]


def _document(roots: Sequence[str], table: collect.Table, before: dict[str, Any] | None) -> dict[str, Any]:
    told = collect.conclusions(table)
    rows = list(table.dicts())
    causes = Counter(r["top_cause"] for r in rows if r["verdict"] == "unhealthy")
    document = {
        "schema": SCHEMA,
        "tool": {"name": "forensics", "version": VERSION},
        "roots": list(roots),
        "runs": len(rows),
        "verdicts": {v: sum(r["verdict"] == v for r in rows) for v in ("unhealthy", "inconclusive", "healthy")},
        "failed": [{"id": r["id"], "path": r["path"], "error": r["error"]} for r in rows if r["error"]],
        "known": sum(r["known"] for r in rows),
        "causes": [{"cause": c, "runs": n} for c, n in sorted(causes.items(), key=lambda x: (-x[1], str(x[0])))],
        **told,
        "since": suppressions.changes(before, rows) if before is not None else None,
    }
    plain: dict[str, Any] = jsonable(document)
    return plain


def _cases(chosen: list[int], found: list[Place], table: collect.Table, out: str) -> Iterator[dict[str, Any]]:
    """The cases of the runs that get a page, as far as they were analyzed in this audit."""
    for i in chosen:
        number, raw = table.raw[i]
        data = storage.read(out, f"{worker.CASES}/{worker.case_name(found[number], raw)}")
        if data is not None:
            document: dict[str, Any] = json.loads(gzip.decompress(data))
            document["run"]["id"] = table.rows[i][0]
            yield document


def _pages(
    chosen: list[int],
    found: list[Place],
    table: collect.Table,
    job: worker.Job,
    run: Callable[..., None],
    outputs: Outputs,
    progress: Progress | None,
    names: redaction.Names | None,
) -> list[str]:
    """A page for the worst of each cause in turn, until there are enough; -> the ids whose page would replace a file that is not ours."""
    items = {table.rows[i][0]: (found[table.raw[i][0]], table.rows[i][0], table.raw[i][1]) for i in chosen}
    task = partial(_page, job=job, render=outputs.page, names=names)
    failed: dict[str, str] = {}

    def tick(n: int) -> None:
        if progress:
            progress("pages", n, len(items))

    def done(id: str) -> bool:
        return storage.exists(job.out, f"runs/{id}.html")

    free = set(written_files.free(job.out, items))
    others = sorted(items.keys() - free)
    items = {id: x for id, x in items.items() if id in free}
    written_files.keep_only(job.out, items, fresh=names is not None)  # one of the same name may be of a time without --redact
    fresh = set(storage.names(job.out, worker.CASES))  # analyzed in this audit, so that a page of before is old
    left = {id: x for id, x in items.items() if worker.case_name(x[0], x[2]) in fresh or not done(id)}
    run(left, task, done=done, give_up=lambda item, why: failed.update({item[1]: why}), tick=tick)
    for i in chosen:
        if table.rows[i][0] not in failed and table.rows[i][0] not in others:
            table.change(i, page=f"runs/{table.rows[i][0]}.html")
    return others


def _page(item: tuple[Place, str, str], job: worker.Job, render: Callable[[dict[str, Any]], str], names: redaction.Names | None) -> str:
    return worker.page(*item, job=job, render=render, names=names)


def _worth_opening(rows: list[dict[str, Any]], most: int) -> list[int]:
    by_cause: dict[str, list[int]] = {}
    for i, r in enumerate(rows):
        if r["verdict"] == "unhealthy" and r["top_cause"] not in rules.said("WIDE_GROUP"):
            by_cause.setdefault(str(r["top_cause"]), []).append(i)
    for members in by_cause.values():
        members.sort(key=lambda i: (-(rows[i]["probability"] or 0), -rows[i]["grave"], rows[i]["id"]))
    ranked = [(n, -len(m), cause, i) for cause, m in by_cause.items() for n, i in enumerate(m)]
    return sorted(i for _, _, _, i in sorted(ranked)[:most])


def _write(out: str, table: collect.Table, document: dict[str, Any], outputs: Outputs) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*table.rows, strict=True))
    arrays = [pa.array(list(c), pa.type_for_alias(t)) for c, t in zip(columns, row.COLUMNS.values(), strict=True)]
    buffer = io.BytesIO()
    marked = pa.Table.from_arrays(arrays, names=list(row.COLUMNS)).replace_schema_metadata({"forensics": "audit"})  # no log to read
    pq.write_table(marked, buffer, compression="zstd")
    drawn = document | {"rows": list(table.dicts()), "curves": table.curves}
    storage.write(out, "summary.md", outputs.markdown(drawn))
    storage.write(out, "index.html", outputs.index(drawn))
    storage.write(out, "audit.json", output.case_json(document))
    storage.write(out, "audit.parquet", buffer.getvalue())
