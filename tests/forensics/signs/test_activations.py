"""Units that are idle, told by shares of zeros and by shares of active ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.signs.activations import units_all_zero
from forensics.signs.gradients import units_dead
from forensics.signs.loss_level import loss_stuck
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

ONE = np.ones(60)
NOISE = np.random.default_rng(3).standard_normal(60)


@pytest.mark.parametrize(
    ("metrics", "zero", "dead"),
    [
        ({"act.zeros": ONE}, "seen", "seen"),
        ({"other/act/frac_active_h0": 0 * ONE}, "seen", "seen"),
        ({"other/relu1/share of alive units": 0.03 * ONE}, "absent", "seen"),
        ({"other/act/frac_active_h0": 0.5 * ONE}, "absent", "absent"),
        ({"other/relu_on/conv2": 0 * ONE}, "seen", "seen"),
        ({"other/relu_on/conv2": 0.4 * ONE}, "absent", "absent"),
        ({"other/act/frac_active_h0": 50 * ONE}, "cannot tell", "cannot tell"),  # per cent, or a count
        ({"act.active": 0 * ONE}, "seen", "cannot tell"),
        ({"act.active": np.append(0.01, 0 * ONE[1:])}, "cannot tell", "cannot tell"),  # a code may be sparse on purpose
        ({"act.active": 0.01 * ONE}, "absent", "cannot tell"),
        ({"act.zeros": 0.4 * ONE, "act.active": 0.6 * ONE}, "absent", "absent"),
        ({"other/sae/frac_active_features": 0.01 * ONE}, "cannot tell", "cannot tell"),  # sparse on purpose
        ({"other/moe/active_expert_fraction": 0.06 * ONE}, "cannot tell", "cannot tell"),
    ],
)
def test_shares_of_idle_units(metrics: Mapping[str, Any], zero: str, dead: str) -> None:
    run = run_of({"loss.train": 1 + 0.1 * NOISE, **metrics})
    s = Symptoms(run, tuple(pipeline.detect(run)[0]))
    assert (units_all_zero(s).state, units_dead(s).state) == (zero, dead)


def test_three_values_that_fall_by_chance_are_no_learning() -> None:
    level = 1 + 0.035 * np.random.default_rng(0).standard_normal(16)
    level[:3] = [1.05, 1.02, 0.99]
    fell = 1 + 0.002 * NOISE[:16]
    fell[:3] = [1.3, 1.15, 1.05]
    states = []
    for x in (level, fell):
        run = run_of({"loss.train": x})
        states.append(loss_stuck(Symptoms(run, tuple(pipeline.detect(run)[0]))).state)
    assert states == ["seen", "absent"]
