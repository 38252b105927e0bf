"""Means over episodes where none ended."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.run import empty_windows
from forensics.run.series import series
from forensics.signs.policy_rewards import return_of_no_episode
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

N = 120
T = np.arange(N)
RETURNS = 20 * noisy(N, 0.1) - 60
NONE = T % 5 == 2
EMPTY = np.where(NONE, 0.0, RETURNS)


@pytest.mark.parametrize(
    "beside",
    [
        {"rl.len": np.where(NONE, 0.0, 40 + T % 7)},
        {"other/n_episodes": np.where(NONE, 0.0, 1 + T % 3)},
        {"other/episodes": np.cumsum(~NONE).astype(float)},
    ],
    ids=["length", "count of the row", "count so far"],
)
def test_zeros_where_no_episode_ended_are_left_out(beside: dict[str, np.ndarray]) -> None:
    run = run_of({"rl.reward": EMPTY, **beside})
    found = return_of_no_episode(Symptoms(run, ()))
    assert found.state == "seen" and "at 24 steps" in found.text
    s = series(run, "rl.reward")
    assert s is not None
    assert np.array_equal(s.value, RETURNS[~NONE])


@pytest.mark.parametrize(
    ("returns", "beside"),
    [
        (EMPTY, {}),  # a sparse reward is zero, too
        (EMPTY, {"other/successes": np.where(NONE, 0.0, 1 + T % 3)}),  # and was not won
        (EMPTY, {"rl.len": 40.0 + T % 7}),
        (EMPTY, {"other/episodes": 2.0 * (T + 1)}),
        (np.where(T < 3, 0.0, RETURNS), {"rl.len": np.where(T < 3, 0.0, 40)}),  # before the first one ended
        (0 * RETURNS, {"rl.len": 0 * RETURNS}),
    ],
)
def test_other_zeros_count(returns: np.ndarray, beside: dict[str, np.ndarray]) -> None:
    run = run_of({"rl.reward": returns, **beside})
    assert return_of_no_episode(Symptoms(run, ())).state == "absent"
    s = series(run, "rl.reward")
    assert s is not None
    assert np.array_equal(s.value, returns)


def test_without_episodes_it_cannot_tell() -> None:
    assert return_of_no_episode(Symptoms(run_of({"loss.train": RETURNS}), ())).state == "cannot tell"


def test_a_score_that_runs_through_an_episode_counts_none() -> None:
    """``Episode Reward``, logged as it goes down from 0 to -20 and begins anew: the return itself, under its other name, is no count."""
    score = -(T % 21).astype(float)
    assert not empty_windows.empty(score, [("rl.reward", "Episode Reward", score)]).any()
