"""A model that is worse after a restart than when it knew nothing, beside one that begins anew and one that lost its optimizer."""

from __future__ import annotations

import numpy as np
import pytest

from forensics import pipeline
from forensics.signs.restart_worse import worse_than_untrained_after_restart
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

N = 40
T = np.arange(N)
NOISE = 1 + 0.02 * np.random.default_rng(1).standard_normal(2 * N)
LEARNS = 0.5 + 4 * np.exp(-T / 6)


@pytest.mark.parametrize(
    ("after", "state"),
    [
        (0.5 + 9 * np.exp(-T / 6), "seen"),  # what was learnt is wrong: labels or ids mean something else
        (LEARNS, "absent"),  # the weights were not loaded
        (0.5 + 0.8 * np.exp(-T / 6), "absent"),  # the optimizer begins anew
        (0.5 + 9 * np.exp(-(((T - 8) / 4) ** 2)), "absent"),  # it blows up some steps later
        (np.full(N, 0.52), "cannot tell"),
    ],
)
def test_worse_than_untrained_after_a_restart(after: np.ndarray, state: str) -> None:
    run = run_of({"loss.train": np.r_[LEARNS, after] * NOISE}, attempts=[0] * N + [1] * N)
    found = worse_than_untrained_after_restart(Symptoms(run, tuple(pipeline.detect(run)[0])))
    assert found.state == state, found.text


def test_without_a_restart_it_does_not_arise() -> None:
    assert worse_than_untrained_after_restart(Symptoms(run_of({"loss.train": LEARNS}), ())).state == "cannot tell"


def test_a_policy_has_no_targets_that_could_mean_something_else() -> None:
    loss = np.r_[LEARNS, 0.5 + 9 * np.exp(-T / 6)] * NOISE
    run = run_of({"loss.train": loss, "rl.reward": 20.0 + np.arange(2 * N), "rl.kl": np.full(2 * N, 0.01)}, attempts=[0] * N + [1] * N)
    found = worse_than_untrained_after_restart(Symptoms(run, tuple(pipeline.detect(run)[0])))
    assert found.state == "cannot tell" and "policy" in found.text
