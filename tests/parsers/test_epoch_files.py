"""A log of a row an epoch beside one of a row a step, in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers

EPOCHS, LENGTH = range(1, 9), 50


def value(epoch: int, batch: int) -> float:
    return float(4 / (epoch + batch / LENGTH))


def write(folder: Path, *, factor: float = 1.0, epochs: range = EPOCHS) -> None:
    steps = [f"epoch {e} batch {b} train_loss {value(e, b):.4f}" for e in EPOCHS for b in range(4, LENGTH, 10)]
    (folder / "log.txt").write_text("\n".join(steps) + "\n")
    rows = [f"epoch: {e}, lr: {1e-3 / e:.2e} - train loss: {factor * value(e, 25):.2f} - valid loss: {value(e, 10):.2f}" for e in epochs]
    (folder / "train_log.txt").write_text("\n".join(rows) + "\n")


def test_they_are_one_run_on_the_axis_of_steps(tmp_path: Path) -> None:
    write(tmp_path)
    runs = parsers.read_all(tmp_path)
    assert len(runs) == 1
    rows = [r for r in runs[0].tables["metrics"].to_pylist() if r["source"] == "train_log.txt" and r["name"] == "lr"]
    ends = {r["step"] for r in runs[0].tables["metrics"].to_pylist() if r["source"] == "log.txt" and r["name"] == "loss.train"}
    assert len(rows) == len(EPOCHS)
    assert {r["step"] for r in rows} <= ends
    assert max(r["step"] for r in rows) == max(ends)
    assert len(runs[0].attempts) == 1


@pytest.mark.parametrize(("factor", "epochs"), [(5.0, EPOCHS), (1.0, range(1, 6))], ids=["other values", "fewer epochs"])
def test_others_are_runs_of_their_own(tmp_path: Path, factor: float, epochs: range) -> None:
    write(tmp_path, factor=factor, epochs=epochs)
    assert len(parsers.read_all(tmp_path)) == 2
