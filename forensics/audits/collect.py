"""The records of all places as one table and as briefs; and places that turn out to be one run, restarted in another folder."""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from forensics.audits import history, rerun, suppressions
from forensics.audits.discover import Place
from forensics.audits.kept import Kept
from forensics.audits.row_columns import COLUMNS
from forensics.causes import files, weigh
from forensics.guards import over_runs
from forensics.many_runs import copies_and_forks, outcomes, repeated_failures, seed_groups, shared_batches, shared_causes
from forensics.many_runs.brief import LEAST_PROBABILITY, Brief, independent
from forensics.many_runs.shifts import Spiked
from forensics.ranking import SURE
from parsers import secrets
from parsers.runs.spans import BEGINNING, Span, goes_on

MOST_JOINED = 12
NEAR_RESUME = 3  # steps after a restart in which a spike is the restart's


REPEATED = ("rerun", "error_line", "why_null")  # sentences that many runs have in common


class Rows(Sequence[dict[str, Any]]):
    """Rows by column, each made when it is asked for: a hundred thousand at once would take a quarter of a gigabyte."""

    def __init__(self, rows: list[tuple[Any, ...]], told: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._rows, self._told = rows, told

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: Any) -> Any:
        return self._told(dict(zip(COLUMNS, self._rows[i], strict=True)))


@dataclass
class Table:
    """The rows (tuples in the order of COLUMNS) with what belongs to each."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    briefs: list[Brief] = field(default_factory=list)
    curves: list[bytes] = field(default_factory=list)
    origins: list[tuple[Place, str]] = field(default_factory=list)  # the place, and the id in its records
    guards: list[list[over_runs.Told]] = field(default_factory=list)
    marks: list[history.Mark] = field(default_factory=list)  # by which the next night knows the run

    def dicts(self, told: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: row) -> Rows:
        return Rows(self.rows, told)

    def part(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The rows with these columns alone."""
        places = [list(COLUMNS).index(c) for c in columns]
        return (dict(zip(columns, (row[i] for i in places), strict=True)) for row in self.rows)

    def change(self, i: int, **values: Any) -> None:
        self.rows[i] = tuple(values.get(c, v) for c, v in zip(COLUMNS, self.rows[i], strict=True))


def load(places: Iterable[Place], records: Kept, known: list[suppressions.Known]) -> Table:
    """Reads the kept records one place at a time; ids are made unique in the order of the places."""
    table, taken, paths, made = Table(), dict[str, int](), set[str](), Once()
    for place in places:
        for record in records.of(place) or []:
            row, raw = record["row"], record["row"]["id"]
            n = taken.get(raw.casefold(), 0)  # files of two ids must not be one on any file system
            while n and row["id"].casefold() in taken:
                n += 1
                row["id"] = f"{raw}-{n}"
            taken[raw.casefold()] = max(n, 1)
            taken.setdefault(row["id"].casefold(), 1)
            if secrets.MASK in row["path"]:  # two folders that differ only in a secret
                row["path"] = _another(row["path"], paths)
                paths.add(row["path"])
            judged = suppressions.apply(known, row, record["grave"])
            table.rows.append(tuple(made.of(row.get(c)) if c in REPEATED else _shared(row.get(c)) for c in COLUMNS))
            table.briefs.append(_brief(record, row, made))
            table.curves.append(bytes(255 if v < 0 else v for v in record["curve"]))
            table.origins.append((place, raw))
            table.marks.append(history.Mark.of(record, judged))
            table.guards.append([made.of(tuple(told)) for told in record["guards"]])
    table.marks = history.told_apart(table.marks)
    return table


class Once:
    """What a thousand runs have in common is held once."""

    def __init__(self) -> None:
        self.seen: dict[Any, Any] = {}

    def of(self, x: Any) -> Any:
        return self.seen.setdefault(x, x)

    def mapping(self, x: dict[str, Any]) -> dict[str, Any]:
        key = hashlib.blake2b(repr(x).encode("utf-8", "replace"), digest_size=12).digest()  # by text: 1, 1.0 and True are one key
        if key not in self.seen:
            self.seen[key] = {sys.intern(k): _shared(v) for k, v in x.items()}
        found: dict[str, Any] = self.seen[key]
        return found


def _another(path: str, taken: set[str]) -> str:
    return next(p for n in count(1) if (p := path if n == 1 else f"{path}~{n}") not in taken)


def _shared(x: Any) -> Any:
    return sys.intern(x) if isinstance(x, str) and len(x) < 60 else x


def _brief(record: dict[str, Any], row: dict[str, Any], made: Once) -> Brief:
    cause = row["top_cause"] if (row["probability"] or 0) >= LEAST_PROBABILITY else None
    return Brief(
        id=row["id"],
        path=row["path"],
        family=sys.intern(record["family"]),
        unhealthy=row["verdict"] == "unhealthy",
        cause=cause,
        config={sys.intern(k): sys.intern(v) for k, v in record["config"].items()},
        settings=made.mapping(record["settings"]),
        levels={sys.intern(k): (v[0], v[1]) for k, v in record["levels"].items()},
        hosts=tuple(map(sys.intern, record["hosts"])),
        shards=made.mapping(record["shards"]),
        struck=tuple(map(sys.intern, record["struck"])),
        prefixes=record["prefixes"],
        spiked=_spiked(record, row["id"]),
        spikes=len(record["spikes"]),
    )


def _spiked(record: dict[str, Any], id: str) -> Spiked | None:
    if record["logged"] is None or not record["family"]:
        return None
    first, last, interval = record["logged"]
    starts = sorted({s for s, _ in record["spikes"] if not any(0 <= s - r <= NEAR_RESUME for r in record["resumes"])})
    batches = {int(s): h for s, h in record["batches"].items()}
    return Spiked(id, first, last, np.array(starts, np.int64), interval, sys.intern(record["family"]), batches)


def conclusions(table: Table) -> dict[str, Any]:
    """What the runs share, as audit.json has it. A wide seed group makes its runs unhealthy."""
    copies = copies_and_forks.find(table.briefs)
    single = independent(table.briefs, copies)
    groups, comparisons = seed_groups.find(single)
    _wide(table, groups)
    for i, told in rerun.superseded(table.dicts(), table.briefs):
        table.change(i, rerun=told)
    alone = {b.id for b in single}
    spiked = [b.spiked for b in single if b.spiked is not None]
    ended = [row for row in table.part(repeated_failures.COLUMNS) if row["error_line"] and row["id"] in alone]
    return {
        "repeated_failures": repeated_failures.find(ended),
        "shared_batches": shared_batches.find(spiked),
        "looked": {
            "error_lines": len(ended),
            "spiking": sum(len(s.spikes) > 0 for s in spiked),
            "shards": sum(bool(b.shards) for b in single),
        },
        "shared_causes": shared_causes.find(single),
        "seed_groups": groups,
        "comparisons": comparisons,
        "duplicates": copies,
        "outcomes": outcomes.tables(single),
        "guards": over_runs.table(t for b, told in zip(table.briefs, table.guards, strict=True) if b.id in alone for t in told),
    }


def _wide(table: Table, groups: list[dict[str, Any]]) -> None:
    cause = next(c for c in files.causes().values() if c.wide_group)
    odds = 10 ** (weigh.start(cause.id) / 10)
    wide = {id for g in groups if g["wide"] for id in g["runs"]}
    for i, row in enumerate(table.dicts()):
        if row["id"] in wide and row["verdict"] != "unhealthy" and not row["known"]:
            said = "Runs that differ only in the seed end far apart: the recipe decides less than the seed."
            new = {"verdict": "unhealthy", "top_cause": cause.id, "probability": round(min(odds / (1 + odds), SURE), 6)}
            table.change(i, **new, certainty=None, second_cause="unknown", grave=1, answer=said, rerun=f"no: {cause.no_rerun}")
            table.marks[i] = replace(table.marks[i], findings=(*table.marks[i].findings, cause.id))


@dataclass(frozen=True)
class _Logged:
    """A place with one run, and what it logged."""

    index: int
    span: Span


def restarts(places: list[Place], kept: Kept) -> list[list[int]]:
    """Groups of places (by index) that may be one run going on in another folder: the same parent and loss, and one goes on from
    where the other stood. Reading them together decides, as it does where one path holds them all."""
    alike: dict[tuple[str, ...], list[_Logged]] = defaultdict(list)
    for i, place in enumerate(places):
        records = kept.of(place) or []
        if len(records) == 1 and records[0]["logged"] and records[0]["row"]["error"] is None:
            r = records[0]
            first, last, interval = r["logged"]
            logged = _Logged(i, Span(first, last, tuple(r["times"]) if r["times"] else None, interval))
            alike[place.root, str(PurePosixPath(place.name).parent), r["family"]].append(logged)
    return [group for members in alike.values() for group in _chains(members)]


def _chains(members: list[_Logged]) -> list[list[int]]:
    """Each joins the group of the one it goes on from, of several the one that came furthest."""
    chain: dict[int, list[int]] = {}
    furthest = sorted(members, key=lambda m: (m.span.last, m.index), reverse=True)
    first = np.array([m.span.first for m in furthest])
    for b in sorted(members, key=lambda m: (m.span.first, m.index)):
        if b.span.first <= max(1, BEGINNING * b.span.interval) or b.index in chain:  # the beginning of its log, as nearly all are
            continue
        earlier = map(furthest.__getitem__, np.flatnonzero(first < b.span.first).tolist())
        before = next((a for a in earlier if goes_on(a.span, b.span)), None)
        if before is None:
            continue
        group = chain.setdefault(before.index, [before.index])
        if len(group) < MOST_JOINED:
            group.append(b.index)
            chain[b.index] = group
    return [sorted(g) for g in {id(g): g for g in chain.values()}.values() if len(g) > 1]
