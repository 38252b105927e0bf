"""Policies: what entropy, divergence, rewards, values and updates say of how they learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.signs import policies as P
from forensics.signs import policy_learning as PL
from forensics.signs import policy_rewards as PR
from forensics.signs import policy_updates as U
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(100)
FADES = np.exp(-T / 10)
ONE = np.ones(100)
GROWS = T / 10.0
SCALED = {
    "rl.loss_value": 9e7 * ONE,
    "rl.reward": 20 + GROWS,
    "rl.kl": 1e-6 * ONE,
    "rl.clipfrac": 0 * ONE,
    "rl.expl_var": 1e-5 * ONE,
}  # by 1000
MOVES = SCALED | {"rl.loss_value": 2e6 * ONE, "rl.kl": 0.002 * ONE, "rl.clipfrac": 0.016 * ONE}

CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES}, {}),
    (P.entropy_collapsed, "seen", {"rl.entropy": -0.7 * FADES}, {}),
    (P.entropy_collapsed, "seen", {"rl.entropy": -5e-8 * ONE}, {}),
    (P.entropy_collapsed, "absent", {"rl.entropy": 0.7 * ONE}, {}),
    (P.entropy_collapsed, "absent", {"rl.entropy": 0.7 * FADES, "rl.reward": np.minimum(0.2 + GROWS, 1.0)}, {}),  # every answer is right
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES, "rl.reward": 0.3 + 0.01 * np.sin(T)}, {}),
    (
        P.entropy_collapsed,
        "absent",
        {"rl.entropy": 0.7 * FADES, "rl.reward": -0.4 + 1.2 * np.minimum(GROWS / 2, 1.0)},
        {},
    ),  # it had won by then
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES, "rl.reward": -0.4 + 1.2 * GROWS}, {}),  # much came later
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES, "rl.reward": 0.8 - 1.2 * GROWS}, {}),  # and was lost
    (P.entropy_collapsed, "cannot tell", {"rl.entropy": 1 - GROWS}, {}),
    (P.entropy_collapsed, "cannot tell", {"rl.reward": GROWS}, {}),
    (P.policy_kl_ran_away, "seen", {"rl.kl": 20 * GROWS, "rl.reward": GROWS}, {}),
    (P.policy_kl_ran_away, "absent", {"rl.kl": 0.01 * ONE, "rl.reward": GROWS}, {}),
    (P.policy_kl_ran_away, "seen", {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE}, {}),  # to the policy before
    (P.policy_kl_ran_away, "absent", {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE, "tokens.seen": GROWS}, {}),
    (P.policy_kl_ran_away, "absent", {"rl.kl": 3 * ONE, "rl.reward": GROWS}, {}),
    (
        P.policy_kl_ran_away,
        "absent",
        {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE, "rl.clipfrac": 0.1 * ONE},
        {},
    ),  # no update's
    (P.policy_kl_ran_away, "seen", {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE, "rl.clipfrac": 0.8 * ONE}, {}),
    (P.policy_kl_ran_away, "cannot tell", {"rl.reward": GROWS}, {}),
    (P.value_loss_exploded, "seen", {"rl.loss_value": 10.0 ** (T / 20)}, {}),
    (P.value_loss_exploded, "absent", {"rl.loss_value": 2 * ONE}, {}),
    (P.value_loss_exploded, "absent", {"rl.loss_value": 10.0 ** (T / 20), "rl.reward": 50 * GROWS}, {}),  # up to 495, learning
    (P.value_loss_exploded, "seen", {"rl.loss_value": 10.0 ** (T / 20), "rl.reward": GROWS}, {}),
    (P.value_loss_exploded, "seen", {"rl.loss_value": 1e8 * ONE, "rl.reward": 9 * ONE, "rl.len": 200 * ONE}, {}),
    (P.value_loss_exploded, "absent", {"rl.loss_value": 1e6 * ONE, "rl.reward": 9 * ONE, "rl.len": 200 * ONE}, {}),  # 9 may be a step's
    (P.value_loss_exploded, "absent", {"rl.loss_value": 1e8 * ONE, "rl.reward": 9 * ONE}, {}),
    (P.value_loss_exploded, "cannot tell", {"rl.reward": GROWS}, {}),
    (PL.rewards_scaled_up, "seen", {"rl.reward": GROWS}, {"config": {"reward_scale": 100}}),
    (PL.rewards_scaled_up, "absent", {"rl.reward": GROWS}, {"config": {"reward_scale": 1}}),
    (PL.rewards_scaled_up, "seen", {"rl.reward": GROWS}, {"config": {"reward_per_tick": 250.0}}),
    (PL.rewards_scaled_up, "absent", {"rl.reward": GROWS}, {"config": {"healthy_reward": 1.0}}),
    (PL.rewards_scaled_up, "cannot tell", {"rl.reward": GROWS}, {}),
    (PR.reward_steps_to_other_scale, "cannot tell", SCALED | {"rl.len": 20 + GROWS}, {}),
    (PR.reward_fell, "seen", {"rl.reward": np.where(T < 60, GROWS, -3)}, {}),
    (PR.reward_fell, "absent", {"rl.reward": GROWS}, {}),
    (PR.reward_fell, "seen", {"rl.reward": np.where(T < 60, T % 5 > 0, 0)}, {}),  # hits that are all lost
    (
        PR.reward_fell,
        "absent",
        {"rl.reward": 1.0 + np.where(T < 60, T % 3 > 0, T % 5 < 2)},
        {},
    ),  # counted in ones: a median moves by a whole one
    (PR.evaluated_return_falls_behind, "cannot tell", {"rl.reward": GROWS}, {}),
    (PR.reward_fell, "cannot tell", {"loss.train": FADES}, {}),
    (PR.reward_fell, "cannot tell", {"loss.train": FADES, "pref.margin": GROWS, "rl.reward": np.where(T < 60, GROWS, -3)}, {}),
    (PR.reward_steps_to_other_scale, "seen", {"rl.reward": np.where(T < 60, 9, -9.2), "rl.len": 20 * ONE}, {}),
    (PR.reward_steps_to_other_scale, "seen", {"rl.reward": np.where(T < 60, 1.0, 10.0), "rl.len": 20 * ONE}, {}),
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": np.where(T < 60, 9, -9.2), "rl.len": np.where(T < 60, 90, 9)}, {}),
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": GROWS, "rl.len": 20 * ONE}, {}),
    (
        PR.reward_steps_to_other_scale,
        "absent",
        {"rl.reward": np.where(T < 8, 3, 19 + T / 5), "rl.len": 20 * ONE},
        {},
    ),  # and goes on climbing
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": np.where(T % 11 < 5, -9, 9), "rl.len": 20 * ONE}, {}),  # lost or won
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": 4 - 12 * np.exp(-T / 3), "rl.len": 20 * ONE}, {}),  # learnt at once
    (
        PR.reward_steps_to_other_scale,
        "seen",
        {"rl.reward": np.where(T < 60, 1.0, 10.0), "rl.len": 20 * ONE, "rl.reward_std": np.where(T < 60, 0.3, 3.0)},
        {},
    ),
    (
        PR.reward_steps_to_other_scale,
        "absent",
        {"rl.reward": np.where(T < 60, 0.1, 0.95), "rl.len": 20 * ONE, "rl.reward_std": np.where(T < 60, 0.3, 0.1)},
        {},
    ),
    (PR.reward_steps_to_other_scale, "cannot tell", {"rl.reward": GROWS}, {}),
    (PR.reward_steps_to_other_scale, "cannot tell", {"loss.train": FADES}, {}),
    (PR.reward_never_rose, "seen", {"rl.reward": ONE}, {}),
    (PR.reward_never_rose, "absent", {"rl.reward": GROWS}, {}),
    (PR.reward_never_rose, "cannot tell", {"loss.train": FADES}, {}),
    (U.entropy_penalized, "seen", {"rl.entropy": -0.7 * ONE + 0.005 * T}, {"config": {"ent_coef": -0.4}}),
    (U.entropy_penalized, "seen", {"rl.entropy": 1 - GROWS}, {"config": {"entropy_coeff": -0.01}}),  # of continuous actions
    (U.entropy_penalized, "seen", {"rl.entropy": 0.7 * FADES}, {"config": {"ent": -0.4}}),
    (U.entropy_penalized, "absent", {"rl.entropy": 0.03 * T - 1}, {"config": {"ent": -0.4}}),  # it rises
    (U.entropy_below_target, "seen", {"rl.entropy": -8 * ONE + 0.005 * T}, {"config": {"target_entropy": -1.0}}),
    (U.entropy_below_target, "absent", {"rl.entropy": -1.3 * ONE}, {"config": {"target_entropy": -1.0}}),
    (U.entropy_below_target, "absent", {"rl.entropy": -8 + 0.15 * T}, {"config": {"target_entropy": -1.0}}),  # it comes nearer
    (U.entropy_below_target, "cannot tell", {"rl.entropy": -8 * ONE}, {"config": {"target_entropy": "auto"}}),
    (U.entropy_penalized, "absent", {"rl.entropy": -0.7 * ONE + 0.005 * T}, {"config": {"ent_coef": 0.01}}),  # a task that is solved
    (U.entropy_penalized, "absent", {"rl.entropy": -0.7 * ONE}, {"config": {"ent_coef": -1e-6}}),
    (U.entropy_penalized, "cannot tell", {"rl.entropy": -0.7 * ONE}, {"config": {"ent_coef": "auto"}}),
    (U.entropy_penalized, "cannot tell", {"rl.reward": GROWS}, {"config": {"ent_coef": -0.4}}),
    (U.value_loss_dwarfs_return, "seen", SCALED, {}),
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.reward": -1400 - GROWS * 100, "rl.loss_value": 1e5 * ONE}, {}),  # large by nature
    (U.value_loss_dwarfs_return, "cannot tell", SCALED | {"rl.reward": 0 * ONE}, {}),  # nothing was ever paid
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.loss_value": 0.01 * ONE}, {}),  # rewards are normalized
    (
        U.value_loss_dwarfs_return,
        "absent",
        SCALED | {"rl.loss_value": 1e6 * ONE, "rl.kl": 0.005 * ONE, "rl.clipfrac": 0.1 * ONE},
        {},
    ),  # the loss is a sum over the batch
    (U.value_loss_dwarfs_return, "seen", MOVES | {"rl.loss_value": 9e8 * ONE, "rl.expl_var": 1e-6 * ONE}, {}),  # more than any sum
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_value": 9e8 * ONE, "rl.expl_var": 0.4 * ONE}, {}),
    (U.value_loss_dwarfs_return, "seen", MOVES | {"rl.loss_policy": -2100 * ONE}, {}),
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -0.02 * ONE}, {}),  # advantages are normalized
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -20 * ONE}, {}),  # advantages of the size of the returns
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -2100 * ONE, "rl.reward": 3000 * ONE}, {}),  # large by nature
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -2100 * ONE, "rl.expl_var": 0.8 * ONE}, {}),
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.expl_var": 0.8 * ONE}, {}),
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.loss_value": 10.0 ** (T / 10)}, {}),  # it explodes
    (U.value_loss_dwarfs_return, "cannot tell", {"rl.loss_value": 9e7 * ONE, "rl.reward": 20 + GROWS}, {}),
    (U.value_loss_dwarfs_return, "cannot tell", {"rl.loss_value": 9e7 * ONE}, {}),
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    found = look(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


def test_a_fall_is_placed() -> None:
    fell = PR.reward_fell(Symptoms(run_of({"rl.reward": np.where(T < 60, GROWS, -3)}), ()))
    assert fell.numbers["first"] == pytest.approx(60, abs=2)


NAMES = ("rl.entropy", "rl.kl", "rl.loss_value", "rl.reward", "loss.train")


@pytest.mark.parametrize("look", sorted({c[0] for c in CASES}, key=lambda f: f.__name__), ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    assert look(Symptoms(run_of(dict.fromkeys(NAMES, x)), ())).state in ("absent", "cannot tell", "seen")


@pytest.mark.parametrize(
    ("trained", "evaluated", "state"),
    [
        (GROWS, GROWS + np.where(T < 60, 3.0, -3.0), "seen"),
        (GROWS, GROWS + np.where(T < 60, 3.0, -0.3), "absent"),  # training caught up
        (GROWS, GROWS + 3.0, "absent"),
        (np.where(T < 60, GROWS, -3.0), np.where(T < 60, GROWS + 3.0, -9.0), "absent"),  # both got worse
        (GROWS, GROWS + np.where(T < 110, 3.0, -3.0), "absent"),  # one evaluation
    ],
)
def test_an_evaluation_that_leaves_what_is_trained(trained: Any, evaluated: Any, state: str) -> None:
    """The returns of training at each step, those of the evaluation at each tenth."""
    run = run_of({"rl.reward": trained, "loss.aux": FADES})
    rows = run.tables["metrics"].to_pylist()
    held = [
        row | {"tag": "eval/mean_reward", "value": float(evaluated[row["step"]])}
        for row in rows
        if row["name"] == "rl.reward" and row["step"] % 10 == 9
    ]
    run.tables["metrics"] = pa.Table.from_pylist([*rows, *held], run.tables["metrics"].schema)
    found = PR.evaluated_return_falls_behind(Symptoms(run, ()))
    assert found.state == state, found.text
    console = [row | {"tag": "eval return", "step": row["step"] // 10} for row in held]  # which counts otherwise, and comes first
    run.tables["metrics"] = pa.Table.from_pylist([*rows, *console, *held], run.tables["metrics"].schema)
    run.cache.clear()
    assert PR.evaluated_return_falls_behind(Symptoms(run, ())).state == state
