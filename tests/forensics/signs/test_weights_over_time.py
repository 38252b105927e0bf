"""Weights that shrink while the loss stands, models that learn with small ones, and norms that leap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.pipeline import judge
from forensics.signs.sign import Symptoms
from forensics.signs.weights_over_time import weights_leap, weights_shrink, weights_stop_moving
from tests.forensics.curves import run_of

N = 60
T = np.arange(N)
SHRINKS = 3 + 5 * np.exp(-T / 8)
GROWS = 8 + np.sqrt(T) / 4
STANDS = 0.3 + np.exp(-T / 3) + 0.01 * np.random.default_rng(5).standard_normal(N)
FALLS = np.exp(-T / 25) + 0.1


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"param.norm": SHRINKS, "loss.train": STANDS}, {}, "seen"),
        ({"param.norm_layer": SHRINKS, "loss.train": STANDS}, {}, "seen"),
        ({"param.norm": SHRINKS, "loss.train": STANDS}, {"weight_decay": 0.5}, "seen"),
        ({"param.norm": GROWS, "loss.train": STANDS}, {}, "absent"),
        ({"param.norm": 0.8 * 8 + 0.2 * SHRINKS, "loss.train": STANDS}, {}, "absent"),
        ({"param.norm": SHRINKS, "loss.train": FALLS}, {}, "absent"),
        ({"param.norm": SHRINKS, "loss.train": np.exp(-T / 3) + 0.001}, {}, "absent"),  # learnt, and well with small weights
        ({"param.norm": SHRINKS, "loss.train": STANDS}, {"prune": True}, "cannot tell"),
        ({"param.norm": SHRINKS}, {}, "cannot tell"),
        ({"loss.train": STANDS}, {}, "cannot tell"),
        ({"param.norm": np.where(T > 30, np.nan, SHRINKS), "loss.train": STANDS}, {}, "cannot tell"),
    ],
)
def test_the_norm_of_all_weights(metrics: dict[str, Any], config: dict[str, Any], state: str) -> None:
    found = weights_shrink(Symptoms(run_of(metrics, interval=50, config=config), ()))
    assert found.state == state, found.text


@pytest.mark.parametrize(("norm", "harm"), [(SHRINKS, True), (GROWS, False)])
def test_it_is_a_symptom_of_its_own(norm: Any, harm: bool) -> None:
    case = judge(run_of({"loss.train": STANDS, "param.norm": norm}, interval=50))
    assert any(f.kind == "weights_shrink" and f.severity == "warning" for f in case.findings) == harm
    assert any(h.id == "weight_decay_too_strong" for h in case.hypotheses) == harm


@pytest.mark.parametrize(("loss", "accused"), [(STANDS, True), (1.77 + 0.002 * np.sin(T * T), False)], ids=["learnt first", "never learnt"])
def test_what_never_held_the_weights_is_no_match_for_any_decay(loss: Any, accused: bool) -> None:
    """Weights that no gradient holds shrink under an ordinary decay, too: that the loss stands from the first has another reason."""
    case = judge(run_of({"loss.train": loss, "param.norm": SHRINKS}, interval=50))
    assert any(h.id == "weight_decay_too_strong" for h in case.hypotheses) == accused


@pytest.mark.parametrize(
    ("decay", "norm", "told"),
    [(2.0, SHRINKS, True), (2.0, GROWS, False), (0.01, SHRINKS, False)],  # the setting and its effect; a setting alone; an effect alone
)
def test_a_decay_that_forgets_is_told_with_its_effect_on_the_weights(decay: float, norm: Any, told: bool) -> None:
    config = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": decay, "max_steps": 50 * N}
    case = judge(run_of({"loss.train": FALLS, "param.norm": norm, "lr": 1e-3 + 0 * T}, interval=50, config=config))
    assert any(f.kind == "weight_decay_strong" and f.severity == "warning" for f in case.findings) == told


LEAPS = GROWS + np.where(T >= 40, 30.0, 0.0)
CALM = 1 + 0.1 * np.random.default_rng(6).standard_normal(N)


@pytest.mark.parametrize(
    ("metrics", "attempts", "state"),
    [
        ({"param.norm": LEAPS, "loss.train": STANDS}, None, "seen"),
        ({"param.norm_layer": LEAPS, "loss.train": STANDS, "grad.norm": CALM}, None, "seen"),
        (
            {"param.norm": LEAPS, "loss.train": STANDS, "grad.norm": np.where(T == 40, 5000.0, CALM)},
            None,
            "absent",
        ),  # the gradient drove it
        ({"param.norm": LEAPS, "loss.train": STANDS, "lr": np.where(T >= 39, 1.0, 1e-4)}, None, "absent"),  # or the rate
        ({"param.norm": LEAPS, "loss.train": STANDS, "grad.norm": np.where(T == 40, 8.0, CALM)}, None, "seen"),  # not by that much
        ({"param.norm": GROWS, "loss.train": STANDS}, None, "absent"),
        ({"param.norm": GROWS + np.where(T >= 40, 0.1, 0.0), "loss.train": STANDS}, None, "absent"),  # small beside the norm
        ({"other/norm/encoder": LEAPS, "loss.train": STANDS}, None, "seen"),
        ({"other/norm/encoder": LEAPS + 40 * CALM, "loss.train": STANDS}, None, "absent"),  # of a batch's vectors: it scatters
        ({"other/norm/encoder": np.where(T == 40, LEAPS, GROWS), "loss.train": STANDS}, None, "absent"),  # and comes back
        (
            {"param.norm_layer": np.where(T < 40, 55.0 + 0.01 * T, np.inf), "loss.train": STANDS, "grad.norm": CALM},
            None,
            "seen",
        ),  # beyond all numbers
        (
            {"param.norm_layer": np.where(T < 40, 55.0 + 0.01 * T, np.inf), "loss.train": STANDS[:40]},
            None,
            "absent",
        ),  # the loss is none, either
        (
            {"param.norm_layer": np.where(T < 40, 255.0, np.inf), "loss.train": STANDS},
            None,
            "absent",
        ),  # its squares pass fp16's largest number
        ({"param.norm": LEAPS[38:43], "loss.train": STANDS[38:43]}, None, "cannot tell"),
        ({"loss.train": STANDS}, None, "cannot tell"),
    ],
)
def test_a_norm_that_leaps(metrics: dict[str, Any], attempts: Any, state: str) -> None:
    found = weights_leap(Symptoms(run_of(metrics, attempts=attempts), ()))
    assert found.state == state, found.text


def test_a_leap_speaks_for_the_hardware() -> None:
    case = judge(run_of({"loss.train": STANDS, "param.norm": LEAPS, "grad.norm": CALM}))
    assert case.verdict == "unhealthy" and any(f.kind == "weights_leap" and f.first_step == 40 for f in case.findings)
    assert any(h.id == "silent_data_corruption" for h in case.hypotheses)


STOPS = np.where(T < 30, 5 + 0.1 * T, 5 + 0.1 * 30) + 0.0123456


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"param.norm_layer": STOPS, "loss.train": STANDS}, {}, "seen"),
        ({"param.norm_layer": STOPS + 1e-5 * T, "loss.train": STANDS}, {}, "absent"),  # slower, and not still
        ({"param.norm_layer": STOPS, "loss.train": STANDS, "lr": np.where(T < 30, 1e-3, 0.0)}, {}, "absent"),  # the rate has come to rest
        ({"param.norm_layer": STOPS, "loss.train": np.where(T < 30, STANDS, 0.25)}, {}, "absent"),  # nothing goes on
        ({"param.norm_layer": STOPS, "loss.train": STANDS}, {"freeze_encoder": True}, "cannot tell"),
        ({"loss.train": STANDS}, {}, "cannot tell"),
    ],
)
def test_a_norm_that_stops_moving(metrics: dict[str, Any], config: dict[str, Any], state: str) -> None:
    assert weights_stop_moving(Symptoms(run_of(metrics, config=config), ())).state == state
