"""A rate in force that config did not ask for, beside rates that are scaled on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs.rate_in_force import rate_above_configured
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

PATH = np.minimum(np.arange(100) / 10, 1) * np.linspace(1, 0.1, 100)


@pytest.mark.parametrize(
    ("times", "config", "state"),
    [
        (6, {"lr": 0.003, "warmup_steps": 10}, "seen"),
        (6, {"lr": 0.003, "warmup_iters": 10, "final_lr_fraction": 0.1}, "seen"),
        (6, {"lr": 0.003}, "cannot tell"),  # a cycle begins there
        (6, {"lr": 0.003, "warmup_steps": 50}, "cannot tell"),
        (1, {"lr": 0.003}, "absent"),
        (6, {"lr": 0.003, "head_lr": 0.018}, "absent"),  # of a group of its own
        (8, {"lr": 0.003, "warmup_steps": 10, "world_size": 8}, "cannot tell"),
        (4, {"lr": 0.003, "warmup_steps": 10, "batch_size": 1024}, "cannot tell"),  # for 256 samples
        (2, {"lr": 0.003, "warmup_steps": 10, "batch_size": 1024}, "cannot tell"),  # by the root
        (6, {"lr": 0.003, "warmup_steps": 10, "lr_mult": 6}, "cannot tell"),
        (6, {"lr": 0.003, "warmup_steps": 10, "scheduler": "noam"}, "cannot tell"),
        (6, {"lr": 0.003, "warmup_steps": 10, "sched": "sgdr"}, "cannot tell"),
        (6, {}, "cannot tell"),
    ],
)
def test_a_rate_above_the_configured_one(times: float, config: Mapping[str, Any], state: str) -> None:
    rate = 0.003 * times * PATH / PATH.max()
    found = rate_above_configured(Symptoms(run_of({"lr": rate, "loss.train": np.ones(100)}, config=config), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


def test_a_run_that_learns_is_left_alone() -> None:
    metrics = {"lr": 0.018 * PATH / PATH.max(), "loss.train": 0.2 + 4 * np.exp(-np.arange(100) / 10)}
    assert rate_above_configured(Symptoms(run_of(metrics, config={"lr": 0.003, "warmup_steps": 10}), ())).state == "absent"
