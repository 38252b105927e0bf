"""Returns that no environment of the name pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.policy_environments import return_beyond_environment
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(40)


@pytest.mark.parametrize(
    ("returns", "config", "state"),
    [
        (-1200 + 20 * T, {"env": "Pendulum-v1"}, "absent"),
        (100 * (-1200 + 20 * T), {"env": "Pendulum-v1"}, "seen"),
        (20.0 + 12 * T, {"env_id": "CartPole-v1"}, "absent"),
        (20.0 + 100 * T, {"env_id": "CartPole-v1"}, "seen"),
        (np.where(T == 9, 5000.0, 200.0), {"env_id": "CartPole-v1"}, "absent"),  # one odd value
        (20.0 + 100 * T, {"env_id": "LunarLander-v3"}, "cannot tell"),  # which has no bound
        (20.0 + 100 * T, {"env_id": "CartPole-v1", "eval.env": "Pendulum-v1"}, "cannot tell"),  # of two none is the one
        (20.0 + 100 * T, {}, "cannot tell"),
        (20.0 + 100 * T[:4], {"env_id": "CartPole-v1"}, "cannot tell"),
    ],
)
def test_returns_against_what_an_episode_can_pay(returns: Any, config: dict[str, Any], state: str) -> None:
    found = return_beyond_environment(Symptoms(run_of({"rl.reward": returns}, config=config), ()))
    assert found.state == state, found.text
