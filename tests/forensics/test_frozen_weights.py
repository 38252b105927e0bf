"""Weights that no step moved: all of them, those of an adapter, and those that were only put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forensics
from tests.forensics.runs import make

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("steps", "severity"), [((100, 200, 300), "warning"), ((100, 200), "info")])
def test_weights_that_no_step_moved(steps: tuple[int, ...], severity: str, tmp_path: Path) -> None:
    for step in steps:
        _save_weights(tmp_path, step, {"a.weight": torch.ones(4, 4), "b.weight": torch.ones(4, 4)})
    found = _frozen(tmp_path)
    assert [(f["severity"], f["facts"]["still"], f["steps"]) for f in found] == [(severity, 2, [steps[0], steps[-1]])]


@pytest.mark.parametrize(("last", "severity"), [(1.372, "warning"), (1.371, "info")])
def test_of_two_checkpoints_the_evaluation_says_that_none_is_a_copy(last: float, severity: str, tmp_path: Path) -> None:
    for step in (100, 200):
        _save_weights(tmp_path, step, {"a.weight": torch.ones(4, 4), "b.weight": torch.ones(4, 4)})
    held = {100: {"eval_loss": 1.372}, 200: {"eval_loss": 1.372}, 300: {"eval_loss": last}}
    assert [f["severity"] for f in _frozen(tmp_path, held)] == [severity]


def test_weights_that_were_put_back(tmp_path: Path) -> None:
    for step, value in ((100, 1.0), (200, 2.0), (300, 1.0)):  # the best ones, saved again at the end
        _save_weights(tmp_path, step, {"a.weight": torch.full((4, 4), value), "b.weight": torch.ones(4, 4) * value})
    assert _frozen(tmp_path) == []


def test_an_adapter_as_it_was_made(tmp_path: Path) -> None:
    for step in (100, 200):
        weights = {"base_model.lora_A.weight": torch.full((4, 8), float(step)), "base_model.lora_B.weight": torch.zeros(8, 4)}
        _save_weights(tmp_path, step, weights)
    assert sorted(f["severity"] for f in _frozen(tmp_path)) == ["info", "warning"]


def _save_weights(folder: Path, step: int, weights: dict[str, Any]) -> None:
    home = folder / f"checkpoint-{step}"
    home.mkdir(parents=True)
    torch.save(weights, home / "pytorch_model.bin")


def _frozen(folder: Path, held: dict[int, dict[str, float]] | None = None) -> list[dict[str, Any]]:
    rows = [{"step": i, "loss": 2.0 + 0.01 * (i % 7), **(held or {}).get(i, {})} for i in range(1, 301)]
    return [f for f in forensics.analyze(str(make(folder, rows))).to_json()["findings"] if f["kind"] == "frozen_weights"]


def test_checkpoints_that_count_epochs_have_the_steps_of_the_log(tmp_path: Path) -> None:
    for epoch in (1, 13):
        state = {"head.weight": torch.full((4, 4), float(epoch)), "body.weight": torch.ones(4, 4), "stem.weight": torch.ones(4, 4)}
        torch.save({"epoch": epoch, "state_dict": state}, tmp_path / f"model_{'ab'[epoch > 1]}.pth")
    rows = [{"step": i, "epoch": i // 20, "loss": 2.0 + 0.01 * (i % 7)} for i in range(300)]
    found = forensics.analyze(str(make(tmp_path, rows))).to_json()["findings"]
    assert [(f["severity"], f["steps"]) for f in found if f["kind"] == "frozen_weights"] == [("warning", [19, 259])]
