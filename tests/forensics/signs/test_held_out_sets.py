"""Several evaluations beside each other: one that was changed, one that is forgotten, and training data known by heart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forensics.detectors import dataset_loss
from forensics.pipeline import examined
from forensics.signs.sign import Sign
from tests.forensics.curves import run_of
from tests.forensics.runs import make, only, read

STEPS, EVERY = 42, 6
FALLS = [1.7, 1.55, 1.45, 1.38, 1.33, 1.3, 1.28]
CHANGED = [1.6, 1.4, 1.3, 3.3, 3.25, 3.2, 3.2]


def signs_of(folder: Path, train: Any, **sets: list[float]) -> dict[str, Sign]:
    rows: list[dict[str, Any]] = [{"step": i, "loss": float(train(i))} for i in range(1, STEPS + 1)]
    for k in range(len(FALLS)):
        rows.append({"step": (k + 1) * EVERY} | {f"eval_{name}_loss": x[k] for name, x in sets.items()})
    return examined(read(make(folder, rows)))[2]


def ordinary(i: int) -> float:
    return 1.2 + 1.5 * np.exp(-i / 12) + 0.02 * ((i * 7) % 5 - 2)


@pytest.mark.parametrize(
    ("train", "one", "other", "state"),
    [
        (ordinary, CHANGED, FALLS, "seen"),
        (ordinary, CHANGED, [x + (k >= 3) for k, x in enumerate(FALLS)], "absent"),  # both: the model changed
        (lambda i: ordinary(i) + (i > 18), CHANGED, FALLS, "absent"),  # training jumps as well
        (ordinary, [1.6, 1.4, 1.3, 2.0, 2.6, 3.0, 3.3], FALLS, "absent"),  # forgotten, a little more each time
        (ordinary, FALLS, FALLS, "absent"),
    ],
)
def test_an_evaluation_that_alone_steps_up(tmp_path: Path, train: Any, one: list[float], other: list[float], state: str) -> None:
    signs = signs_of(tmp_path, train, add=one, rev=other)
    assert signs["one_evaluation_steps_alone"].state == state, signs["one_evaluation_steps_alone"].text
    if state == "seen":
        assert signs["eval_turned_up"].state == "absent"


def test_one_evaluation_has_no_control(tmp_path: Path) -> None:
    assert signs_of(tmp_path, ordinary, add=CHANGED)["one_evaluation_steps_alone"].state == "cannot tell"


@pytest.mark.parametrize(
    ("last", "state"),
    [(0.01, "seen"), (1.2, "absent")],  # far below every evaluation: overfitting; level with the other: another set is forgotten
)
def test_by_heart_or_forgotten(tmp_path: Path, last: float, state: str) -> None:
    worse, better = [1.8, 1.7, 1.9, 2.2, 2.6, 2.9, 3.2], [1.8, 1.6, 1.5, 1.4, 1.35, 1.3, 1.27]
    signs = signs_of(tmp_path, lambda i: last + (2.5 - last) * np.exp(-i / 6), add=worse, rev=better)
    assert signs["one_dataset_got_worse"].state == "seen"
    assert signs["eval_turned_up"].state == state, signs["eval_turned_up"].text


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        ([1.0, 8.4, 9.4, 9.8, 10.0, 10.1, 10.1], [6.8, 2.0, 1.7, 1.7, 1.6, 1.6, 1.6], "warning"),  # nothing of it is left
        ([1.0, 1.4, 1.6, 1.7, 1.8, 1.8, 1.8], [6.8, 2.0, 1.7, 1.7, 1.6, 1.6, 1.6], "info"),  # what an adaptation costs
        ([1.0, 1.4, 1.6, 1.7, 1.8, 1.8, 1.8], [1.7, 1.6, 1.5, 1.4, 1.4, 1.4, 1.4], "info"),  # the other had been learnt before
    ],
)
def test_a_set_of_which_nothing_is_left(tmp_path: Path, old: list[float], new: list[float], severity: str) -> None:
    rows = [{"step": k * EVERY, "eval_old_loss": a, "eval_new_loss": b} for k, (a, b) in enumerate(zip(old, new, strict=True))]
    assert only(list(dataset_loss.detect(read(make(tmp_path, rows))))).severity == severity


T = np.arange(120)


@pytest.mark.parametrize(
    ("train", "held_out", "state"),
    [
        (2.4 * np.exp(-T / 12) + 0.003, 1.7 + np.exp(-T / 20), "seen"),  # stands still at 70 % of the first loss
        (2.4 * np.exp(-T / 12) + 0.003, 0.05 + 2.3 * np.exp(-T / 15), "absent"),  # it learnt what holds for other data as well
        (2.4 * np.exp(-T / 12) + 0.1, 1.7 + np.exp(-T / 20), "absent"),
        (2.4 * np.exp(-T / 200), 1.7 + np.exp(-T / 20), "absent"),
    ],
)
def test_training_that_leaves_the_evaluation_behind(train: Any, held_out: Any, state: str) -> None:
    sign = examined(run_of({"loss.train": train, "loss.eval": held_out}))[2]["eval_left_behind"]
    assert sign.state == state, sign.text
