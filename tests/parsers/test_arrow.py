"""The arithmetic on columns that stands in for `pyarrow.compute`, which answers the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from parsers import arrow

NUMBERS = pa.array([3, None, 1, 3, None, 2], pa.int64())
WORDS = pa.array(["b", None, "a", "b", "c", "a"]).dictionary_encode()
COLUMNS = {
    "numbers": NUMBERS,
    "slice": NUMBERS[1:5],
    "chunks": pa.chunked_array([NUMBERS[:2], NUMBERS[2:]]),
    "none": pa.chunked_array([], pa.int64()),
    "words": WORDS,
    "slice of words": WORDS[1:4],
    "chunks of words": pa.chunked_array([WORDS[:2], WORDS[2:]]),
    "no words": pa.chunked_array([], WORDS.type),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_what_a_column_holds(column: pa.Array) -> None:
    held = {x for x in column.to_pylist() if x is not None}
    assert arrow.distinct(column) == sorted(held, key=["b", "a", "c"].index if held & {"a", "b", "c"} else None)
    assert arrow.present(column).tolist() == [x is not None for x in column.to_pylist()]


@pytest.mark.parametrize("name", ["numbers", "slice", "chunks", "none"])
def test_numbers_that_are_known(name: str) -> None:
    assert arrow.known(COLUMNS[name]).tolist() == pc.drop_null(COLUMNS[name]).to_pylist()


@pytest.mark.parametrize("column", [NUMBERS, NUMBERS[1:5], WORDS, WORDS[1:4], pa.array(["x", None, "y", "z"])])
def test_rows_in_another_order(column: pa.Array) -> None:
    order = np.random.default_rng(0).permutation(len(column))
    assert arrow.taken(column, order).to_pylist() == column.take(pa.array(order)).to_pylist()
