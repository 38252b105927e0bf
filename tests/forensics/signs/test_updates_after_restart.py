"""An optimizer that begins anew at a restart, told by its updates: beside clean restarts and what makes updates larger for another reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.sign import Symptoms
from forensics.signs.updates_after_restart import updates_leap_at_restart
from tests.forensics.curves import noisy, run_of

N = 60
T = np.arange(2 * N)
BEHIND = np.maximum(T - N, 0)
NORM, RATE = noisy(2 * N, 0.05), np.full(2 * N, 1e-3)
UPDATE = 1e-3 * noisy(2 * N, 0.03, seed=1)
LEAPS = UPDATE * np.where(T >= N, 1 + 1.5 * np.exp(-BEHIND / 8), 1.0)
ATTEMPTS = [0] * N + [1] * N


@pytest.mark.parametrize(
    ("metrics", "attempts", "state"),
    [
        ({"upd.norm": LEAPS}, ATTEMPTS, "seen"),
        ({"upd.ratio": LEAPS}, ATTEMPTS, "seen"),
        ({"upd.norm": UPDATE}, ATTEMPTS, "absent"),
        (
            {"upd.norm": LEAPS, "lr": np.where(T >= N, 2.5e-3 * np.exp(-BEHIND / 8) + 1e-3, RATE)},
            ATTEMPTS,
            "absent",
        ),  # the rate is warmed up again
        ({"upd.norm": LEAPS, "grad.norm": NORM * LEAPS / UPDATE}, ATTEMPTS, "absent"),  # other data
        ({"upd.norm": np.where(T >= N, 2.0, 1.0) * UPDATE}, ATTEMPTS, "absent"),  # for good: another setting
        ({"upd.norm": LEAPS}, None, "cannot tell"),
        ({"upd.norm": LEAPS, "lr": 0 * RATE}, ATTEMPTS, "cannot tell"),
        ({}, ATTEMPTS, "cannot tell"),
    ],
)
def test_updates_behind_a_restart(metrics: dict[str, Any], attempts: list[int] | None, state: str) -> None:
    run = run_of({"loss.train": noisy(2 * N, 0.02, seed=2), "grad.norm": NORM, "lr": RATE, **metrics}, attempts=attempts)
    found = updates_leap_at_restart(Symptoms(run, ()))
    assert found.state == state, found.text
