"""JSON lines of any keys (also Detectron2 metrics.json, MMCV log.json, Ray Tune result.json, DETR and MAE log.txt).

There is no schema, only habits; json_rows has what they are and which rules follow. A line that cannot be read
costs itself: whole objects in it are kept (two writers may share a line), the rest is a gap that names the line.
NaN and Infinity stand bare in what Python writes, which strict readers refuse. Files end in torn lines or zero
bytes after a crash, and PowerShell's ``>`` writes UTF-16.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from parsers import arrow, rank_names
from parsers.lazy_regex import lazy_re
from parsers.records import json_kinds, line_blocks, tolerant_json
from parsers.records.gaps import GapList
from parsers.records.json_rows import Log
from parsers.records.vocabulary import EPOCH, SURE_STEP, plain
from parsers.tables import Gap, Note, table_of

GROWS = "lines"
_ZEROS = "zero bytes (a write that never reached the disk)"
_NO_OBJECT = "a line that is no whole JSON object"

_MOST_SAID = 10_000  # bound: lines of text; a log of more of them is none of objects
_OF_TEXT = bytes(range(32, 127)).translate(None, b"{}") + bytes(range(128, 256)) + b"\t\r"
_LETTERS = lazy_re(rb"[A-Za-z]{2}")

Entry = tuple[list[dict[str, Any]], list[int] | range]


def claims(path: Path, head: bytes) -> bool:
    return json_kinds.kind_of(path, head) == "lines"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    rank, said = rank_names.number(path.stem), list[tuple[int, str]]()
    log = Log(rank=rank)
    for item in entries(path, said):
        if isinstance(item, Gap):
            yield item
        else:
            yield from log.add(*item)
    yield from log.finish()
    yield from _events(said, rank)


def _events(said: list[tuple[int, str]], rank: int | None) -> Iterator[pa.RecordBatch | Gap | Note]:
    """What lines of text between the objects say of the run, as the stack of an exception that ended it; gaps where they say nothing."""
    if not said:
        return
    from parsers.console_format.feed import feed, flush
    from parsers.console_format.reader import Reader

    reader = Reader(srun=False)
    for place, text in said:
        feed(reader, f"{text}\n", place, ended=True)
    reader.finish()
    told = [b for b in flush(reader) if not isinstance(b, Gap) and table_of(b) == "events"]
    if not any(b.num_rows for b in told):
        gaps = GapList()
        for place, _ in said:
            gaps.add(place, _NO_OBJECT, 1)
        yield from gaps.told()
        return
    yield Note(f"{len(said)} lines of text between the objects were read for what they say of the run, and measure nothing")
    for b in told:
        own = rank is None or b["rank"].null_count < b.num_rows
        yield b if own else arrow.with_column(b, "rank", pa.array([rank] * b.num_rows, pa.int32()))


def entries(path: Path, said: list[tuple[int, str]] | None = None) -> Iterator[Entry | Gap]:
    """The objects of a file in blocks, each with its line (from 1), and a gap for each stretch of bad lines. ``said``: takes lines of plain text, each with
    its line, which are gaps without it."""
    gaps = GapList()
    for block in line_blocks.blocks(path):
        if isinstance(block, Gap):
            yield block
            continue
        number, data = block
        rows: list[Any] = []
        for line in (lines := data.removesuffix(b"\n").split(b"\n")):
            try:
                rows.append(orjson.loads(line))
            except orjson.JSONDecodeError:
                rows.append(None)  # its turn comes below
        if set(map(type, rows)) == {dict}:
            yield rows, range(number, number + len(rows))
            continue
        kept: list[dict[str, Any]] = []
        at: list[int] = []
        for place, (line, row) in enumerate(zip(lines, rows, strict=True), number):
            if type(row) is dict:
                kept.append(row)
                at.append(place)
            else:
                if said is not None and len(said) < _MOST_SAID and _is_text(line):
                    said.append((place, line.decode("utf-8", "replace")))
                    continue
                found = _patient(line, place, gaps)
                kept += found
                at += [place] * len(found)
        yield kept, at
    yield from gaps.told()


def _is_text(line: bytes) -> bool:
    """May somebody have printed it between the objects?"""
    return not line.translate(None, _OF_TEXT).strip() and _LETTERS.search(line) is not None


def _patient(line: bytes, place: int, gaps: GapList) -> list[dict[str, Any]]:
    """All objects of a line that is not simply one object."""
    if b"{" in line and b"}" not in line:
        gaps.add(place, _NO_OBJECT, 1)
        return []
    try:
        value = tolerant_json.loads(line)
    except (ValueError, RecursionError):
        bare = line.strip(b" \t\r\n\x00\xef\xbb\xbf,")
        if not bare:
            if line.strip(b" \t\r\n\xef\xbb\xbf"):
                gaps.add(place, _ZEROS, None)
            return []
        text = tolerant_json.clean(bare.decode("utf-8", "replace"))
        found, end, whole = [], 0, True
        for start, stop, value in tolerant_json.objects(text):
            whole &= not text[end:start].strip(" \t\r,\0")
            end = stop
            found.append(value)
        if not whole or text[end:].strip(" \t\r,\0"):
            gaps.add(place, _NO_OBJECT, 1)
        elif b"\0" in line:
            gaps.add(place, _ZEROS, None)
        return [f for f in found if len(f) > 0 and (whole or _is_row(f))]
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
        return value  # as ClearML writes them
    gaps.add(place, "a JSON value that is no object", 1)
    return []


def _is_row(value: dict[str, Any]) -> bool:
    """Is it a row of its own, not the inner object of a row that was cut?"""
    return any(plain(k) in SURE_STEP or plain(k) in EPOCH for k in value)
