"""A step that never moves counts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        ([f'{{"step": 0, "loss": {9.5 - i / 4}}}' for i in range(12)], list(range(12))),
        ([f'{{"step": {i // 6}, "loss": {9.5 - i / 4}}}' for i in range(12)], [0] * 6 + [1] * 6),  # it moves
        ([f'{{"step": 7, "loss": {9.5 - i / 4}}}' for i in range(9)], [7] * 9),  # of a few rows nobody knows
    ],
)
def test_rows_are_counted_where_the_step_never_moves(tmp_path: Path, rows: list[str], steps: list[int]) -> None:
    (tmp_path / "log.jsonl").write_text("\n".join(rows) + "\n")
    run = forensics.read(str(tmp_path))
    assert run.tables["metrics"]["step"].to_pylist() == steps
    assert ("never moves" in run.sources[0].note) == (steps[-1] == 11)


def test_evaluations_at_one_step_stay_there(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": 40, "val_loss": {i / 4}}}\n' for i in range(30)))
    assert set(forensics.read(str(tmp_path)).tables["metrics"]["step"].to_pylist()) == {40}


def test_classes_at_one_step_stay_there(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": 40, "iou/class{i}": 0.5}}\n' for i in range(30)))
    assert set(forensics.read(str(tmp_path)).tables["metrics"]["step"].to_pylist()) == {40}
