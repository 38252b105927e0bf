"""How many parameters train, in the words of frameworks and people."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics
from forensics.run.parameter_counts import counts
from forensics.signs.parameters import few_parameters_train
from forensics.signs.sign import Symptoms
from parsers.tables import Run
from tests.forensics.runs import write

LIGHTNING = "0         Trainable params\n1.2 K     Non-trainable params\n1.2 K     Total params"
KERAS = " Total params: 1,234 (4.82 KB)\n Trainable params: 34 (0.13 KB)\n Non-trainable params: 1,200 (4.69 KB)"


def logged(folder: Path, text: str) -> Run:
    return forensics.read(str(write(folder / "run", 20, log=text + "\n")))


@pytest.mark.parametrize(
    ("text", "training", "every", "state"),
    [
        ("trainable params: 6,144 || all params: 68,928 || trainable%: 8.9136", 6144, 68928, "absent"),
        ("trainable params: 6,144 || all params: 68,928\ntrainable params: 0", 0, 68928, "seen"),
        ("INFO model has 47,188 parameters, 196 trainable", 196, 47188, "seen"),
        ("Number of trainable parameters = 68,928", 68928, None, "cannot tell"),
        (LIGHTNING, 0, 1200, "seen"),
        (KERAS, 34, 1234, "seen"),
        ("1.2 M     Trainable params\n0         Non-trainable params", 1.2e6, 1.2e6, "absent"),
    ],
)
def test_what_logs_say(text: str, training: float, every: float | None, state: str, tmp_path: Path) -> None:
    run = logged(tmp_path, text)
    found = counts(run)
    assert found is not None
    assert (found.training, found.all) == (training, every)
    assert found.where.startswith("train.log")
    assert few_parameters_train(Symptoms(run, ())).state == state


def test_a_log_that_says_nothing(tmp_path: Path) -> None:
    run = logged(tmp_path, "hello")
    assert counts(run) is None
    assert few_parameters_train(Symptoms(run, ())).state == "cannot tell"
