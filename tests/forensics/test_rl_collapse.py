"""A reward that is lost: told with the step at which it comes back, and not where it only scatters or never rose."""

from __future__ import annotations

import numpy as np
import pytest
from curves import run_of

from forensics.detectors import divergence, nonfinite, rl_collapse
from forensics.errors import CannotTell
from forensics.signs.policy_rewards import reward_fell
from forensics.signs.sign import Symptoms

N = 400
RISES = 200 * (1 - np.exp(-np.arange(N) / 60.0))


def scattered(x: np.ndarray, noise: float = 6.0) -> np.ndarray:
    return x + np.random.default_rng(0).normal(0, noise, len(x))


def lost(x: np.ndarray, begin: int, end: int | None, to: float = 10.0) -> np.ndarray:
    y = x.copy()
    y[begin:end] = to
    return y


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        (scattered(lost(RISES, 200, 260)), [(199, 260)]),
        (scattered(lost(RISES, 300, None)), [(299, None)]),
        (scattered(lost(lost(RISES, 120, 150), 300, 340)), [(299, 340), (119, 150)]),
        (scattered(lost(RISES, 200, 260, to=150.0)), []),  # a quarter of the gain
        (scattered(RISES, 40.0), []),
        (scattered(np.zeros(N)), []),
        (-RISES, []),
        (np.full(N, 5.0), []),
        (np.where(np.random.default_rng(1).random(N) < 0.3, -0.1, 0.0), []),  # three episodes of ten are lost, and none won
        (np.repeat([0.0, 1.0, 0.0], [100, 100, 200]), [(199, None)]),
    ],
)
def test_collapses_of_a_reward(reward: np.ndarray, told: list[tuple[int, int | None]]) -> None:
    found = [f for f in rl_collapse.detect(run_of({"rl.reward": reward})) if isinstance(f.facts, rl_collapse.Facts)]
    assert {f.severity for f in found} <= {"info"}
    assert [f.facts.recovered is None for f in found] == [back is None for _, back in told]
    for f, (begin, back) in zip(found, told, strict=True):
        assert f.first_step == pytest.approx(begin, abs=3) and (back is None or f.facts.recovered == pytest.approx(back, abs=3))


@pytest.mark.parametrize(("last", "told"), [(-40.0, True), (14.0, False), (60.0, False)])
def test_a_reward_that_ends_below_its_first_level_is_a_warning(last: float, told: bool) -> None:
    reward = scattered(np.linspace(20.0, last, N), 3.0)
    found = [f for f in rl_collapse.detect(run_of({"rl.reward": reward})) if isinstance(f.facts, rl_collapse.BelowFirst)]
    assert [f.severity for f in found] == ["warning"] * told


@pytest.mark.parametrize(("last", "told"), [(-36.0, True), (-10.0, False)], ids=["at the bottom", "half of it made up"])
def test_a_reward_that_comes_back_is_on_its_way(last: float, told: bool) -> None:
    run = run_of({"rl.reward": scattered(np.r_[np.linspace(20.0, -40.0, N // 2), np.linspace(-40.0, last, N // 2)], 1.0)})
    assert any(isinstance(f.facts, rl_collapse.BelowFirst) for f in rl_collapse.detect(run)) == told
    assert bool(list(divergence.detect(run))) == told
    assert (reward_fell(Symptoms(run, ())).state == "seen") == told


def test_few_rewards_tell_nothing() -> None:
    with pytest.raises(CannotTell):
        list(rl_collapse.detect(run_of({"rl.reward": RISES[:10]})))


@pytest.mark.parametrize(("wins_at_last", "falls"), [(0.4, False), (0.0, True)])
def test_games_that_are_lost_or_won_diverge_where_their_mean_falls(wins_at_last: float, falls: bool) -> None:
    won = np.random.default_rng(3).random(N) < np.r_[np.linspace(0, 0.7, N - 15), np.full(15, wins_at_last)]
    assert bool(list(divergence.detect(run_of({"rl.reward": np.where(won, 1.6, -1.4)})))) is falls


@pytest.mark.parametrize(("name", "severity"), [("rl.reward", "info"), ("rl.loss_value", "warning")])
def test_the_mean_of_no_episode_is_no_number(name: str, severity: str) -> None:
    """Where fewer steps lie between two rows than an episode takes; a value that was computed is another matter."""
    t = np.arange(120)
    values = np.where(t % 5 == 0, 10.0 + t / 20, np.nan)
    rows = {"rl.reward": 10.0 + t / 20, "rl.loss_value": 1.0 + 0 * t} | {name: values}
    assert [f.severity for f in nonfinite.detect(run_of(rows)) if f.facts.metric == name] == [severity]
