"""Lines of the Trainer without a step: the history that it saved says which step each epoch was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import parsers

EPOCHS = [round(20 * i / 250, 2) for i in range(1, 38)]  # of 250 steps, logged every 20


def line(i: int) -> str:
    row = {"loss": f"{3.1 / (i + 0.37):.4f}", "grad_norm": f"{1 + i / 100:.4g}", "learning_rate": "0.001", "epoch": f"{EPOCHS[i - 1]:.4g}"}
    return str(row) + "\n"


def write(folder: Path, *logs: list[int], epochs: float = 1.0, below: str = "ckpt/checkpoint-740") -> None:
    history = [
        {"step": 20 * i, "epoch": 20 * i / 250 * epochs, "loss": 3.1 / (i + 0.37), "grad_norm": 1 + i / 100, "learning_rate": 1e-3}
        for i in range(1, 38)
    ]
    (folder / below).mkdir(parents=True)
    (folder / below / "trainer_state.json").write_text(json.dumps({"global_step": 740, "log_history": history, "max_steps": 740}))
    for n, rows in enumerate(logs):
        said = "resuming from ckpt/checkpoint-400\n" * n
        done = str({"train_runtime": "5.17", "train_loss": "0.64", "epoch": f"{EPOCHS[rows[-1] - 1]:.4g}"}) + "\n"
        (folder / f"slurm-{n}.out").write_text(said + "".join(line(i) for i in rows) + done)


def test_two_launches_and_their_history_are_one_run_of_two_attempts(tmp_path: Path) -> None:
    write(tmp_path, list(range(1, 21)), list(range(21, 38)))
    (run,) = parsers.read_all(tmp_path)
    assert [a["steps"] for a in run.attempts] == [[20, 400], [420, 740]]


@pytest.mark.parametrize(("epochs", "below"), [(1.7, "ckpt"), (1.0, "../elsewhere")], ids=["other epochs", "not beside it"])
def test_a_history_of_another_training_gives_no_steps(epochs: float, below: str, tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    write(root, list(range(1, 21)), epochs=epochs, below=below)
    steps = {
        s
        for r in parsers.read_all(root)
        for s, f in zip(r.tables["metrics"]["step"].to_pylist(), r.tables["metrics"]["source"].to_pylist(), strict=True)
        if f.endswith(".out")
    }
    assert steps - {None} == set(range(1, 21))
