"""A loop that goes back to an earlier state where an evaluation came out worse, and a run that was restarted without a word."""

from pathlib import Path

import numpy as np
import pytest

import forensics


def _log(said: str) -> str:
    rng = np.random.default_rng(0)
    blocks = [(0, 60), (50, 100), (90, 140), (130, 180)]
    loops = ["".join(f"step {i}/900 loss: {3 - i / 100 + rng.normal(0, 0.02):.4f}\n" for i in range(*b)) for b in blocks]
    return said.join(loops)


@pytest.mark.parametrize(
    ("said", "severity", "words"),
    [
        ("the validation loss is worse, returning to the previously validated model with halved learning rate\n", "info", "undoes steps by itself"),
        ("the validation loss is worse\n", "warning", "stops"),
    ],
)  # fmt: skip
def test_steps_that_the_loop_says_it_undoes_are_no_restart(tmp_path: Path, said: str, severity: str, words: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(_log(said))
    found = [f for f in forensics.analyze(path).to_json()["findings"] if f["kind"] == "restart"]
    assert [f["severity"] for f in found] == [severity] * 3
    assert all(f["title"].startswith(f"The run {words} at step ") for f in found)
