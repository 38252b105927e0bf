"""Weights that leap from one logged value to the next, and what else makes a norm grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.pipeline import judge
from forensics.signs.sign import Symptoms
from forensics.signs.weights_leap import weights_leapt
from tests.forensics.curves import run_of

N = 40
T = np.arange(N)
GROWS = 12 + T / 20
LEAPS = np.where(T >= 20, 30 * GROWS, GROWS)
RATE = np.full(N, 0.002)
LOSS = 1 + 2 * np.exp(-T / 6) + 0.01 * np.random.default_rng(2).standard_normal(N)


@pytest.mark.parametrize(
    ("metrics", "more", "state"),
    [
        ({"param.norm": LEAPS}, {}, "seen"),
        ({"param.norm": LEAPS, "lr": RATE}, {}, "seen"),
        ({"other/train/param_absmax": LEAPS}, {}, "seen"),
        ({"other/weight_max": LEAPS}, {}, "seen"),
        ({"param.norm_layer": LEAPS}, {}, "seen"),
        ({"param.norm": GROWS}, {}, "absent"),
        ({"param.norm": LEAPS, "lr": np.where(T >= 20, 15.0, 1.0) * RATE}, {}, "absent"),  # the rate does it
        ({"param.norm": np.where(T == 20, 30.0, 1.0) * GROWS}, {}, "absent"),  # one value, back at once
        ({"param.norm": np.where(T >= 20, 2.0, 1.0) * GROWS}, {}, "absent"),
        ({"param.norm_layer": np.where(T >= 20, 5.0, 1.0) * GROWS}, {}, "absent"),  # a bias that begins near zero
        ({"param.norm": 0.01 * 1.5**T}, {}, "absent"),  # it grows all along
        ({"param.norm": np.where(T >= 4, 30.0, 1.0) * GROWS}, {}, "absent"),  # at the beginning
        ({"param.norm": np.where(T >= 20, 360.0, 12.0)}, {}, "absent"),  # what stood still is freed
        ({"param.norm": LEAPS}, {"attempts": [0] * 20 + [1] * 20}, "absent"),  # from another checkpoint
        ({"param.norm": LEAPS}, {"config": {"freeze_backbone": True}}, "cannot tell"),
        ({"other/attn_weight_max": LEAPS}, {}, "cannot tell"),  # no weights of the model
        ({"other/grad_param_max": LEAPS}, {}, "cannot tell"),
        ({"param.norm": LEAPS[:8]}, {}, "cannot tell"),
    ],
)
def test_a_leap_of_the_weights(metrics: dict[str, Any], more: dict[str, Any], state: str) -> None:
    found = weights_leapt(Symptoms(run_of(metrics, interval=50, **more), ()))
    assert found.state == state, found.text


@pytest.mark.parametrize(("norm", "harm"), [(LEAPS, True), (GROWS, False)])
def test_it_is_a_symptom_of_its_own(norm: Any, harm: bool) -> None:
    case = judge(run_of({"loss.train": LOSS, "param.norm": norm}, interval=50))
    assert any(f.kind == "weights_leapt" and f.severity == "warning" for f in case.findings) == harm
    assert any(h.id == "silent_data_corruption" for h in case.hypotheses) == harm
