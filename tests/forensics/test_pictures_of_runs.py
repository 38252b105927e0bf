"""What the pictures of the page are drawn from, worked out of runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runs import case, loss, make, read, write

import forensics
from forensics.case_parts import evaluation_error, heat_columns, layer_cells, memory_room
from forensics.many_runs import difference

ROOT = Path(__file__).resolve().parents[2]


def test_a_healthy_run_has_no_pictures(tmp_path: Path) -> None:
    assert not any(case(write(tmp_path / "r"))["pictures"].values())


def test_layers_keep_what_is_not_finite_and_what_is_zero(tmp_path: Path) -> None:
    def at(i: int) -> dict[str, float]:
        return {"grad_norm/a": 1.0 + (i == 150), "grad_norm/b": float("nan") if i > 200 else 0.1, "grad_norm/c": 0.0}

    rows = [{"step": i, "loss": loss(i), **at(i)} for i in range(1, 301)]
    told = layer_cells.layers(read(make(tmp_path / "r", rows)))
    assert told is not None and len(told["starts"]) == heat_columns.COLUMNS
    cells = {r["layer"].rpartition("/")[2]: r["cells"] for r in told["rows"]}
    assert max(cells["a"]) == 2.0 and set(cells["c"]) == {0.0}
    assert cells["b"][0] == 0.1 and cells["b"][-1] == np.inf


def test_many_rows_keep_the_telling_ones() -> None:
    order = [199, 3, *(i for i in range(199) if i != 3)]
    kept = heat_columns.spread_out(order, 2)
    assert len(kept) == heat_columns.ROWS and {199, 3} <= set(kept) and kept == sorted(kept)


@pytest.mark.parametrize(("tag", "value", "expected"), [("gpu_memory_gb", 20.0, 20.0), ("gpu_memory_mib", 20480.0, 20.0)])
def test_memory_is_set_against_the_card(tmp_path: Path, tag: str, value: float, expected: float) -> None:
    log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 203.31 MiB is free."
    run = read(write(tmp_path / "r", log=log, **{tag: lambda i: value}))
    told = memory_room.memory(run)
    assert told is not None and told["capacity"] == pytest.approx(39.39) and told["tried"] == 2.0
    assert told["points"][0][1] == pytest.approx(expected)
    assert "train.log" in told["where"]


def test_memory_without_a_known_card_or_unit_is_not_drawn(tmp_path: Path) -> None:
    assert memory_room.memory(read(write(tmp_path / "a", gpu_memory_gb=lambda i: 20.0))) is None
    named = read(write(tmp_path / "b", config={"gpu": "NVIDIA A100-SXM4-80GB"}, gpu_memory_gb=lambda i: 20.0))
    told = memory_room.memory(named)
    assert told is not None and told["capacity"] == 80.0
    other = read(write(tmp_path / "c", config={"notes": "run1 - the A100-80GB dump of 50 GB"}, gpu_memory_gb=lambda i: 20.0))
    assert memory_room.memory(other) is None  # no key that names a device


def test_the_error_of_an_evaluation_comes_from_the_log_or_from_the_scatter(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, 400)
    every = {"eval_loss": lambda i: loss(i) + float(noise[i]) if i % 15 == 0 else None}
    scattered = evaluation_error.evaluation(read(write(tmp_path / "a", **every)))
    assert scattered is not None and scattered["how"] == "from the scatter of 20 evaluations"
    assert 0.003 < scattered["points"][0][2] < 0.1 and scattered["alike"] >= 1
    logged = evaluation_error.evaluation(read(write(tmp_path / "b", eval_loss_stderr=lambda i: 0.25 if i % 15 == 0 else None, **every)))
    assert logged is not None and logged["how"] == "logged as eval_loss_stderr" and logged["points"][0][2] == 0.25
    assert logged["alike"] > scattered["alike"]
    assert evaluation_error.evaluation(read(write(tmp_path / "c"))) is None


def test_the_difference_to_a_baseline_is_in_percent_or_times(tmp_path: Path) -> None:
    base = read(write(tmp_path / "base"))
    rows = [[{"step": i, "loss": loss(i) * (by if i > 150 else 1)} for i in range(1, 301)] for by in (1.2, 30.0)]
    near, far = (difference.beside(base, read(make(tmp_path / str(n), r))) for n, r in enumerate(rows))
    assert near is not None and far is not None
    assert (near["difference"]["unit"], far["difference"]["unit"]) == ("%", "times")
    assert near["difference"]["level"][-1][1] == pytest.approx(20) and far["difference"]["level"][-1][1] == pytest.approx(30)
    assert near["difference"]["parts"] == far["difference"]["parts"] == 151
    short = read(make(tmp_path / "short", [{"step": i, "loss": 1.0 + i} for i in range(4)]))
    assert difference.beside(base, short) is None


def test_ranks_of_a_hang_say_until_when_they_were_heard_and_in_what_they_wait() -> None:
    told = forensics.analyze(str(ROOT / "samples" / "hang_torchrun")).to_json()["pictures"]["ranks"]
    assert {w["operation"].split()[0] for w in told["waits"]} == {"BROADCAST", "ALLREDUCE"}
    last = max(h["to"] for h in told["heard"])
    assert len(told["heard"]) == 2 and told["until"] == pytest.approx(last + 600, abs=1)
    assert told["rows"] == []  # both ranks kept pace until then


def test_seeds_of_a_group_are_drawn_together() -> None:
    told = forensics.analyze(str(ROOT / "samples" / "seeds_far_apart")).to_json()["pictures"]["seeds"]
    assert next(r["seed"] for r in told["runs"]) == 1 and len(told["runs"]) == 4
    assert told["runs"][-1]["last"] > 100 * told["runs"][0]["last"]
