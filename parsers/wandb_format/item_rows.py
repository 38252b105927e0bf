"""Rows of W&B's history and system metrics: where their items lie, and the columns that these become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, protobuf_wire
from parsers.protobuf_wire import BYTES, VARINT, Bools, Ints, Words
from parsers.tables import Gap, record_batch
from parsers.wandb_format import key_values

Columns = dict[str, NDArray[Any]]


def inside(at: Words, start: Ints, stop: Ints, items: int) -> tuple[tuple[Ints, Ints, Ints], NDArray[np.int64], Bools, Bools]:
    """Of rows: their items (the row, beginning and end of each), fields 1 and 2 of the message in field 2, (2, rows), which
    rows have that message, and which are broken."""
    n = len(start)
    told, there, broken = np.zeros((2, n), np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    parts: list[tuple[Ints, Ints, Ints]] = []
    for rows, number, wire, v, length in protobuf_wire.lockstep(at, start, stop, np.arange(n), broken):
        if number == items and wire == BYTES:
            parts.append((rows, v, v + length))
        elif number == 2 and wire == BYTES:
            there[rows] = True
            for inner, k, w, x, _ in protobuf_wire.lockstep(at, v, v + length, rows, broken):
                if k in (1, 2) and w == VARINT:
                    told[k - 1, rows[inner]] = x.view(np.int64)
    return in_order(parts), told, there, broken


def in_order(parts: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """Parts that were found turn by turn, in the order of their rows."""
    if not parts:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    row, start, stop = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    return row[order], start[order], stop[order]


def metrics(tags: key_values.Tags, items: key_values.Items, keep: Ints, columns: Columns) -> pa.RecordBatch:
    """Of these items; ``columns`` are their rows' place and time, step, and step as a whole number where it has one."""
    step, exact, time = columns["step"], columns["exact"], columns["time"]
    known = np.abs(step) < 2.0**63
    steps = np.where(known, step, 0).astype(np.int64)
    same = exact.astype(np.float64) == step  # a float is too coarse for the largest steps
    return record_batch("metrics", {
        "step": arrow.numbers(np.where(same, exact, steps), known | same),
        "tag": arrow.coded(items.code[keep], tags.names),
        "value": arrow.numbers(items.value[keep]),
        "time": arrow.numbers(time, np.isfinite(time)),
        "at": arrow.numbers(columns["at"]),
    })  # fmt: skip


def breaks(broken: NDArray[np.bool_], place: Ints) -> Iterator[Gap]:
    for at in place[broken].tolist():
        yield Gap(f"byte {at}", "a row that breaks off: what stands before the break was read", 1)
