"""A training loss on the floor of a cross entropy of probabilities, beside an evaluation of the outputs themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forensics.run.series import Floats
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from forensics.signs.squashed_floor import loss_stands_on_squashed_floor
from tests.forensics.curves import run_of

T = np.arange(80.0)
FLOOR = math.log(math.e + 9) - 1
TWICE = FLOOR + 0.84 * np.exp(-T / 8) + 0.005
SURE = 0.05 + 2.2 * np.exp(-T / 8)
CONFIG = {"num_classes": 10}


@pytest.mark.parametrize(
    ("train", "held", "config", "state"),
    [
        (TWICE, SURE, CONFIG, SEEN),
        (TWICE, TWICE, CONFIG, ABSENT),  # both are high: other signs tell
        (TWICE - 0.1, SURE, CONFIG, ABSENT),  # below what probabilities allow
        (TWICE + 0.2, SURE, CONFIG, ABSENT),  # above it: a penalty, dropout
        (np.r_[1.9, TWICE[1:]], SURE, {}, CANNOT_TELL),
        (TWICE, SURE, {"num_classes": 2}, CANNOT_TELL),
        (TWICE, SURE[:3], CONFIG, CANNOT_TELL),
    ],
)
def test_a_loss_on_the_floor_of_probabilities(train: Floats, held: Floats, config: dict[str, int], state: str) -> None:
    found = loss_stands_on_squashed_floor(Symptoms(run_of({"loss.train": train, "loss.eval": held}, config=config), ()))
    assert found.state == state, found.text
