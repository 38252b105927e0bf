"""A loss that is a multiple of the wrong answers, by the clip of a library, and losses that are not."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.run.series import Floats
from forensics.signs.saturated_answers import wrong_answers_cost_beyond_belief, wrong_answers_cost_the_clip
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

HITS = np.array([0.5, 0.52, 0.49, 0.505, 0.5])


@pytest.mark.parametrize(
    ("loss", "hits", "state"),
    [
        (15.942 * (1 - HITS), HITS, "seen"),
        (15.942 * (1 - HITS), 100 * HITS, "seen"),
        (100 * (1 - HITS), HITS, "seen"),
        (8 + 0 * HITS, HITS, "absent"),  # near it, and not a multiple of the wrong answers
        (0.69 + 0 * HITS, HITS, "absent"),
        (15.942 * (1 - HITS), HITS / HITS, "cannot tell"),
    ],
)
def test_each_wrong_answer_costs_the_clip(loss: Floats, hits: Floats, state: str) -> None:
    found = wrong_answers_cost_the_clip(Symptoms(run_of({"loss.eval": loss, "acc.eval": hits}), ()))
    assert found.state == state, found.text


def test_a_loss_alone_cannot_tell() -> None:
    assert wrong_answers_cost_the_clip(Symptoms(run_of({"loss.eval": 8 + HITS}), ())).state == "cannot tell"


@pytest.mark.parametrize(
    ("cost", "hits", "train", "state"),
    [
        (99.0, 0.7, 1.1, "seen"),
        (9.0, 0.7, 1.1, "absent"),  # of a model that is too sure
        (99.0, 0.1, 1.1, "absent"),  # the answers do not belong to the questions
        (99.0, 0.7, 30.0, "absent"),  # training cost as much
    ],
)
def test_wrong_answers_among_right_ones_that_cost_beyond_belief(cost: float, hits: float, train: float, state: str) -> None:
    share = hits + 0.01 * np.arange(6)
    run = run_of({"loss.train": train - 0.1 * np.arange(6), "loss.eval": cost * (1 - share), "acc.eval": share})
    assert wrong_answers_cost_beyond_belief(Symptoms(run, ())).state == state
