"""Reads a file of which the user says that it maps steps to batches, whatever its schema. A helper, no parser.

What a parser finds by itself is taken as it is. Else rows (JSON lines, a JSON list or object, CSV, Parquet) are read by the
names of their columns, more leniently than in a run folder, where the same names may be metrics: a lone column
``sample``, a batch id, a range (``first_sample``, ``last_sample``, both in it; ``start``, ``end``: the end is not), a source,
or an object of sources with counts.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import parsers
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary
from parsers.records.cells import whole
from parsers.tables import SCHEMAS, Rows, table_of
from parsers.walk import is_regular

_MORE_IDS = {"docs", "documents", "rows"}  # elsewhere these are texts and numbers of rows
_FIRST, _LAST, _END = (
    lazy_re(rf"(?:(?:sample|row|index|idx)_)?(?:{words})(?:_(?:sample|row|index|idx|id))?")
    for words in ("first|start|begin|lo|from", "last|hi|to", "end|stop")
)
_SHARD = lazy_re(r"(?:shard|file|source|domain|dataset|url|tar|part|corpus|language)s?(?:_?(?:id|name|path)s?)?|data_source")
_RANK = {*vocabulary.RANK, "data_parallel_rank", "worker"}
_LONGEST = 1_000_000  # samples of a range
_MOST = 3_000_000  # samples in all: a small file of ranges may name billions


def read(path: Path) -> pa.Table:
    """Rows of the batches table (without attempts) in the order of the file. Raises OSError, or ValueError with a sentence."""
    if not is_regular(path):
        raise ValueError("not a regular file: not opened")
    try:
        return _read(path)
    except (pa.ArrowException, csv.Error, RecursionError, OverflowError, MemoryError) as e:
        raise ValueError(f"{path.name} is damaged: {next(iter(str(e).splitlines()), type(e).__name__)[:160]}") from e


def _read(path: Path) -> pa.Table:
    found = parsers.read_all(path)
    tables = [r.tables["batches"] for r in found if r.tables["batches"].num_rows]
    if tables:
        return pa.concat_tables(tables)
    rows = Rows()
    count = 0
    for at, row in _rows(path):
        if count > _MOST:
            raise ValueError(f"{path.name} lists more than {_MOST:,} samples: cut it to the steps in question")
        count += _add(rows, {re.sub(r"[\s.\-/]+", "_", str(k).strip()).lower(): v for k, v in row.items()}, at)
    parts = [b for b in rows.flush() if table_of(b) == "batches"]
    if not count or not parts:
        raise ValueError(f"no row of {path.name} maps a step to samples, batch ids, shards or sources")
    table = pa.Table.from_batches(parts)
    source = pa.array([path.name] * table.num_rows).dictionary_encode()
    columns = [
        source if f.name == "source" else table[f.name] if f.name in table.column_names else pa.nulls(table.num_rows, f.type)
        for f in SCHEMAS["batches"]
    ]
    return pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, SCHEMAS["batches"], strict=True)], schema=SCHEMAS["batches"])


def _add(rows: Rows, row: dict[str, Any], at: int) -> int:
    """Rows of the batch that a row of the file tells; 0 where it tells none."""
    names = [k for k in vocabulary.step_names(row) if k != "batch_id"]
    step = next((n for k in names if (n := whole(row[k])) is not None), None)
    if step is None:
        return 0
    rank = next((n for k, v in row.items() if k in _RANK and (n := whole(v)) is not None and 0 <= n < 2**31), None)
    shards = [s for k, v in row.items() if _SHARD.fullmatch(k) for s in _words(v)]
    lists = (v for k, v in row.items() if k not in vocabulary.STEP and _names_samples(k))
    samples = next((w for v in lists if (w := _words(v))), [])
    samples = samples or _range(row) or _words(row.get("batch_id"))
    paired = bool(samples) and len(shards) in (1, len(samples))
    for i, sample in enumerate(samples):
        shard = shards[i if len(shards) > 1 else 0] if paired else None
        rows.add("batches", step=step, rank=rank, position=i, sample=sample, shard=shard, how="recorded", at=at)
    for shard in [] if paired else shards:
        rows.add("batches", step=step, rank=rank, shard=shard, how="recorded", at=at)
    return len(samples) or len(shards)


def _names_samples(name: str) -> bool:
    return name in _MORE_IDS or bool(vocabulary.SAMPLE_LIST.fullmatch(name) or vocabulary.SAMPLE_ONE.fullmatch(name))


def _range(row: dict[str, Any]) -> list[str]:
    first, last, end = (
        next((n for k, v in row.items() if p.fullmatch(k) and (n := whole(v)) is not None), None) for p in (_FIRST, _LAST, _END)
    )
    stop = last + 1 if last is not None else end
    return [str(i) for i in range(first, stop)] if first is not None and stop is not None and 0 < stop - first <= _LONGEST else []


def _words(value: Any) -> list[str]:
    """Ids or names in a cell: a list, an object's keys, or text with commas, semicolons or blanks between."""
    if isinstance(value, dict):
        return [str(k) for k in value]
    if isinstance(value, (list, tuple)):
        return [w for x in value for w in (_words(x) if isinstance(x, (list, tuple)) else [str(x)])]
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return []
    text = str(value).strip()
    if isinstance(value, str) and text[:1] in "[(":
        text = text.strip("[]()")
    separator = next((s for s in (",", ";") if s in text), None)
    parts = text.split(separator) if separator else text.split() if re.fullmatch(r"[\d\s-]+", text) else [text]
    return [p.strip(" '\"") for p in parts if p.strip(" '\"")]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line or row, its columns)."""
    with path.open("rb") as f:
        head = f.read(8)
    if head.startswith((b"PAR1", b"ARROW1")):
        import pyarrow.ipc
        import pyarrow.parquet as pq

        table = pq.read_table(path) if head.startswith(b"PAR1") else pyarrow.ipc.open_file(path).read_all()
        yield from enumerate(table.to_pylist(), 1)
        return
    text = path.read_text("utf-8-sig", errors="replace")
    if text.lstrip()[:1] in ("{", "["):
        yield from _json(text)
        return
    sample = text[:8192]
    delimiter = max(",;\t|", key=sample.split("\n", 1)[0].count)
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    yield from ((reader.line_num, {k: v for k, v in row.items() if k is not None}) for row in reader)


def _json(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if whole is None or (isinstance(whole, dict) and "\n" not in text.strip() and _has_step(whole)):
        for at, line in enumerate(text.splitlines(), 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield at, row
        return
    while isinstance(whole, dict) and len(whole) == 1 and isinstance(next(iter(whole.values())), (dict, list)):
        whole = next(iter(whole.values()))
    if isinstance(whole, list):
        yield from ((i, row) for i, row in enumerate(whole, 1) if isinstance(row, dict))
    elif isinstance(whole, dict):
        for i, (step, value) in enumerate(whole.items(), 1):
            yield i, {"step": step, **(value if isinstance(value, dict) else {"samples": value})}


def _has_step(row: dict[str, Any]) -> bool:
    return bool(vocabulary.step_names(map(vocabulary.plain, row)))
