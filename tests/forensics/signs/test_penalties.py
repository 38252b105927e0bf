"""Penalties on the weights, in the config and in the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.penalties import penalty_dominates_loss, penalty_strong
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(40)
MSE = 0.3 + 0.6 * np.exp(-T / 8)
PENALTY = 30 * np.exp(-T / 4)


@pytest.mark.parametrize(
    ("config", "state"),
    [
        ({"l2": 0.3}, "seen"),
        ({"kernel_l2": 0.03, "lr": 0.001}, "seen"),
        ({"l1": 0.02}, "seen"),
        ({"l2": 0.01}, "absent"),  # Keras's own
        ({"l2": 2e-5, "l1": 0}, "absent"),
        ({"lambda_L1": 100.0}, "cannot tell"),  # of an error
        ({"l1": 100.0}, "cannot tell"),
        ({"weight_decay": 0.3}, "cannot tell"),
        ({"objective": "binary:logistic", "max_depth": 6, "num_boost_round": 40, "l2": 1.0}, "cannot tell"),
    ],
)
def test_a_penalty_beyond_all_usual_ones(config: dict[str, Any], state: str) -> None:
    found = penalty_strong(Symptoms(run_of({"loss.train": MSE}, config=config), ()))
    assert found.state == state, found.text


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"loss.train": MSE + PENALTY, "other/mse": MSE}, "seen"),
        ({"loss.train": MSE + PENALTY, "other/rmse": np.sqrt(MSE)}, "seen"),
        ({"loss.train": MSE + PENALTY / 100, "other/mse": MSE}, "absent"),
        ({"loss.train": np.sqrt(MSE / 30) * 0.9, "other/mse": MSE / 30}, "absent"),  # a mean of absolute errors
        ({"loss.train": MSE + PENALTY, "other/val_mse": MSE}, "cannot tell"),  # of other data
        ({"loss.train": MSE + PENALTY, "other/mse": MSE, "other/kl": PENALTY}, "cannot tell"),
        ({"loss.train": MSE + PENALTY}, "cannot tell"),
    ],
)
def test_a_loss_that_is_mostly_something_else_than_its_error(metrics: dict[str, Any], state: str) -> None:
    found = penalty_dominates_loss(Symptoms(run_of(metrics), ()))
    assert found.state == state, found.text


def test_the_mean_of_an_epoch_is_held_against_the_losses_of_that_epoch() -> None:
    error = np.where(T % 8 == 7, MSE, np.nan)
    found = penalty_dominates_loss(Symptoms(run_of({"loss.train": MSE + PENALTY, "other/mse": error}), ()))
    assert (found.state, found.numbers["first"]) == ("seen", 7), found.text
