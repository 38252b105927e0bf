"""parquet_log: metric tables as the web exports write them, manifests, data sets that are no logs, and damage."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from parsers.formats import parquet_log
from parsers.tables import HEAD_BYTES, Gap, Note, table_of


def read(path: Path) -> tuple[dict[str, list[dict[str, Any]]], list[Gap], list[str]]:
    assert parquet_log.claims(path, path.read_bytes()[:HEAD_BYTES])
    tables: dict[str, list[dict[str, Any]]] = {}
    gaps, notes = [], []
    for item in parquet_log.parse(path):
        if isinstance(item, Gap):
            gaps.append(item)
        elif isinstance(item, Note):
            notes.append(item.text)
        else:
            tables.setdefault(table_of(item), []).extend(item.to_pylist())
    return tables, gaps, notes


def write(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def rows(tables: dict[str, list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return [(r["step"], r["tag"], r["value"], r["at"]) for r in tables.get("metrics", [])]


def test_wandb_history(tmp_path: Path) -> None:
    path = write(tmp_path, {
        "_step": [0, 1, 2], "_timestamp": [1700000000.5, 1700000001.5, 1700000002.5],
        "train/loss": [2.5, None, float("nan")],
        "val/loss": [None, 0.25, None], "note": ["a", None, "b"], "table": [{"_type": "table-file"}] * 3,
    })  # fmt: skip
    tables, gaps, notes = read(path)
    assert [r[:2] + r[3:] for r in rows(tables)] == [(0, "train/loss", 0), (1, "val/loss", 1), (2, "train/loss", 2)]
    assert math.isnan(rows(tables)[2][2]) and rows(tables)[1][2] == 0.25 and not gaps and not notes
    assert tables["metrics"][0]["time"] == 1700000000.5


def test_types_of_every_kind(tmp_path: Path) -> None:
    path = write(tmp_path, {
        "global_step": pa.array([1, 2**53 + 1], pa.uint64()),
        "created_at": [dt.datetime(2023, 11, 14, 22, 13, 20), None],
        "half": pa.array([0.5, 1.5], pa.float16()), "tokens": pa.array([7, None], pa.int32()),
        "loss": ["Infinity", "0.5"],
        "rank": pa.array([0, 3], pa.int8()), "done": [True, False],
    })  # fmt: skip
    tables, _, _ = read(path)
    assert [r[:3] for r in rows(tables)] == [
        (1, "half", 0.5), (1, "tokens", 7.0), (1, "loss", math.inf), (2**53 + 1, "half", 1.5), (2**53 + 1, "loss", 0.5)
    ]  # fmt: skip
    assert [(r["time"], r["rank"]) for r in tables["metrics"]] == [(1.7e9, 0)] * 3 + [(None, 3)] * 2


def test_long_format(tmp_path: Path) -> None:
    path = write(tmp_path, {"step": [1, 1, 2], "metric": ["loss", "acc", None], "value": [0.5, 0.25, 1.0]})
    assert rows(read(path)[0]) == [(1, "loss", 0.5, 0), (1, "acc", 0.25, 1)]


def test_row_groups_keep_row_numbers_and_epochs(tmp_path: Path) -> None:
    path = write(tmp_path, {"epoch": [0, 0, 1, 1], "batch": [0, 1, 0, 1], "loss": [4.0, 3.0, 2.0, 1.0]}, row_group_size=1)
    assert [r for r in rows(read(path)[0]) if r[1] == "loss"] == [
        (0, "loss", 4.0, 0),
        (1, "loss", 3.0, 1),
        (2, "loss", 2.0, 2),
        (3, "loss", 1.0, 3),
    ]


def test_manifest_with_lists(tmp_path: Path) -> None:
    path = write(tmp_path, {"step": [1, 2], "sample_ids": [[7, 3], [5]], "shard": ["a.tar", "b.tar"]})
    tables, _, _ = read(path)
    assert [(r["step"], r["position"], r["sample"], r["shard"], r["at"]) for r in tables["batches"]] == [
        (1, 0, "7", "a.tar", 0), (1, 1, "3", "a.tar", 0), (2, 0, "5", "b.tar", 1)
    ]  # fmt: skip
    assert "metrics" not in tables


@pytest.mark.parametrize("columns", [
    {"text": ["a", "b"], "label": [0, 1]},
    {"image": [{"bytes": b"x", "path": "p"}] * 2, "label": [0, 1]},
    {"x1": [0.5, 0.25], "x2": [1.0, 2.0]},
    {"prompt": ["a", "b"], "response": ["c", "d"]},
])  # fmt: skip
def test_a_data_set_is_named_and_not_read(tmp_path: Path, columns: dict[str, Any]) -> None:
    tables, gaps, notes = read(write(tmp_path, columns))
    assert not tables and not gaps and len(notes) == 1 and "2 rows" in notes[0]


def test_feather_and_a_stream_without_its_end(tmp_path: Path) -> None:
    table = pa.table({"step": list(range(2000)), "loss": [0.5] * 2000})
    path = tmp_path / "log.feather"
    feather.write_feather(table, path, compression="uncompressed", chunksize=100)
    assert len(rows(read(path)[0])) == 2000
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    tables, gaps, _ = read(path)
    assert 500 < len(rows(tables)) < 1100 and gaps


def test_damage_costs_its_row_group(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = write(
        tmp_path, {"step": list(range(4000)), "loss": [rng.random() for _ in range(4000)]}, row_group_size=1000, compression="zstd"
    )
    data = bytearray(path.read_bytes())
    second = pq.ParquetFile(path).metadata.row_group(1).column(1)
    start = second.dictionary_page_offset or second.data_page_offset
    data[start : start + 400] = b"\xff" * 400
    path.write_bytes(data)
    tables, gaps, _ = read(path)
    assert {r[3] // 1000 for r in rows(tables)} == {0, 2, 3} and [(g.at, g.lost) for g in gaps] == [("row 1000", 1000)]


def test_cut_and_flipped_files_end_with_gaps(tmp_path: Path) -> None:
    rng = random.Random(5)
    path = write(tmp_path, {"step": list(range(500)), "loss": [rng.random() for _ in range(500)]}, row_group_size=100)
    good = path.read_bytes()
    for cut in (4, 100, len(good) - 1):
        path.write_bytes(good[:cut])
        tables, gaps, _ = read(path)
        assert not tables and gaps
    for _ in range(60):
        data = bytearray(good)
        for _ in range(20):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        path.write_bytes(data)
        json.dumps([g.what for g in read(path)[1]])
