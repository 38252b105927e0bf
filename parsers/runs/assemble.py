"""Puts what the parsers read of one run together: tables with names, copies merged, attempts told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from parsers import arrow, frameworks, loss_by_course, loss_names, names, objectives, sums, value_names
from parsers.records.vocabulary import EPISODE_STEPS, EPOCH_STEPS
from parsers.runs import attempts, bars_beside, duplicates, environments, epoch_files, finer_twins, launches, second_axis, states_beside
from parsers.tables import SCHEMAS, Gap, Run, Source, empty, run_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass
class FileRead:
    """What one file gave: record batches by table, and what could not be read of it. Where it holds several runs
    (`parts`), what it gave of ``run``."""

    path: Path
    source: Source
    batches: dict[str, list[pa.RecordBatch]]
    gaps: list[Gap]
    run: str = ""


def parts(f: FileRead) -> list[FileRead]:
    """A file for each run that it holds; mostly the file itself."""
    found: dict[str, dict[str, list[pa.RecordBatch]]] = {}
    for table, batches in f.batches.items():
        for b in batches:
            found.setdefault(run_of(b), {}).setdefault(table, []).append(b)
    if found.keys() <= {""}:
        return [f]
    return [FileRead(f.path, f.source, batches, f.gaps, run) for run, batches in found.items()]


_A_FILE_EACH = {"mlflow_files"}  # formats of trackers that write a file for each metric


@dataclass
class Group:
    """The files that make up one run."""

    id: str
    path: str
    files: list[FileRead] = field(default_factory=list)


def runs(group: Group, overrides: dict[str, str]) -> list[Run]:
    """Tables of the runs that a group of files holds. Every row gets its source and attempt, every metric its canonical name."""
    files = group.files
    tables = {t: _concat(t, files) for t in SCHEMAS}
    framework = _framework(tables, files)
    logged = set(arrow.words(tables["metrics"]["tag"])) if overrides else set()
    overrides = {name: tag for name, tag in overrides.items() if tag in logged}  # a tag that was not logged takes no name from another
    alone = frozenset(f.source.path for f in files if f.source.format in _A_FILE_EACH)
    tables["metrics"], meanings = _named(tables["metrics"], framework, overrides, objectives.criteria(tables["config"]), alone)
    formats = {f.source.path: f.source.format for f in files}
    of_epochs = frozenset(f.source.path for f in files if EPOCH_STEPS in f.source.note)
    tables["metrics"], at_second, by_second = second_axis.placed(tables["metrics"])
    tables["metrics"], at_last = epoch_files.placed(tables["metrics"], of_epochs)
    tables["config"] = second_axis.config_placed(tables["config"], at_second)
    tables["events"] = epoch_files.events_placed(tables["events"], at_second | at_last)
    tables["metrics"], by_state = states_beside.placed(tables["metrics"], [f.source for f in files])
    numbered = [f.source for f in files if f.source.path not in by_state]
    tables["metrics"], by_bar = bars_beside.placed(tables["metrics"], tables["events"], numbered)
    tables["metrics"], by_environment = environments.placed(tables["metrics"], tables["config"], numbered)
    tables["metrics"], merged = duplicates.drop_copies(tables["metrics"], formats)
    counted = frozenset(f.source.path for f in files if EPISODE_STEPS in f.source.note)  # nothing but a launch sets these back, either
    tables, found_attempts = attempts.assign(tables, formats, of_epochs | counted)
    noted = by_second | by_state | by_bar | by_environment | dict.fromkeys(at_last, epoch_files.NOTE)
    sources = [replace(f.source, note=noted.get(f.source.path, f.source.note)) for f in files]
    found = Run(group.id, group.path, tables, sources, [g for f in files for g in f.gaps])
    found.attempts, found.merged, found.framework, found.meanings = found_attempts, merged, framework, meanings
    return launches.split(found, formats, {f.source.path: str(f.path) for f in files})


@cache
def _columns(table: str) -> list[tuple[str, pa.DataType]]:
    return [(f.name, f.type) for f in SCHEMAS[table]]


def _concat(table: str, files: list[FileRead]) -> pa.Table:
    """All files' rows, in file order; tags get one dictionary."""
    import numpy as np

    parts = [(f.source.path, f.batches[table]) for f in files if f.batches.get(table)]
    if not parts:
        return empty(table)
    lengths = [sum(b.num_rows for b in batches) for _, batches in parts]
    order = _file_order([[arrow.filled(b["at"], -1) for b in part] for _, part in parts])
    logged = {c: [b[c] for _, part in parts for b in part] for c in parts[0][1][0].schema.names}
    parts = [(path, []) for path, _ in parts]
    if table == "metrics":  # a file with metrics belongs to one run, so that its pieces can go as they are joined
        for f in files:
            f.batches.pop(table, None)
    columns = []
    total = sum(lengths)
    for name, kind in _columns(table):
        if name == "source":
            code = np.zeros(total, np.int32)  # of the first file: its pages are never touched
            starts = np.cumsum([0, *lengths])
            for i in range(1, len(parts)):
                code[starts[i] : starts[i + 1]] = i
            columns.append(arrow.coded(code, [path for path, _ in parts]))
            continue
        pieces = logged.pop(name, [])
        if all(p.null_count == len(p) for p in pieces):
            columns.append(arrow.nothing(total, kind))
        elif order is not None:
            columns.append(arrow.taken(_joined(pieces), order))
        elif arrow.is_number(kind):
            columns.append(pa.chunked_array(pieces))  # as they are: laying them end to end takes longer than reading some files
        else:
            columns.append(_joined(pieces))
    return pa.Table.from_arrays(columns, schema=SCHEMAS[table])


def _joined(pieces: list[pa.Array]) -> pa.Array:
    return pieces[0] if len(pieces) == 1 else pa.chunked_array(pieces).unify_dictionaries().combine_chunks()


def _file_order(places: list[list[npt.NDArray[np.int64]]]) -> npt.NDArray[np.int64] | None:
    """Parsers may gather rows by layout; `at` says where they stood. None where they stand so already."""
    import numpy as np

    grows = [
        all(bool((p[1:] >= p[:-1]).all()) for p in part) and all(a[-1] <= b[0] for a, b in zip(part, part[1:], strict=False))
        for part in places
    ]
    if all(grows):
        return None
    orders, first = [], 0
    for part, grown in zip(places, grows, strict=True):
        rows = sum(len(p) for p in part)
        orders.append(np.arange(first, first + rows) if grown else first + np.argsort(np.concatenate(part), kind="stable"))
        first += rows
    return np.concatenate(orders)


def _framework(tables: dict[str, pa.Table], files: list[FileRead]) -> str | None:
    return frameworks.detect(
        arrow.words(tables["metrics"]["tag"]),
        config_keys=set(tables["config"]["key"].to_pylist()),
        formats={f.source.format for f in files},
        file_names=[f.source.path for f in files],
    )


def _logged(tag: npt.NDArray[np.int32], tags: int) -> npt.NDArray[np.int64]:
    """The codes that stand in some rows."""
    import numpy as np

    seen = np.zeros(tags, np.bool_)
    seen[tag] = True
    return np.flatnonzero(seen)


def _named(
    metrics: pa.Table, framework: str | None, overrides: dict[str, str], criteria: set[str], alone: frozenset[str]
) -> tuple[pa.Table, dict[tuple[str, str], names.Meaning]]:
    """Fills the column `name`: one lookup for each distinct (source, tag), then integers only. -> (source, tag) -> what
    the tag means there. `alone`: the files of a tracker that writes one for each metric: what stands beside each is in the others."""
    if not metrics.num_rows:
        return metrics, {}
    import numpy as np

    (source, paths), (tag, tags) = arrow.codes(metrics["source"]), arrow.codes(metrics["tag"])
    spans = arrow.stretches(source, len(paths))
    logged_in = [_logged(tag[first:last], len(tags)) for first, last in spans]  # of each file the codes of its tags
    together = sorted({i for path, of in zip(paths, logged_in, strict=True) if path in alone for i in of.tolist()})
    # by file, or by folder where each metric has its own: such a store may have thousands
    known: dict[str, Mapping[str, names.Meaning]] = {}
    meanings: dict[tuple[str, str], names.Meaning] = {}
    for path, logged in zip(paths, logged_in, strict=True):
        of, stand = (path.rpartition("/")[0], together) if path in alone else (path, logged.tolist())
        if of not in known:
            folder = of if path in alone else loss_names.home(path)
            known[of] = names.meanings([tags[i] for i in stand], framework=framework, folder=folder, overrides=overrides)
        meanings |= {(path, tags[i]): known[of][tags[i]] for i in logged.tolist()}
    for path, t in value_names.candidates(meanings):
        first, last = spans[paths.index(path)]
        found = value_names.told(t, arrow.values(metrics["value"].slice(first, last - first))[tag[first:last] == tags.index(t)])
        if found is not None:
            meanings[path, t] = found
    meanings |= objectives.stand_ins(meanings, criteria)
    meanings |= sums.told(metrics, meanings)
    meanings |= loss_by_course.told(metrics, meanings)
    meanings |= finer_twins.told(metrics, meanings)
    named = [(logged, [meanings[path, tags[i]].name for i in logged.tolist()]) for path, logged in zip(paths, logged_in, strict=True)]
    distinct = sorted({name for _, called in named for name in called})
    code = {name: i for i, name in enumerate(distinct)}
    picked = np.empty(len(tag), np.int32)
    for (logged, called), (first, last) in zip(named, spans, strict=True):
        lookup = np.zeros(len(tags), np.int32)
        lookup[logged] = [code[name] for name in called]
        for i in range(first, last, arrow.BLOCK):  # the codes of a block become indices of eight bytes each
            j = min(i + arrow.BLOCK, last)
            np.take(lookup, tag[i:j], out=picked[i:j], mode="clip")  # "raise" would copy
    return metrics.set_column(metrics.schema.get_field_index("name"), "name", arrow.coded(picked, distinct)), meanings
