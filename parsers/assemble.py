"""Puts what the parsers read of one run together: tables with names, copies merged, lives told apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from parsers import attempts, merge, names
from parsers.tables import SCHEMAS, Gap, Run, Source, empty

_CODE = pa.int32()


@dataclass
class FileRead:
    """What one file gave: record batches by table, and what could not be read of it."""

    path: Path
    source: Source
    batches: dict[str, list[pa.RecordBatch]]
    gaps: list[Gap]

    def table(self, name: str) -> pa.Table:
        """The file's rows of one table, without the columns that are filled in later."""
        parts = self.batches.get(name, [])
        return pa.Table.from_batches(parts).unify_dictionaries().combine_chunks() if parts else empty(name)


@dataclass
class Group:
    """The files that make up one run."""

    id: str
    path: str
    files: list[FileRead] = field(default_factory=list)


def run(group: Group, overrides: dict[str, str]) -> Run:
    """Tables of a run. Every row gets its source and attempt, every metric its canonical name."""
    files = group.files
    tables = {t: _concat(t, files) for t in SCHEMAS}
    framework = _framework(tables, files)
    meanings = _meanings(tables["metrics"], framework, overrides)
    tables["metrics"] = _named(tables["metrics"], meanings)
    formats = {f.source.path: f.source.format for f in files}
    tables["metrics"], merged = merge.drop_copies(tables["metrics"], formats)
    tables, lives = attempts.assign(tables, formats)
    found = Run(group.id, group.path, tables, [f.source for f in files], [g for f in files for g in f.gaps])
    found.attempts, found.merged, found.framework = lives, merged, framework
    found.meanings = {(s, t): m for (s, t), m in meanings.items()}
    return found


def _concat(table: str, files: list[FileRead]) -> pa.Table:
    schema = SCHEMAS[table]
    parts = []
    for f in files:
        batches = f.batches.get(table)
        if not batches:
            continue
        part = _in_file_order(pa.Table.from_batches(batches))
        n = part.num_rows
        columns = []
        for c in schema:
            if c.name == "source":
                codes = pa.array(memoryview(bytes(4 * n)).cast("i")) if n else pa.array([], _CODE)
                columns.append(pa.DictionaryArray.from_arrays(codes, pa.array([f.source.path])))
            elif c.name in part.column_names:
                columns.append(part[c.name])
            else:
                columns.append(pa.nulls(n, c.type))
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    if not parts:
        return empty(table)
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _in_file_order(table: pa.Table) -> pa.Table:
    """Parsers may gather rows by layout; `at` says where they stood."""
    import numpy as np

    at = table["at"].fill_null(-1).to_numpy()
    if (at[1:] >= at[:-1]).all():
        return table
    return table.unify_dictionaries().take(pa.array(np.argsort(at, kind="stable")))


def _framework(tables: dict[str, pa.Table], files: list[FileRead]) -> str | None:
    tags = tables["metrics"]["tag"].combine_chunks() if tables["metrics"].num_rows else None
    return names.detect_framework(
        tags.dictionary.to_pylist() if tags is not None else [],
        config_keys=set(tables["config"]["key"].to_pylist()),
        formats={f.source.format for f in files},
        file_names=[f.source.path for f in files],
    )


def _meanings(metrics: pa.Table, framework: str | None, overrides: dict[str, str]) -> dict[tuple[str, str], names.Meaning]:
    """(source, tag) -> what the tag means there."""
    pairs = metrics.select(["source", "tag"]).group_by(["source", "tag"]).aggregate([])
    by_source: dict[str, set[str]] = {}
    for row in pairs.to_pylist():
        by_source.setdefault(row["source"], set()).add(row["tag"])
    found = {}
    for source, tags in by_source.items():
        folder, _, _ = source.rpartition("/")
        siblings = frozenset(tags)
        for tag in tags:
            found[source, tag] = names.meaning(tag, framework=framework, folder=folder, siblings=siblings, overrides=overrides)
    return found


def _named(metrics: pa.Table, meanings: dict[tuple[str, str], names.Meaning]) -> pa.Table:
    """Fills the column `name`: one lookup for each distinct (source, tag), then integers only."""
    if not metrics.num_rows:
        return metrics
    import numpy as np

    source, tag = (metrics[c].combine_chunks() for c in ("source", "tag"))
    sources, tags = source.dictionary.to_pylist(), tag.dictionary.to_pylist()
    distinct = sorted({m.name for m in meanings.values()})
    code = {n: i for i, n in enumerate(distinct)}
    lookup = np.zeros((len(sources), len(tags)), np.int32)
    for (s, t), m in meanings.items():
        lookup[sources.index(s), tags.index(t)] = code[m.name]
    picked = lookup[source.indices.to_numpy(), tag.indices.to_numpy()]
    column = pa.DictionaryArray.from_arrays(pa.array(picked), pa.array(distinct, pa.string()))
    return metrics.set_column(metrics.column_names.index("name"), "name", column)


def step_range(table: pa.Table) -> tuple[int, int] | None:
    """First and last step of a table's rows, None where no row has a step."""
    if not table.num_rows:
        return None
    ends = pc.min_max(table["step"]).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])
