"""Runs that begin absurdly far off: nothing of them was learnt by heart, nor are their labels wrong."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import initial_loss, train_eval_gap
from forensics.pipeline import judge
from forensics.run.series import Floats
from forensics.signs.far_off_from_start import far_off_from_start
from forensics.signs.held_out import eval_turned_up
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(40)
UNDONE = 1e6 * np.exp(-T) + 3


@pytest.mark.parametrize(
    ("r2", "state"),
    [
        (1 - UNDONE, "seen"),
        (0.9 - 1e6 * np.exp(-T), "absent"),  # targets far from zero, which are learnt
        (-0.2 + 0 * T, "absent"),  # labels that nothing tells
        (np.clip(T / 40, 0, 1) + 0.1, "cannot tell"),
    ],
    ids=["undone", "learnt", "at chance", "never negative"],
)
def test_an_error_far_wider_than_the_targets(r2: Floats, state: str) -> None:
    run = run_of({"loss.train": UNDONE, "other/val_r2": r2})
    assert far_off_from_start(Symptoms(run, ())).state == state
    causes = {h.id for h in judge(run).hypotheses}
    assert state != "seen" or ("inputs_not_normalized" in causes and "labels_wrong" not in causes)


@pytest.mark.parametrize(("size", "state"), [(1e6, "absent"), (1.0, "seen")], ids=["beyond any guess", "as guesses cost"])
def test_an_evaluation_beyond_any_guess_is_no_memory(size: float, state: str) -> None:
    train = (size if size > 1 else 1) * 2 * np.exp(-T / 2) + 0.1
    held = size * (1 + T / 20)
    run = run_of({"loss.train": train, "loss.eval": held, "acc.eval": 0.1 + 0 * T})
    found = (*train_eval_gap.detect(run), *(initial_loss.detect(run) if size > 1 else ()))
    assert eval_turned_up(Symptoms(run, found)).state == state


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)])
def test_odd_runs_raise_nothing(x: Floats) -> None:
    assert far_off_from_start(Symptoms(run_of({"loss.train": x, "other/val_r2": x}), ())).state in ("absent", "cannot tell")
