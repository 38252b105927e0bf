"""Rows of the files of a data set by their number, a reader for each kind of file. Helpers of data_sets."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers.records import index_files
from parsers.walk import is_regular

Row = dict[str, Any]
IDS = ("id", "sample_id", "idx", "index", "uid", "doc_id", "row_id", "sample")
_BLOCK = 1 << 24
_LLMC_MAGIC, _LLMC_HEADER = 20240520, 1024  # llm.c's token files begin with 256 int32


class Unreadable(Exception):
    """Why a data set, or a row of it, could not be read, in one sentence."""


@dataclass(frozen=True)
class DataSet:
    """``rows`` rows; ``get`` gives the rows of some row numbers; ``ids`` the id column, if there is one."""

    kind: str
    rows: int
    get: Callable[[Sequence[int]], list[Row]]
    ids: Callable[[], list[Any] | None] = lambda: None
    vocabulary: int | None = None  # of a tokenizer.json beside the data


def _joined(sizes: Sequence[int], read: Callable[[int, list[int]], list[Row]]) -> Callable[[Sequence[int]], list[Row]]:
    """Row numbers of several parts, read part by part."""
    ends = np.cumsum(sizes).tolist()

    def get(rows: Sequence[int]) -> list[Row]:
        wanted: dict[int, dict[int, int]] = {}
        for place, row in enumerate(rows):
            part = bisect_right(ends, row)
            wanted.setdefault(part, {})[place] = row - (ends[part - 1] if part else 0)
        found: dict[int, Row] = {}
        for part, inside in wanted.items():
            found.update(zip(inside, read(part, list(inside.values())), strict=True))
        return [found[place] for place in range(len(rows))]

    return get


def lines(files: list[Path]) -> DataSet:
    starts: list[NDArray[np.int64]] = []
    for path in files:
        ends = [np.array([-1], np.int64)]
        base, last = 0, b"\n"
        with path.open("rb") as f:
            while chunk := f.read(_BLOCK):
                ends.append(np.flatnonzero(np.frombuffer(chunk, np.uint8) == 10) + base)
                base, last = base + len(chunk), chunk[-1:]
        begins = np.concatenate(ends) + 1
        starts.append(begins[:-1] if last == b"\n" or not base else begins)

    def read(part: int, rows: list[int]) -> list[Row]:
        with files[part].open("rb") as f:
            return [_parsed(f, int(starts[part][row])) for row in rows]

    def ids() -> list[Any] | None:
        found: list[Any] = []
        for path in files:
            with path.open("rb") as f:
                found += [_id(_row(line)) for line in f]
        return found if any(x is not None for x in found) else None

    return DataSet("JSON lines", sum(map(len, starts)), _joined([len(s) for s in starts], read), ids)


def _parsed(f: Any, start: int) -> Row:
    f.seek(start)
    return _row(f.readline())


def _row(line: bytes) -> Row:
    """A line as a row; what is no JSON object is a row of that one text."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {"text": line.decode("utf-8", "replace")}
    return found if isinstance(found, dict) else {"value": found}


def _id(row: Row) -> Any:
    return next((row[k] for k in IDS if k in row), None)


def _column_ids(tables: Iterable[pa.Table]) -> list[Any] | None:
    columns = [t[next(k for k in IDS if k in t.column_names)] for t in tables if set(IDS) & set(t.column_names)]
    return [x for c in columns for x in c.to_pylist()] or None


def parquet(files: list[Path]) -> DataSet:
    import pyarrow.parquet as pq

    opened = [pq.ParquetFile(path, memory_map=True) for path in files]
    groups = [(f, g) for f in opened for g in range(f.num_row_groups)]
    sizes = [f.metadata.row_group(g).num_rows for f, g in groups]

    def read(part: int, rows: list[int]) -> list[Row]:
        f, g = groups[part]
        return list(f.read_row_group(g).take(pa.array(rows)).to_pylist())

    def ids() -> list[Any] | None:
        name = next((k for k in IDS if k in opened[0].schema_arrow.names), None)
        return _column_ids(f.read(columns=[name]) for f in opened) if name else None

    return DataSet("Parquet", sum(sizes), _joined(sizes, read), ids)


def arrow(files: list[Path]) -> DataSet:
    batches = [b for path in files for b in _arrow_batches(path)]
    indices = _indices(files[0].parent)
    sizes = [b.num_rows for b in batches]
    get = _joined(sizes, lambda part, rows: list(_sound(batches[part]).take(pa.array(rows)).to_pylist()))

    def column() -> list[Any] | None:
        name = next((k for k in IDS if batches and k in batches[0].schema.names), None)
        return [x for b in batches for x in _sound(b.select([name])).column(0).to_pylist()] if name else None

    if indices is None:
        return DataSet("Arrow", sum(sizes), get, column)
    order = indices

    def through(rows: Sequence[int]) -> list[Row]:
        wanted = [int(order[r]) for r in rows]
        if wanted and not 0 <= min(wanted) <= max(wanted) < sum(sizes):
            raise IndexError("its indices name rows that it does not have")
        return get(wanted)

    def ids() -> list[Any] | None:
        found = column()
        return [found[int(i)] for i in order] if found else None

    return DataSet("Arrow", len(order), through, ids)


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch after a look at all of it: Arrow believes what a file says of lengths, and reading on would end the process."""
    batch.validate(full=True)
    return batch


def _arrow_batches(path: Path) -> list[pa.RecordBatch]:
    source = pa.memory_map(str(path))
    try:
        return list(pa.ipc.open_stream(source))
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        return [file.get_batch(i) for i in range(file.num_record_batches)]


def _indices(folder: Path) -> NDArray[np.int64] | None:
    """The row numbers that a selection or shuffle left, as ``save_to_disk`` of older versions of datasets writes them."""
    state = folder / "state.json"
    try:
        listed = json.loads(state.read_text("utf-8")).get("_indices_files") or [] if is_regular(state, below=folder) else []
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    columns = [
        _sound(b).column(0).to_numpy(zero_copy_only=False) for f in listed for b in _arrow_batches(folder / Path(f["filename"]).name)
    ]
    return np.concatenate(columns) if columns else None


def tokens(files: list[Path], block: int | None) -> DataSet:
    arrays = [_array(path) for path in files]
    if all(a.ndim >= 2 for a in arrays):
        name = "input_ids" if arrays[0].ndim == 2 and arrays[0].dtype.kind in "iu" and arrays[0].itemsize > 1 else "x"
        get = _joined([len(a) for a in arrays], lambda part, rows: [{name: arrays[part][r]} for r in rows])
        return DataSet("array", sum(map(len, arrays)), get)
    if not block:
        raise Unreadable(f"{files[0].name} is one long row of tokens, and no config says how many make a sample")
    size = block

    def read(part: int, rows: list[int]) -> list[Row]:
        return [{"input_ids": arrays[part][r * size : (r + 1) * size]} for r in rows]

    sizes = [len(a) // size for a in arrays]
    return DataSet(f"tokens, {size} a sample", sum(sizes), _joined(sizes, read))


def _array(path: Path) -> NDArray[Any]:
    """A memory map; of a flat file uint32 where every other half of its words is all but always zero, else uint16."""
    if path.suffix == ".npy":
        return np.asarray(index_files.mapped(path))
    if path.stat().st_size < 2:
        raise Unreadable(f"{path.name} is empty")
    with path.open("rb") as f:
        head = np.frombuffer(f.read(4), np.int32)
    skipped = _LLMC_HEADER if len(head) and int(head[0]) == _LLMC_MAGIC else 0
    words = np.memmap(path, np.uint16, "r", skipped, ((path.stat().st_size - skipped) // 2,))
    upper = words[1:20_001:2]
    wide = len(words) % 2 == 0 and len(upper) > 50 and float((upper < 16).mean()) > 0.999
    return np.memmap(path, np.uint32, "r", skipped, (len(words) // 2,)) if wide else words
