"""The lines of a log that another program keeps in records of its own, each with the clock and the rank of its record."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.console_format import envelopes
from parsers.console_format.feed import feed, flush
from parsers.console_format.reader import Reader
from parsers.formats import jsonl
from parsers.lazy_regex import lazy_re
from parsers.records import line_blocks, tolerant_json
from parsers.tables import FLUSH_ROWS, Gap, Note

_KEY = lazy_re(r'"(?:message|MESSAGE|log|textPayload|jsonPayload|line)"\s*:')
_LONGEST = 1 << 20  # characters of a line that a container's runtime has cut into records
_KEPT = 10_000  # records whose clock a traceback or the last line may still need once rows were handed over
_NO_RECORD = "a line that is no record of its log"


class Record(NamedTuple):
    """One line of the log: where its record stands, seconds since 1970, and the rank that wrote it, as far as they are known; whether the file breaks off in it."""

    at: int
    text: str
    time: float | None
    rank: int | None = None
    torn: bool = False


def parse(path: Path, kind: str) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metrics, events and settings of the lines, in the order of their clocks where the file has the newest first."""
    yield Note(f"each line stands in a record of its own ({kind}), whose clock counts")
    yield from read(_whole(_RECORDS[kind](path)))


def read(records: Iterable[Record | Gap]) -> Iterator[pa.RecordBatch | Gap | Note]:
    """The same of lines that stand in records of any kind, oldest first."""
    reader, said = Reader(srun=False), dict[int, Record]()
    for item in records:
        if isinstance(item, Gap):
            yield item
            continue
        said[item.at] = item
        for line in item.text.rstrip("\r\n").split("\n"):
            feed(reader, line if item.torn else line + "\n", item.at, ended=not item.torn)
        if reader.rows.full() or reader.measured.size() > FLUSH_ROWS:
            yield from _with_clocks(flush(reader), said)
            said = dict(list(said.items())[-_KEPT:])
    reader.finish()
    yield from _with_clocks(flush(reader), said)
    yield from (Note(s) for s in reader.measured.notes)


def _with_clocks(batches: Iterable[pa.RecordBatch | Gap], said: dict[int, Record]) -> Iterator[pa.RecordBatch | Gap]:
    """The record's clock is a moment with its zone; the one that the line may have printed itself is often none."""
    for b in batches:
        if isinstance(b, Gap) or "time" not in b.schema.names:
            yield b
            continue
        records = [said.get(at) for at in arrow.filled(b["at"], -1).tolist()]
        told = np.array([r.time if r is not None and r.time is not None else np.nan for r in records], np.float64)
        time = np.where(np.isnan(told), arrow.filled(b["time"], np.nan), told)
        b = arrow.with_column(b, "time", arrow.numbers(time, np.isfinite(time)))
        if any(r is not None and r.rank is not None for r in records) and b["rank"].null_count == b.num_rows:
            rank = np.array([-1 if r is None or r.rank is None else r.rank for r in records], np.int32)
            b = arrow.with_column(b, "rank", arrow.numbers(rank, rank >= 0))
        yield b


def _whole(records: Iterator[Record | tuple[Record, bool] | Gap]) -> Iterator[Record | Gap]:
    """Records whose line goes on in the next one, put together."""
    begun: Record | None = None
    for item in records:
        if isinstance(item, Gap):
            yield item
            continue
        record, goes_on = item if isinstance(item[1], bool) else (item, False)
        if begun is not None:
            record = begun._replace(text=begun.text + record.text, torn=record.torn)
        begun = record if goes_on and len(record.text) < _LONGEST else None
        if begun is None:
            yield record
    if begun is not None:
        yield begun


def _cri(path: Path) -> Iterator[tuple[Record, bool] | Gap]:
    """What Kubernetes' runtimes write: clock, stream, F or P (the line goes on), text."""
    for block in line_blocks.blocks(path):
        if isinstance(block, Gap):
            yield block
            continue
        lines = block[1].decode("utf-8", "replace").split("\n")
        last = block[0] + len(lines) - 1  # the one behind the last line end: empty, but where the file breaks off
        for at, line in enumerate(lines, block[0]):
            m = envelopes.CRI.fullmatch(line.rstrip("\r"))
            if m is not None:
                yield Record(at, m[3] or "", envelopes.moment(m[1]), torn=at == last), m[2] == "P"
            elif line.strip("\0 \r"):
                yield Gap(f"line {at}", _NO_RECORD, 1)


def _lines(path: Path) -> Iterator[tuple[Record, bool] | Gap]:
    """JSON lines. docker cuts a line after 16 KiB: only the last piece ends with a line end."""
    held: list[tuple[Record, bool] | Gap] = []
    backwards: bool | None = None
    for item in jsonl.entries(path):
        found: list[tuple[Record, bool] | Gap] = [item] if isinstance(item, Gap) else []
        for row, at in zip(*item, strict=True) if not isinstance(item, Gap) else ():
            goes_on = "stream" in row and isinstance(row.get("log"), str) and not row["log"].endswith("\n")
            found += [(r, goes_on) for r in _record(row, at)]
        backwards = _is_backwards(found) if backwards is None else backwards
        if backwards:  # all of it, to be turned around
            held += found
        else:
            yield from found
    yield from _in_order(held)


def _record(row: envelopes.Row, at: int) -> list[Record]:
    text = envelopes.text_of(row)
    return [] if text is None else [Record(at, text, envelopes.time_of(row), envelopes.rank_of(row))]


def _is_backwards(found: list[tuple[Record, bool] | Gap]) -> bool | None:
    """Has the first record a later clock than the last? None where fewer than two have one."""
    times = [x[0].time for x in found if not isinstance(x, Gap) and x[0].time is not None]
    return times[-1] < times[0] if len(times) > 1 else None


def _in_order(found: list[tuple[Record, bool] | Gap]) -> list[tuple[Record, bool] | Gap]:
    """The oldest record first. Downloads of a cloud have the newest first: their places are counted from the end, for what comes later stands later."""
    if not _is_backwards(found):
        return found
    return [x if isinstance(x, Gap) else (x[0]._replace(at=i), x[1]) for i, x in enumerate(reversed(found), 1)]


def _document(path: Path) -> Iterator[tuple[Record, bool] | Gap]:
    text, gaps = tolerant_json.read(path)
    yield from gaps
    rows = [v for _, _, v in tolerant_json.objects(text, text.find("[") + 1)]
    keys = [m.start() for m in _KEY.finditer(text)]
    places, line, end = [], 1, 0
    for key in keys if len(keys) == len(rows) else ():
        line, end = line + text.count("\n", end, key), key
        places.append(line)
    yield from _in_order([(r, False) for i, row in enumerate(rows) for r in _record(row, places[i] if places else i + 1)])


def _table(path: Path) -> Iterator[tuple[Record, bool] | Gap]:
    csv.field_size_limit(line_blocks.MAX_LINE)
    found: list[tuple[Record, bool] | Gap] = []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as f:
        header = f.readline()
        clock, text = envelopes.columns(header) or (0, 1)
        rows = csv.reader(line.replace("\0", "") for line in f)
        for row in rows:
            if len(row) > max(clock, text):
                found.append((Record(rows.line_num + 1, row[text], envelopes.moment(row[clock])), False))
            elif row:
                found.append(Gap(f"line {rows.line_num + 1}", _NO_RECORD, 1))
    yield from _in_order(found)


_RECORDS = {"cri": _cri, "lines": _lines, "document": _document, "table": _table}
