"""The same rows give the same steps, times, epochs and ranks under every name of theirs in every format."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.checkpoints.describe import step_of
from parsers import read
from parsers.checkpoints.contents import Contents
from parsers.console_format import grammars
from parsers.formats import checkpoint_files, mlflow_files
from parsers.records import vocabulary
from parsers.wandb_format.steps import Axes

Row = dict[str, Any]
STEPS = [10, 20, 30, 40, 50, 60]
LOSSES = [2.5, 2.25, 2.0, 1.75, 1.5, 1.25]


def _jsonl(folder: Path, rows: list[Row]) -> None:
    (folder / "train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def _json(folder: Path, rows: list[Row]) -> None:
    (folder / "history.json").write_text(json.dumps(rows))


def _csv(folder: Path, rows: list[Row]) -> None:
    (folder / "metrics.csv").write_text("\n".join([",".join(rows[0]), *(",".join(map(str, r.values())) for r in rows)]) + "\n")


def _parquet(folder: Path, rows: list[Row]) -> None:
    pq.write_table(pa.table({k: [r[k] for r in rows] for k in rows[0]}), folder / "history.parquet")


def _console(folder: Path, rows: list[Row]) -> None:
    (folder / "train.log").write_text("".join(" ".join(f"{k} {x}" for k, x in r.items()) + "\n" for r in rows))


def _console_pairs(folder: Path, rows: list[Row]) -> None:
    (folder / "train.log").write_text("".join(", ".join(f"{k}: {x}" for k, x in r.items()) + "\n" for r in rows))


TABLES: list[Callable[[Path, list[Row]], None]] = [_jsonl, _json, _csv, _parquet]
CONSOLES: list[Callable[[Path, list[Row]], None]] = [_console, _console_pairs]


def loss(folder: Path, column: str) -> list[Any]:
    table = read(folder).tables["metrics"]
    rows = sorted(zip(table["tag"].to_pylist(), table["value"].to_pylist(), table[column].to_pylist(), strict=True), key=lambda r: -r[1])
    return [x for tag, _, x in rows if tag == "loss"]


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("name", vocabulary.STEP)
def test_every_name_of_the_step_in_every_table(tmp_path: Path, name: str, write: Callable[[Path, list[Row]], None]) -> None:
    write(tmp_path, [{name: s, "loss": x} for s, x in zip(STEPS, LOSSES, strict=True)])
    assert loss(tmp_path, "step") == STEPS


@pytest.mark.parametrize("write", CONSOLES)
@pytest.mark.parametrize("name", [n for n in vocabulary.STEP if n not in vocabulary.BATCH_NUMBER])
def test_every_name_of_the_step_on_the_console(tmp_path: Path, name: str, write: Callable[[Path, list[Row]], None]) -> None:
    write(tmp_path, [{name: s, "loss": x} for s, x in zip(STEPS, LOSSES, strict=True)])
    assert loss(tmp_path, "step") == STEPS


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("name", vocabulary.EPOCH)
def test_every_name_of_the_epoch_lays_batches_end_to_end(tmp_path: Path, name: str, write: Callable[[Path, list[Row]], None]) -> None:
    write(tmp_path, [{name: i // 2, "batch": 10 * (i % 2), "loss": x} for i, x in enumerate(LOSSES)])
    assert loss(tmp_path, "step") == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("name", vocabulary.TIME)
def test_every_name_of_the_wall_clock(tmp_path: Path, name: str, write: Callable[[Path, list[Row]], None]) -> None:
    write(tmp_path, [{"step": s, name: 1700000000.5 + s, "loss": x} for s, x in zip(STEPS, LOSSES, strict=True)])
    assert loss(tmp_path, "time") == [1700000000.5 + s for s in STEPS]


@pytest.mark.parametrize("write", [*TABLES, _console_pairs])
@pytest.mark.parametrize("name", vocabulary.RANK)
def test_every_name_of_the_rank(tmp_path: Path, name: str, write: Callable[[Path, list[Row]], None]) -> None:
    write(tmp_path, [{"step": s, name: 3, "loss": x} for s, x in zip(STEPS, LOSSES, strict=True)])
    assert set(loss(tmp_path, "rank")) == {3}


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("rows", [
    [{"timesteps_total": 100 * i, "training_iteration": i, "loss": x} for i, x in enumerate(LOSSES)],
    [{"env_steps": 93 * i, "update": i, "loss": x} for i, x in enumerate(LOSSES)],
    [{"batch": 32, "epoch": i, "loss": x} for i, x in enumerate(LOSSES)],
    [{"epoch": i // 3, "iter": 5 * (i % 3), "loss": x} for i, x in enumerate(LOSSES)],
    [{"epoch": 4 + i // 3, "iter": 5 + 5 * (i % 3), "loss": x} for i, x in enumerate(LOSSES)],
    [{"epoch": i // 3, "global_step": 5 * (i % 3), "loss": x} for i, x in enumerate(LOSSES)],
])  # fmt: skip
def test_the_same_rows_give_the_same_steps(tmp_path: Path, rows: list[Row], write: Callable[[Path, list[Row]], None]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(tmp_path / "a", rows)
    _jsonl(tmp_path / "b", rows)
    assert loss(tmp_path / "a", "step") == loss(tmp_path / "b", "step")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_columns_give_the_same_steps(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(vocabulary.STEP), max_size=3, unique=True))
    length = data.draw(st.integers(3, 12))
    kinds = st.sampled_from([[5 * i for i in range(length)], [7] * length, [(31 * i) % 50 for i in range(length)]])
    columns: dict[str, list[Any]] = {name: data.draw(kinds) for name in names}
    if data.draw(st.booleans()):
        columns[data.draw(st.sampled_from(vocabulary.EPOCH))] = [3 * i // length for i in range(length)]
    columns["loss"] = [1 / (i + 1) for i in range(length)]
    keys = data.draw(st.permutations(list(columns)))
    rows = [{k: columns[k][i] for k in keys} for i in range(length)]
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        _jsonl(Path(a), rows)
        _csv(Path(b), rows)
        assert loss(Path(a), "step") == loss(Path(b), "step")


def test_mlflows_own_step_is_that_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / ("0" * 32) / "metrics" / "loss"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"1700000000000 {x} {s}\n" for s, x in zip(STEPS, LOSSES, strict=True)))
    assert mlflow_files.claims(path, path.read_bytes()) and loss(tmp_path, "step") == STEPS


@pytest.mark.parametrize("name", vocabulary.SURE_STEP)
def test_checkpoints_and_declared_axes_know_every_name(tmp_path: Path, name: str) -> None:
    contents = Contents(tmp_path / "model.pt", "torch")
    contents.values[name] = 7
    assert step_of(contents) == 7
    axes = Axes()
    axes.declare({4: [name.encode()]})
    assert axes.is_step(name)


def test_no_name_has_two_roles() -> None:
    roles = [vocabulary.STEP, vocabulary.EPOCH, vocabulary.TIME, vocabulary.RANK]
    names = [name for role in roles for name in role]
    assert len(names) == len(set(names))
    assert all(vocabulary.plain(n) == n for n in names)
    assert set(vocabulary.STEP) > vocabulary.THROUGH_THE_RUN | vocabulary.WEAK_STEP
    assert set(vocabulary.STEP) - grammars._STEP == set(vocabulary.BATCH_NUMBER)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("model-batch256-epoch2/adapter.bin", None),
        ("llama-4bit-128g/model.safetensors", None),
        ("ep1-ba1000-rank0.pt", 1000),
        ("it-20.pt", 20),
        ("model_batch-300.pt", 300),
        ("checkpoint-500/model.safetensors", 500),
    ],
)
def test_a_size_in_a_name_is_no_step(name: str, step: int | None) -> None:
    assert checkpoint_files.step_of(Path(name)) == step
