"""Values that drown a policy, rewards that change; and sound runs beside each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.signs import policies as P
from forensics.signs import policy_learning as L
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

N = 40
AT = np.arange(N)
ONE = np.ones(N)
NOISE = np.random.default_rng(4).standard_normal(N)
STILL = {"rl.kl": 1e-8 * (1 + 0.2 * np.abs(NOISE)), "rl.entropy": -0.6931 + 1e-6 * NOISE, "rl.expl_var": 0.01 * NOISE}
LEARNS = {"rl.kl": 0.004 * (1 + np.abs(NOISE)), "rl.entropy": -0.69 + 0.004 * AT, "rl.expl_var": np.minimum(0.02 * AT, 0.8)}
DROWNS = {
    "rl.loss_value": 2e9 * (1 + 0.05 * NOISE),
    "rl.kl": np.where(AT < 2, 6e-3, 5e-5),
    "rl.entropy": -0.69 + 0.001 * AT,
    "rl.expl_var": 1e-5 * NOISE,
}
RUNS_OFF = {"rl.loss_value": 30 * np.exp(AT / 8), "rl.expl_var": -0.05 + 0.05 * NOISE, "rl.reward": 20 + 0.5 * AT}
LENGTH = 20 + 2 * AT + NOISE
SIGN = {"rl.len": LENGTH, "rl.reward": np.where(AT < 25, LENGTH, LENGTH - 4 * (AT - 24))}  # a running mean over episodes


CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (L.values_drown_policy, "seen", DROWNS, {}),
    (P.action_noise_ran_away, "seen", {"rl.reward": AT, "other/train/std": 1.2 * np.exp(AT / 7)}, {}),
    (P.action_noise_ran_away, "absent", {"rl.reward": AT, "other/train/std": 1.2 + AT / 20}, {}),
    (P.action_noise_ran_away, "cannot tell", {"loss.train": AT, "other/train/std": 1.2 * np.exp(AT / 7)}, {}),  # of what?
    (P.action_noise_ran_away, "cannot tell", {"rl.reward": AT}, {}),
    (L.values_drown_policy, "absent", DROWNS | {"rl.expl_var": np.minimum(0.02 * AT, 0.8)}, {}),  # large by nature, and learnt
    (L.values_drown_policy, "seen", DROWNS | {"rl.kl": LEARNS["rl.kl"]}, {}),
    (L.values_drown_policy, "absent", DROWNS | {"rl.kl": LEARNS["rl.kl"], "rl.loss_value": 4e4 * ONE}, {}),
    (L.values_drown_policy, "absent", STILL | {"rl.loss_value": 2e9 * ONE}, {}),  # nothing moved from the first update on
    (L.policy_hardly_moves, "seen", STILL | {"rl.reward": 22 + NOISE, "rl.clipfrac": 0 * ONE}, {}),
    (L.policy_hardly_moves, "absent", STILL | {"rl.reward": 22 + 2 * AT}, {}),
    (L.policy_hardly_moves, "seen", STILL | {"rl.reward": 22 + 1.5 * AT / AT.max(), "rl.entropy": 1.099 - 0.003 * AT / AT.max()}, {}),
    (L.policy_hardly_moves, "absent", STILL | {"rl.reward": 22 + NOISE, "rl.entropy": 1.099 - 0.03 * AT / AT.max()}, {}),
    (L.policy_hardly_moves, "absent", STILL | {"rl.reward": 22 + NOISE, "rl.kl": np.where(AT < 30, 0.004, 1e-9)}, {}),  # it has learnt
    (L.policy_hardly_moves, "cannot tell", STILL, {}),
    (L.values_beyond_returns, "seen", {"rl.reward": 4 * ONE, "other/losses/value_mean": 0.5 * np.exp(AT / 6)}, {}),
    (L.values_beyond_returns, "absent", {"rl.reward": 4 * ONE, "other/losses/value_mean": 0.1 * AT}, {}),
    # one lucky episode of a random policy is no yardstick for what is paid in the end
    (L.values_beyond_returns, "seen", {"rl.reward": np.where(AT == 2, 60.0, 10 - AT / 40), "other/losses/q_values": 0.5 + 1.8 * AT}, {}),
    (L.values_beyond_returns, "absent", {"rl.reward": 9 + 2 * AT, "other/losses/q_values": 0.5 + 1.8 * AT}, {}),
    (L.values_beyond_returns, "absent", {"rl.reward": 4 * ONE, "other/losses/value_mean": 300 * ONE}, {}),  # in another unit from the start
    (L.values_beyond_returns, "seen", {"rl.reward": 27 - 0.3 * AT, "other/q_mean": 0.1 + 1.2 * AT}, {}),
    (L.values_beyond_returns, "absent", {"rl.reward": 20 + 0.3 * AT, "other/q_mean": 0.1 + 1.2 * AT}, {}),  # as returns grow
    (L.values_beyond_returns, "absent", {"rl.reward": 27 - 0.3 * AT, "other/q_mean": np.minimum(3 * AT, 46)}, {}),  # it has settled
    # both sides of a game are paid nothing in sum
    (L.values_beyond_returns, "seen", {"rl.reward": 0 * ONE, "other/learner_stats/mean_q": np.exp(AT / 2)}, {}),
    (L.values_beyond_returns, "absent", {"rl.reward": 0 * ONE, "other/learner_stats/mean_q": np.exp(AT / 12)}, {}),
    (L.values_beyond_returns, "cannot tell", {"rl.reward": 4 * ONE, "other/losses/value_std": 300 * ONE}, {}),
    (L.values_drown_policy, "absent", LEARNS | {"rl.loss_value": 20 * ONE}, {}),
    (L.values_drown_policy, "cannot tell", LEARNS, {}),
    (P.value_loss_exploded, "seen", RUNS_OFF, {}),
    (P.value_loss_exploded, "absent", RUNS_OFF | {"rl.expl_var": np.minimum(0.05 * AT, 0.8)}, {}),  # harder to learn, and learnt
    (P.value_loss_exploded, "absent", RUNS_OFF | {"rl.reward": 20 * np.exp(AT / 16)}, {}),  # as much as the returns grow
    (P.value_loss_exploded, "seen", {"rl.reward": 20 + ONE, "rl.len": 30 * ONE, "rl.loss_value": 4e7 * ONE}, {}),
    (
        P.value_loss_exploded,
        "absent",
        {"rl.reward": 20 + ONE, "rl.len": 30 * ONE, "rl.loss_value": 4e7 * ONE},
        {"config": {"reward_scale": 1000}},
    ),
    (L.reward_leaves_episode_length, "seen", SIGN, {}),
    (L.reward_leaves_episode_length, "seen", {"rl.len": LENGTH, "rl.reward": np.where(AT < 25, 3 - LENGTH, 3 - 2 * LENGTH)}, {}),
    (L.reward_leaves_episode_length, "absent", SIGN | {"rl.reward": LENGTH}, {}),
    (L.reward_leaves_episode_length, "absent", SIGN | {"rl.reward": np.where(AT == 25, 0, LENGTH)}, {}),  # one odd value
    (L.reward_leaves_episode_length, "cannot tell", SIGN | {"rl.reward": 50 * NOISE}, {}),
    (L.reward_leaves_episode_length, "cannot tell", {"rl.reward": LENGTH}, {}),
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES)
def test_what_updates_of_a_policy_come_to(
    look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]
) -> None:
    found = look(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize(("ends", "state"), [(1e-9, "absent"), (0.8, "seen"), (0.01, "seen")])
def test_a_policy_that_is_certain_runs_away_no_more(tmp_path: Path, ends: float, state: str) -> None:
    kl = [1.0] * 10 + [ends] * 20
    rows = [{"step": i, "train/approx_kl": k, "rollout/ep_rew_mean": -50 - i} for i, k in enumerate(kl, 1)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert P.policy_kl_ran_away(Symptoms(forensics.read(tmp_path), ())).state == state


@pytest.mark.parametrize(("beta", "reference", "state"), [(0.003, -1.2, "seen"), (0.1, -17.4, "absent"), (None, -17.4, "absent")])
def test_a_chosen_answer_is_held_against_its_reference(tmp_path: Path, beta: float | None, reference: float, state: str) -> None:
    """A small beta hides in rewards how far a policy went, and a log that begins after the first updates hides it, too."""
    drift = -17.9 - reference
    rows = [
        {"step": i, "loss": 0.68, "rewards/chosen": (beta or 0.1) * drift, "logps/chosen": -17.9 + 0.1 * math.sin(i)} for i in range(1, 31)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "config.json").write_text(json.dumps({"beta": beta, "lr": 1e-5} if beta else {"lr": 1e-5}))
    found = P.policy_kl_ran_away(Symptoms(forensics.read(tmp_path), ()))
    assert found.state == state, found.text


@pytest.mark.parametrize("look", sorted({c[0] for c in CASES}, key=lambda f: f.__name__))
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(40, np.nan), np.zeros(40)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    names = ("rl.kl", "rl.entropy", "rl.expl_var", "rl.loss_value", "rl.reward", "rl.len", "rl.clipfrac")
    assert look(Symptoms(run_of(dict.fromkeys(names, x)), ())).state in ("absent", "cannot tell")


@pytest.mark.parametrize(
    ("config", "metrics", "state"),
    [
        ({"gamma": 1.02}, {"rl.reward": ONE}, "seen"),
        ({"discount_factor": "1.5"}, {"rl.reward": ONE}, "seen"),
        ({"gamma": 0.99}, {"rl.reward": ONE}, "absent"),
        ({"gamma": 1.0}, {"rl.reward": ONE}, "absent"),  # episodes that end need no discount
        ({"gamma": 2.0}, {"rl.reward": ONE}, "cannot tell"),  # a focal loss has one
        ({"gamma": 99}, {"rl.reward": ONE}, "cannot tell"),
        ({}, {"rl.reward": ONE}, "cannot tell"),
        ({"gamma": 1.02}, {"loss.train": ONE}, "cannot tell"),
    ],
)
def test_a_discount_above_one(config: dict[str, Any], metrics: dict[str, Any], state: str) -> None:
    assert L.discount_above_one(Symptoms(run_of(metrics, config=config), ())).state == state


@pytest.mark.parametrize(
    ("tag", "values", "state"),
    [
        ("rollout/ep_rew_mean", [8, 900, 5000, 9000, 11000], "seen"),
        ("rollout/ep_rew_mean", [8, 20, 60, 90, 110], "absent"),  # a discounted return of a long episode that pays late
        ("rollout/ep_rew_mean", [9000, 900, 60, 40, 30], "absent"),  # it comes down
        ("train/reward", [8, 900, 5000, 9000, 11000], "cannot tell"),  # of a step
    ],
)
def test_values_beyond_any_episode(tag: str, values: list[float], state: str, tmp_path: Path) -> None:
    q = np.interp(AT, np.linspace(0, N, len(values)), values)
    rows = [{"step": 250 * i, tag: 20 + 10 * math.sin(i), "train/q_mean": float(q[i]), "train/loss": 1.0} for i in range(N)]
    (tmp_path / "progress.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    found = L.values_beyond_any_episode(Symptoms(forensics.read(str(tmp_path)), ()))
    assert found.state == state, found.text
