"""The metrics table as numpy columns, and the rows of a metric in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run.once import once
from parsers import arrow
from parsers.tables import Run

Ints = NDArray[np.int64]


@once
def arrays(run: Run) -> dict[str, Any]:
    """The metrics table as numpy columns, made once: texts as codes ("tag") and what they stand for ("tags"); "stepped"
    is where a row has a step; "constant" names columns that hold one value; "by_name" are the rows sorted by name, those
    of name i between "ends" i and i + 1.
    """
    t = run.tables["metrics"]
    coded = {c: t[c].combine_chunks() for c in ("tag", "name", "source")}
    out: dict[str, Any] = {c: arrow.filled(a.indices, -1) for c, a in coded.items()}
    out |= {c + "s": a.dictionary.to_pylist() for c, a in coded.items()}
    out["code_of"] = {n: i for i, n in enumerate(out["names"])}
    fills = {"step": 0, "rank": 0, "attempt": 0, "at": -1, "value": math.nan, "time": math.nan}
    out |= {c: arrow.filled(t[c], fill) for c, fill in fills.items()}
    out["constant"] = {c for c in ("source", "rank", "attempt") if len(t) and (out[c] == out[c][0]).all()}
    stepped = arrow.valid(t["step"])
    out |= {"stepped": np.ones(len(t), bool) if stepped is None else stepped, "formats": []}
    few = len(out["names"]) < 1 << 15  # numpy sorts 16 bits in one pass
    out["by_name"] = np.argsort(out["name"].astype(np.int16) if few else out["name"], kind="stable")
    out["ends"] = np.cumsum([np.sum(out["name"] < 0), *np.bincount(out["name"][out["name"] >= 0], minlength=len(out["names"]))])
    return out


def rows_of(columns: dict[str, Any], name: str) -> Ints:
    """The rows that have the name and a step, in file order."""
    code = columns["code_of"].get(name)
    if code is None:
        return np.zeros(0, np.int64)
    rows = columns["by_name"][columns["ends"][code] : columns["ends"][code + 1]]
    return np.asarray(rows[columns["stepped"][rows]], np.int64)


def column_at(columns: dict[str, Any], name: str, rows: Ints) -> NDArray[np.int32]:
    """A column at these rows; one that is the same everywhere is not looked up."""
    column: NDArray[np.int32] = columns[name]
    return np.full(len(rows), column[0], column.dtype) if name in columns["constant"] else column[rows]


def place_in(seen: list[str], value: str) -> int:
    """The position of value in seen, appended when new."""
    if value not in seen:
        seen.append(value)
    return seen.index(value)
