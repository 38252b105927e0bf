"""The pages of an audit: a report and a case for the runs worth opening."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from forensics import output
from forensics.audits import one_place, redaction, storage, written_files
from forensics.audits.collect import Table
from forensics.audits.discover import Place
from forensics.audits.engines import work
from forensics.case_parts import notes
from forensics.causes.files import causes
from forensics.errors import ForensicsError
from forensics.run import identity

Item = tuple[
    Place, str, str, str | None
]  # the place, the id of the run, its id in the place's records, and what its row says of starting it again


@dataclass(frozen=True)
class Drawing:
    """How a page is drawn from a case, and the names to hide in it with `--redact`."""

    render: Callable[[dict[str, Any]], str]
    names: redaction.Names | None = None


def worth_opening(rows: Sequence[dict[str, Any]], most: int) -> list[int]:
    """The worst of each cause in turn, until there are enough."""
    wide = {c.id for c in causes().values() if c.wide_group}
    by_cause: dict[str, list[int]] = {}
    for i, r in enumerate(rows):
        if r["verdict"] == "unhealthy" and r["top_cause"] not in wide:
            by_cause.setdefault(str(r["top_cause"]), []).append(i)
    for members in by_cause.values():
        members.sort(key=lambda i: (-(rows[i]["probability"] or 0), -rows[i]["grave"], rows[i]["id"]))
    ranked = [(n, -len(m), cause, i) for cause, m in by_cause.items() for n, i in enumerate(m)]
    return sorted(i for _, _, _, i in sorted(ranked)[:most])


def cases(chosen: list[int], table: Table, job: one_place.Job) -> Iterator[dict[str, Any]]:
    """The cases of the runs that get a page, as far as they were analyzed in this audit."""
    fresh = set(storage.names(job.out, one_place.CASES))
    for i in chosen:
        place, raw = table.origins[i]
        if one_place.case_name(place, raw) in fresh:
            yield _named(one_place.case_of(place, raw, job), table.rows[i][0])


def write(
    chosen: list[int], table: Table, job: one_place.Job, engine: work.Engine, drawing: Drawing, tick: Callable[[int, int], None]
) -> list[str]:
    """Writes the pages; -> the ids whose page would replace a file that is not ours."""
    items = {table.rows[i][0]: (table.origins[i][0], table.rows[i][0], table.origins[i][1], table.dicts()[i]["rerun"]) for i in chosen}
    free = set(written_files.free(job.out, items))
    others = sorted(items.keys() - free)
    items = {id: x for id, x in items.items() if id in free}
    written_files.keep_only(job.out, items, fresh=drawing.names is not None)  # one of the same name may be of a time without --redact
    fresh = set(storage.names(job.out, one_place.CASES))  # analyzed in this audit, so that a page of before is old
    failed: set[str] = set()

    def done(id: str) -> bool:
        return storage.exists(job.out, f"{written_files.PAGES}/{id}.html")

    left = {id: x for id, x in items.items() if one_place.case_name(x[0], x[2]) in fresh or not done(id)}
    task = partial(_write_one, job=job, drawing=drawing)
    work.run(work.Work(left, task, done, lambda item, *why: failed.add(item[1]), lambda n: tick(n, len(items))), engine)
    for i in chosen:
        if (id := table.rows[i][0]) in items and id not in failed:
            table.change(i, page=f"{written_files.PAGES}/{id}.html")
    return others


def _write_one(item: Item, job: one_place.Job, drawing: Drawing) -> str:
    place, id, raw, again = item
    html, case = written_files.pages_of(id)
    with one_place.at_work(place, job):
        document = _named(one_place.case_of(place, raw, job), id)
        document["run"]["again"]["says"] = again  # other runs may have had a word in it
        if drawing.names is not None:
            document = redaction.case(document, drawing.names)
        document = _with_notes(document, storage.read(job.out, case))
        storage.write(job.out, case, output.case_json(document))
        storage.write(job.out, html, drawing.render(document))
    return id


def _named(document: dict[str, Any], id: str) -> dict[str, Any]:
    document["run"]["id"] = id
    return document


def _with_notes(document: dict[str, Any], earlier: bytes | None) -> dict[str, Any]:
    """With the author's word in the case that is about to be replaced."""
    try:
        before = json.loads(earlier or b"{}")
        return notes.carried(document, before) if identity.same(before["run"]["identity"], document["run"]["identity"]) else document
    except (ForensicsError, ValueError, AttributeError, KeyError, TypeError, RecursionError):  # none, or one that somebody edited
        return document
