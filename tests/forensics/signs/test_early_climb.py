"""A loss that updates drive up, beside one that begins too high and one that spikes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs.early_climb import loss_climbs_above_any_guess
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(36)
CLIMBS = np.where(T < 12, 28 + 5.0 * T, 88 * np.exp(-(T - 12) / 6))
FALLS = 5 + 83 * np.exp(-T / 6)
SPIKES = np.where(T == 7, 70.0, 5 + 10 * np.exp(-T / 6))
PPL = {"ppl.eval": np.full(36, 400.0)}


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"loss.train": CLIMBS} | PPL, {}, "seen"),
        ({"loss.train": CLIMBS / 4}, {"vocab_size": 50}, "seen"),
        ({"loss.train": CLIMBS, "other/val/elbo": -60.0 + T} | PPL, {}, "absent"),  # harder data, as the evaluation says
        ({"loss.train": FALLS} | PPL, {}, "absent"),  # weights that begin too large
        ({"loss.train": SPIKES} | PPL, {}, "absent"),
        ({"loss.train": CLIMBS / 20} | PPL, {}, "absent"),  # below what a guess costs in the largest vocabulary
        ({"loss.train": CLIMBS}, {}, "cannot tell"),  # of what unit
    ],
)
def test_a_loss_that_climbs_above_any_guess(metrics: Mapping[str, Any], config: Mapping[str, Any], state: str) -> None:
    found = loss_climbs_above_any_guess(Symptoms(run_of(metrics, config=config), ()))
    assert found.state == state, found.text
