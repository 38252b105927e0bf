"""The arithmetic on columns that stands in for `pyarrow.compute`, which answers the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parsers
from parsers import arrow

SAMPLES = Path(__file__).parents[2] / "samples"
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


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=20))
def test_different_numbers_stand_once_and_in_order(numbers):
    column = pa.chunked_array([pa.array(numbers[:7], pa.int64()), pa.array(numbers[7:], pa.int64())])
    assert arrow.distinct(column) == arrow.ascending(column).tolist() == sorted({n for n in numbers if n is not None})
    assert arrow.present(column).tolist() == [x is not None for x in column.to_pylist()]


@pytest.mark.parametrize("name", ["numbers", "slice", "chunks", "none"])
def test_numbers_that_are_known(name: str) -> None:
    assert arrow.known(COLUMNS[name]).tolist() == pc.drop_null(COLUMNS[name]).to_pylist()


@pytest.mark.parametrize("column", [NUMBERS, NUMBERS[1:5], WORDS, WORDS[1:4], pa.array(["x", None, "y", "z"])])
def test_rows_in_another_order(column: pa.Array) -> None:
    order = np.random.default_rng(0).permutation(len(column))
    assert arrow.taken(column, order).to_pylist() == column.take(pa.array(order)).to_pylist()


@pytest.mark.parametrize("rows", [[], [0], [1, 2, 5], [2, 3, 4]])
def test_picked_rows_of_chunks(rows: list[int]) -> None:
    column = pa.chunked_array([NUMBERS[:2], NUMBERS[2:2], NUMBERS[2:]])
    assert arrow.picked(column, np.array(rows, np.int64), -1).tolist() == [column[i].as_py() or -1 for i in rows]


def test_rows_of_each_code() -> None:
    assert arrow.stretches(np.array([0, 0, 2, 2, 2], np.int32), 4) == [(0, 2), (2, 2), (2, 5), (5, 5)]
    assert arrow.stretches(np.zeros(0, np.int32), 1) == [(0, 0)]


@pytest.mark.parametrize("sample", ["data_restarted_jsonl", "bad_shard_tensorboard", "hang_torchrun"])
def test_blocks_change_nothing(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parsers.read_all(SAMPLES / sample)
    monkeypatch.setattr(arrow, "BLOCK", 7)
    for run, same in zip(parsers.read_all(SAMPLES / sample), whole, strict=True):
        assert run.attempts == same.attempts and run.tables == same.tables
