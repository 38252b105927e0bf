"""An evaluation that gets worse for good where the training loss jumps, against one that turns by itself or comes back."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.causes.weigh import weigh
from forensics.detectors import divergence
from forensics.pipeline import examined
from tests.forensics.curves import run_of

T = np.arange(24)
LEARNS = 0.3 + 0.4 * np.exp(-T / 6)
JUMP = np.where(T >= 14, 0.6 * np.exp(-(T - 14) / 3), 0.0)  # of a loss that is logged once an epoch: it learns the new data
RECALL = 0.65 - 0.5 * np.exp(-T / 6)
LOST = np.where(T >= 14, 0.05 * (T - 13), 0.0)


@pytest.mark.parametrize(
    ("loss", "recall", "state"),
    [
        (LEARNS + JUMP, RECALL - LOST, "seen"),
        (LEARNS + JUMP, RECALL - np.where((T >= 14) & (T < 17), 0.2, 0.0), "cannot tell"),  # it comes back with the loss
        (LEARNS, RECALL - LOST, "absent"),  # overfitting
        (LEARNS + np.where(T == 14, 0.6, 0.0), RECALL - LOST, "absent"),  # one batch
    ],
)
def test_an_evaluation_that_does_not_come_back_with_the_loss(loss: np.ndarray, recall: np.ndarray, state: str) -> None:
    run = run_of({"loss.train": loss, "other/recall@20": recall})
    findings, _, signs = examined(run)
    sign = signs["eval_turned_where_training_jumped"]
    assert sign.state == state, sign.text
    causes = {h.id for h in weigh(signs, findings)}
    if state == "seen":
        assert "data_distribution_shift" in causes and "bad_data_batch" not in causes and "overfitting" not in causes


@pytest.mark.parametrize(
    ("tail", "fires"), [(JUMP, False), (np.where(T >= 14, 0.6, 0.0), True), (np.where(T >= 14, 0.06 * (T - 13), 0.0), True)]
)
def test_a_spike_that_is_coming_back_at_the_end_of_the_log_is_no_divergence(tail: np.ndarray, fires: bool) -> None:
    assert bool(list(divergence.detect(run_of({"loss.train": LEARNS + tail})))) is fires
    cut = run_of({"loss.train": (LEARNS + tail)[:20]})
    assert bool(list(divergence.detect(cut))) is fires
