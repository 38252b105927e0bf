"""A series is by step with one value a step, whatever the order of the file; all ranks are looked at; speed is counted by step."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curves import run_of
from runs import START, case, loss, only, read

import forensics
from forensics.detectors import logger_artefact, nonfinite, rank_disagreement, stall, throughput
from forensics.errors import CannotTell
from forensics.run.order import curve
from forensics.run.series import Series, series


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path.parent


def train(folder: Path) -> Series:
    s = series(read(folder), "loss.train")
    assert s is not None
    return s


def test_newest_first_is_sorted(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    lines = [f"{i},{loss(i)},{START + i}" for i in range(120, 0, -1)]
    (folder / "metrics.csv").write_text("step,loss,time\n" + "\n".join(lines) + "\n")
    s = train(folder)
    assert s.step.tolist() == list(range(1, 121)) and s.value[0] == pytest.approx(loss(1))
    assert len(read(folder).attempts) == 1
    assert not [f for f in case(folder)["findings"] if f["kind"] in ("restart", "loss_spike", "divergence", "stall")]


def test_batch_values_of_an_evaluation_are_one_value(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for i in range(1, 201):
        rows.append({"step": i, "loss": loss(i)})
        if i % 20 == 0:
            rows += [{"step": i, "val_loss": loss(i) + 0.5 * (b - 2)} for b in range(5)]
    run = read(jsonl(tmp_path / "r" / "metrics.jsonl", rows))
    s = series(run, "loss.eval")
    assert s is not None and s.step.tolist() == list(range(20, 201, 20))
    assert s.value == pytest.approx([loss(i) for i in s.step.tolist()])
    assert s.count is not None and set(s.count.tolist()) == {5}
    assert case(tmp_path / "r")["run"]["metrics"]["loss.eval"]["values_a_step"] == 5
    table = run.tables["metrics"].to_pylist()
    assert sum(r["name"] == "loss.eval" for r in table) == 50  # the table keeps all


def test_a_mean_over_the_run_is_not_the_last_steps_loss(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": round(loss(i), 4)} for i in range(1, 61)]
    mean = sum(r["loss"] for r in rows) / len(rows)
    folder = jsonl(tmp_path / "r" / "metrics.jsonl", [*rows, {"step": 60, "loss": mean}])
    s = train(folder)
    assert len(s) == 60 and s.value[-1] == pytest.approx(round(loss(60), 4))
    found = only([f for f in logger_artefact.detect(read(folder)) if f.facts.kind == "run_mean"])
    assert (found.first_step, found.severity) == (60, "info") and f"{mean:.6g} is the mean over the run" in found.title


def test_a_step_that_was_written_again_counts_once() -> None:
    step = np.array([1, 2, 3, 4, 5, 6, 7, 8, 3, 9])
    found = curve(step, np.zeros(10, np.int32), np.arange(10.0), np.zeros(10, np.int32))
    assert step[found.row].tolist() == list(range(1, 10)) and found.value[2] == 8.0


def test_a_nan_among_batch_values_stays() -> None:
    found = curve(np.array([5, 5, 5, 6, 6, 6]), np.zeros(6, np.int32), np.array([1.0, math.nan, 1, 2, 2, 2]), np.zeros(6, np.int32))
    assert math.isnan(found.value[0]) and found.value[1] == 2.0


def test_attempts_keep_their_values() -> None:
    found = curve(np.array([1, 2, 3, 2, 3, 4]), np.array([0, 0, 0, 1, 1, 1], np.int32), np.arange(6.0), np.zeros(6, np.int32))
    assert found.value.tolist() == [0, 1, 2, 3, 4, 5] and set(found.of.tolist()) == {1}


def test_epoch_step_and_samples_of_one_record(tmp_path: Path) -> None:
    rows = [{"samples": 32 * i, "epoch": i // 40, "step": i, "loss": loss(i)} for i in range(1, 121)]
    assert train(jsonl(tmp_path / "r" / "metrics.jsonl", rows)).step.tolist() == list(range(1, 121))


def epochs_among_steps(folder: Path, *, every: int = 50) -> Path:
    """One event-like file: the loss by iteration, the accuracy under the number of its epoch."""
    rows: list[dict[str, Any]] = []
    for i in range(1, 501):
        rows.append({"step": i, "tag": "train/loss", "value": loss(i), "wall_time": START + i})
        if i % every == 0:
            rows.append({"step": i // every, "tag": "val/acc", "value": 1 - loss(i) / 10, "wall_time": START + i + 0.5})
    folder.mkdir(parents=True)
    lines = [",".join(str(r[k]) for k in ("wall_time", "step", "tag", "value")) for r in rows]
    (folder / "scalars.csv").write_text("wall_time,step,tag,value\n" + "\n".join(lines) + "\n")
    return folder


def test_epoch_numbers_among_steps_are_put_on_the_steps(tmp_path: Path) -> None:
    run = read(epochs_among_steps(tmp_path / "r"))
    s = series(run, "acc.eval")
    assert s is not None and s.step.tolist() == list(range(50, 501, 50))
    logged = [r["step"] for r in run.tables["metrics"].to_pylist() if r["name"] == "acc.eval"]
    assert logged == list(range(1, 11))  # the table keeps them as they are
    dense = series(read(epochs_among_steps(tmp_path / "dense", every=1)), "acc.eval")
    assert dense is not None and dense.step.tolist() == list(range(1, 501))


def ranks_as_prefix(folder: Path, value: Callable[[int, int], float], prefix: str) -> Path:
    folder.mkdir(parents=True)
    lines = [f"{prefix.format(r)}step: {i} loss: {value(i, r):.4f}\n" for i in range(1, 81) for r in range(4)]
    (folder / "train.log").write_text("".join(lines))
    return folder


def ranks_as_files(folder: Path, value: Callable[[int, int], float], name: str) -> Path:
    for r in range(4):
        path = folder / name.format(r)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"step: {i} loss: {value(i, r):.4f}\n" for i in range(1, 81)))
    return folder


NAMINGS: list[tuple[Callable[..., Path], str]] = [
    (ranks_as_prefix, "[rank{}]: "),
    (ranks_as_prefix, "[default{}]:"),
    (ranks_as_prefix, "[rank: {}] "),
    (ranks_as_prefix, "Rank {}: "),
    (ranks_as_prefix, "{}: "),
    (ranks_as_files, "rank_{}.log"),
    (ranks_as_files, "logs/rank{}/train.log"),
    (ranks_as_files, "logs/none_k2x/attempt_0/{}/stderr.log"),
    (ranks_as_files, "train_rank-{}.log"),
]


@pytest.mark.parametrize(("write", "name"), NAMINGS)
def test_nan_of_one_rank_is_found_in_each_naming(tmp_path: Path, write: Callable[..., Path], name: str) -> None:
    folder = write(tmp_path / "r", lambda i, r: math.nan if r == 3 and i == 50 else loss(i) + 0.01 * r, name)
    assert not forensics.read(str(folder)).siblings
    found = only(list(nonfinite.detect(read(folder))))
    assert (found.facts.rank, found.facts.first, found.facts.count) == (3, 50, 1)
    assert "on rank 3 alone" in found.title and found.severity == "critical"


def test_nan_on_all_ranks_names_none(tmp_path: Path) -> None:
    folder = ranks_as_files(tmp_path / "r", lambda i, r: math.nan if i >= 50 else loss(i), "rank_{}.log")
    found = only(list(nonfinite.detect(read(folder))))
    assert found.facts.rank is None and "rank" not in found.title


def test_a_spike_of_one_rank_is_found(tmp_path: Path) -> None:
    folder = ranks_as_files(
        tmp_path / "r", lambda i, r: loss(i) * (4 if r == 3 and i == 50 else 1) + 0.002 * ((i * (r + 3)) % 7), "rank_{}.log"
    )
    found = only(list(rank_disagreement.detect(read(folder))))
    assert (found.facts.pattern, found.facts.rank, found.facts.step, found.severity) == ("spike", 3, 50, "info")


@pytest.mark.parametrize("name", ["rank_{}.log", "logs/none_k2x/attempt_0/{}/stderr.log"])
def test_an_exception_of_one_rank_is_told_with_it(tmp_path: Path, name: str) -> None:
    folder = ranks_as_files(tmp_path / "r", lambda i, r: loss(i) + 0.01 * r, name)
    trace = "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    step()\nKeyError: 'labels'\n"
    with (folder / name.format(3)).open("a") as f:
        f.write(trace)
    ending = case(folder)["run"]["ending"]
    assert (ending["kind"], ending["rank"]) == ("exception", 3) and "KeyError" in ending["says"]


def adapters(folder: Path) -> Path:
    for rank in (8, 16):
        jsonl(folder / f"lora_rank_{rank}" / "metrics.jsonl", [{"step": i, "loss": loss(i) + rank / 100} for i in range(1, 81)])
    return folder


def test_the_rank_of_an_adapter_is_no_process(tmp_path: Path) -> None:
    assert read(adapters(tmp_path / "r")).tables["metrics"]["rank"].null_count == 80


def clocked(folder: Path, seconds: Callable[[int], float], logged: Callable[[int], bool] = lambda i: True, **more: Any) -> Path:
    now, rows = START, []
    for i in range(1, 601):
        now += seconds(i)
        if logged(i):
            rows.append({"step": i, "loss": loss(i), "time": now})
        if more and i % more["every"] == 0:
            now += more["pause"]
            rows.append({"step": i, "val_loss": loss(i), "time": now})
    return jsonl(folder / "metrics.jsonl", rows)


def silences(folder: Path) -> list[Any]:
    return [f for f in stall.detect(read(folder)) if not f.facts.at_end]


def test_a_change_of_the_logging_interval_is_no_stall(tmp_path: Path) -> None:
    run = clocked(tmp_path / "r", lambda i: 2.0, lambda i: i <= 300 or i % 100 == 0)
    assert not silences(run) and not list(throughput.detect(read(run)))


def test_a_silence_that_ended_by_itself_is_for_information(tmp_path: Path) -> None:
    found = silences(clocked(tmp_path / "r", lambda i: 400.0 if i in (60, 130, 310, 480) else 1.0))
    assert [f.severity for f in found] == ["info"] * 4


def test_a_known_evaluation_is_no_stall(tmp_path: Path) -> None:
    assert not silences(clocked(tmp_path / "r", lambda i: 1.0, every=100, pause=400))
    assert not silences(clocked(tmp_path / "once", lambda i: 1.0, every=400, pause=400))


def test_a_silence_is_one_all_the_same(tmp_path: Path) -> None:
    found = only(silences(clocked(tmp_path / "r", lambda i: 900.0 if i == 333 else 1.0, every=100, pause=30)))
    assert found.facts.step == 332
    hung = clocked(tmp_path / "eval", lambda i: 4000.0 if i == 301 else 1.0, every=100, pause=200)
    assert only(silences(hung)).facts.step == 300


def test_evaluations_that_begin_late_are_no_slow_down(tmp_path: Path) -> None:
    folder = clocked(tmp_path / "r", lambda i: 1.0, lambda i: i % 5 == 0)
    rows, shift = [], 0.0
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        shift += 10.0 if row["step"] > 300 else 0.0
        rows.append(row | {"time": row["time"] + shift})
        if row["step"] > 300:
            rows.append({"step": row["step"], "val_loss": row["loss"], "time": row["time"] + shift})
    with contextlib.suppress(CannotTell):
        assert not list(throughput.detect(read(jsonl(folder / "metrics.jsonl", rows))))
    slow = clocked(tmp_path / "slow", lambda i: 1.0 if i < 300 else 2.0)
    assert only(list(throughput.detect(read(slow)))).facts.ratio == pytest.approx(0.5, abs=0.05)


def test_of_two_copies_the_one_that_goes_further_is_taken(tmp_path: Path) -> None:
    """transformers 5 prints the rows of its state without their steps: as many points, counted as lines."""
    rows = [{"loss": 2.0 - 0.01 * i, "grad_norm": 1.0, "learning_rate": 1e-4, "epoch": i / 10} for i in range(1, 31)]
    (tmp_path / "train.log").write_text("".join(f"{row}\n" for row in rows))
    history = [row | {"step": 10 * (i + 1)} for i, row in enumerate(rows)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 300, "max_steps": 300, "log_history": history}))
    assert train(tmp_path).step[-1] == 300


def test_rows_between_steps_are_those_of_each_attempt_and_what_survived() -> None:
    s = series(run_of({"loss.train": np.arange(8.0)}, steps=[0, 1, 2, 3, 2, 3, 4, 5], attempts=[0, 0, 0, 0, 1, 1, 1, 1]), "loss.train")
    assert s is not None
    assert [(a, rows.tolist()) for a, rows in s.rows_between(1, 3)] == [(0, [1, 2, 3]), (1, [4, 5])]
    assert [a for a, _, _ in s.attempts(4)] == [1] and not list(s.attempts(9))
    assert s.alive_between(1, 4).tolist() == [1, 4, 5, 6]
