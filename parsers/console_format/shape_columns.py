"""The columns that all lines of one shape become: a million of them are columns of strings, which turn into numbers column by column, never row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parsers import arrow
from parsers.console_format.line_prefix import number, seconds, whole
from parsers.console_format.line_shapes import Row, Shape
from parsers.tables import record_batch

if TYPE_CHECKING:
    import numpy as np


def batch(rows: list[Row], shapes: list[Shape]) -> pa.RecordBatch:
    """Metrics in the order of their places; empties the shapes."""
    import numpy as np

    tags: dict[str, int] = {}
    parts: list[tuple[Any, ...]] = []
    for shape in shapes:
        part = _part(shape, tags)
        if part is None:  # a word that is no number after all: row by row
            rows = rows + list(_rows(shape))
        else:
            parts.append(part)
        shape.places, shape.rows, shape.steps = [], [], []
    if rows:
        place, step, tag, value, time, rank = zip(*rows, strict=True)
        codes = [tags.setdefault(t, len(tags)) for t in tag]
        parts.append(
            (
                np.array(place, "i8"),
                *_nullable(list(step), "i8"),
                np.array(codes, "i4"),
                np.array(value, "f8"),
                *_nullable(list(time), "f8"),
                *_nullable(list(rank), "i4"),
            )
        )
    columns: list[Any] = list(parts[0]) if len(parts) == 1 else [np.concatenate(c) for c in zip(*parts, strict=True)]
    if (columns[0][1:] < columns[0][:-1]).any():
        order = np.argsort(columns[0], kind="stable")
        columns = [c[order] for c in columns]
    place, step, has_step, code, value, time, has_time, rank, has_rank = columns
    return record_batch(
        "metrics",
        {
            "step": arrow.numbers(step, has_step),
            "value": arrow.numbers(value),
            "tag": arrow.coded(code, list(tags)),
            "time": arrow.numbers(time, has_time),
            "rank": arrow.numbers(rank, has_rank),
            "at": arrow.numbers(place >> 20),
        },
    )


def _part(shape: Shape, tags: dict[str, int]) -> tuple[Any, ...] | None:
    """The columns of one shape; None where a word cannot be read in bulk."""
    import numpy as np

    words, n = list(zip(*shape.rows, strict=True)), len(shape.rows)
    metrics = measurements(shape)
    value = np.empty((n, len(metrics)))
    try:
        for j, (i, _) in enumerate(metrics):
            sample = shape.line.text[shape.fields[i].start : shape.fields[i].end]
            odd = shape.line.scaled or "," in sample  # else float() will do
            value[:, j] = np.fromiter(map(number if odd else float, words[i]), float, n)
        step = _nullable(list(map(int, words[shape.step_at])) if shape.simple else list(shape.steps), "i8")
    except (ValueError, OverflowError):
        return None
    times: list[float | None] = [None] * n
    ranks: list[int | None] = [None] * n
    for i, f in enumerate(shape.fields):
        if f.role == "time":
            times = _clocks(words[i], shape.line.clock)
        elif f.role == "rank":
            ranks = [whole(w) for w in words[i]]
    code = np.array([tags.setdefault(tag, len(tags)) for _, tag in metrics], "i4")
    wide = [np.array(shape.places, "i8"), *step, *_nullable(times, "f8"), *_nullable(ranks, "i4")]
    place, at, has_step, time, has_time, rank, has_rank = (np.repeat(c, len(metrics)) for c in wide)
    return place, at, has_step, np.tile(code, n), value.ravel(), time, has_time, rank, has_rank


def _clocks(words: tuple[str, ...], kind: str) -> list[float | None]:
    """Clocks of one width: each minute is worked out once."""
    if kind.startswith("iso") and len(words[0]) > 17:
        minutes = {m: seconds(m, kind) for m in {w[:16] for w in words}}
        try:
            return [minutes[w[:16]] + float(w[17:].replace(",", ".")) for w in words]  # type: ignore[operator]
        except (TypeError, ValueError):
            pass
    return [seconds(w, kind) for w in words]


def measurements(shape: Shape) -> list[tuple[int, str]]:
    """Which holes are measurements. The epoch is one where it is not itself the step."""
    stepped = any(f.role in {"step", "it"} for f in shape.fields)
    found = [(i, f.tag) for i, f in enumerate(shape.fields) if f.role == "metric"]
    return found + [(i, "epoch") for i, f in enumerate(shape.fields) if f.role == "epoch" and stepped]


def _rows(shape: Shape) -> list[Row]:
    out: list[Row] = []
    for j, (place, words) in enumerate(zip(shape.places, shape.rows, strict=True)):
        of = {f.role: w for f, w in zip(shape.fields, words, strict=True)}
        step = whole(words[shape.step_at]) if shape.simple else shape.steps[j]
        time = seconds(of["time"], shape.line.clock) if "time" in of else None
        for i, tag in measurements(shape):
            try:
                out.append((place, step, tag, number(words[i]), time, whole(of["rank"]) if "rank" in of else None))
            except ValueError:
                continue
    return out


def _nullable(values: list[Any], kind: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Values and which of them are there."""
    import numpy as np

    if None not in values:
        return np.array(values, kind), np.ones(len(values), bool)
    return np.array([0 if v is None else v for v in values], kind), np.array([v is not None for v in values], bool)
