"""Copies of rows against a plain statement of what a copy is."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from parsers.runs import duplicates

FORMATS = ["tensorboard", "jsonl", "console"]  # the most exact first
NAMES = ["loss.train", "other/a b", "other/a_b"]  # the last two are one metric
ROW = st.tuples(
    st.sampled_from([0, 1, None]), st.sampled_from(NAMES), st.sampled_from([0.5, -0.0, 0.0, math.nan, 0.1]), st.sampled_from([None, 7.0]), st.integers(0, 3)
)  # fmt: skip


def plain(rows: list[Any], formats: list[str]) -> set[int]:
    """The places of the rows that are left out."""

    def what(row: Any) -> tuple[Any, ...]:
        step, name, value, _, _ = row
        return step, duplicates.key(name), "nan" if math.isnan(value) else value + 0.0

    by_key: dict[Any, set[int]] = {}
    for row in rows:
        by_key.setdefault(duplicates.key(row[1]), set()).add(row[4])
    left = {i for i, row in enumerate(rows) if len(by_key[duplicates.key(row[1])]) > 1}
    out: set[int] = set()
    for fmt in set(formats):
        mine = [i for i in left if formats[rows[i][4]] == fmt]
        timed = any(rows[i][3] is not None for i in mine)
        files = sorted({rows[i][4] for i in mine}, key=lambda f: (sum(rows[i][4] == f for i in mine), f"s{f}"), reverse=True)
        before: set[Any] = set()
        for f in files:
            own = {i: (*what(rows[i]), rows[i][3] if timed else None) for i in mine if rows[i][4] == f}
            found = {i for i, x in own.items() if x in before}
            out |= found if len(found) >= 0.9 * len(own) else set()
            before |= set(own.values())
    nth: dict[Any, int] = {}
    groups: dict[Any, list[int]] = {}
    for i in sorted(left - out):
        of = (*what(rows[i]), formats[rows[i][4]])
        nth[of] = nth.get(of, -1) + 1
        groups.setdefault((*what(rows[i]), nth[of]), []).append(i)
    for group in groups.values():
        best = min(FORMATS.index(formats[rows[i][4]]) for i in group)
        out |= {i for i in group if FORMATS.index(formats[rows[i][4]]) > best}
    return out


@given(st.lists(ROW, min_size=1, max_size=24), st.lists(st.sampled_from(FORMATS), min_size=4, max_size=4))
def test_copies_are_the_rows_that_another_file_has_too(rows: list[Any], formats: list[str]) -> None:
    step, name, value, time, source = zip(*rows, strict=True)
    table = pa.table({
        "step": pa.array(step, pa.int64()), "name": pa.array(name).dictionary_encode(), "value": pa.array(value, pa.float64()), "time": pa.array(time, pa.float64()),
        "source": pa.array([f"s{i}" for i in source]).dictionary_encode(), "rank": pa.nulls(len(rows), pa.int32()), "place": pa.array(range(len(rows))),
    })  # fmt: skip
    kept, lost = duplicates.drop_copies(table, {f"s{i}": f for i, f in enumerate(formats)})
    out = plain(rows, formats)
    assert set(kept["place"].to_pylist()) == set(range(len(rows))) - out and lost == len(out)
