"""Signs of the course of the loss, and of where it begins and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.signs import loss_level, loss_shape
from forensics.signs.sign import Sign, Symptoms
from forensics.spikes.excursions import Floats
from tests.forensics.curves import noisy, run_of

T = np.arange(400)
FALLS = 1 + 2.5 * np.exp(-T / 60) * np.exp(0.02 * np.random.default_rng(1).standard_normal(400))
FLAT = noisy(400, 0.01)
RAMP = np.concatenate([np.linspace(1e-5, 1e-3, 40), np.full(360, 1e-3)])


def after(step: int, what: Callable[[Floats], Floats], x: Floats = FALLS) -> Floats:
    """The curve with its values from a step on changed."""
    return np.concatenate([x[:step], what(x[step:])])


CLIMBS = after(250, lambda x: x + np.linspace(0, 4, len(x)))
JUMPS = after(250, lambda x: x + 2 * np.exp(-np.arange(len(x)) / 400) + 0.3)
EARLY = np.concatenate([np.linspace(2, 5, 100), np.linspace(5, 1, 300)]) + 0.01 * np.sin(T)
LEVEL = noisy(600, 0.01) * np.where(np.arange(600) < 300, 1.0, 1.3)
WILD = after(250, lambda x: x * np.exp(0.7 * np.random.default_rng(2).standard_normal(len(x))), FLAT)
ZERO = after(250, np.zeros_like)
WITH_JUMP = ZERO.copy()
WITH_JUMP[248:250] = 40.0
CREEPS = np.linspace(2.30, 2.26, 400) + 1e-4 * np.sin(T)
SHORT = FALLS[:7]

CASES: list[tuple[Callable[[Symptoms], Sign], str, Floats, Mapping[str, Any]]] = [
    (loss_shape.loss_diverged, "seen", CLIMBS, {}),
    (loss_shape.loss_diverged, "absent", FALLS, {}),
    (loss_shape.loss_diverged, "cannot tell", SHORT, {}),
    (loss_shape.loss_came_back_late, "seen", EARLY, {}),
    (loss_shape.loss_came_back_late, "absent", FALLS, {}),
    (loss_shape.loss_came_back_late, "cannot tell", SHORT, {}),
    (loss_shape.loss_ends_above_start, "seen", CLIMBS, {}),
    (loss_shape.loss_ends_above_start, "absent", FLAT, {}),
    (loss_shape.loss_ends_above_start, "seen", np.array([1.8, 0.7, 0.3, 7.5, 11.0, 10.8, 10.8, 10.7]), {}),  # of eight epochs
    (loss_shape.loss_ends_above_start, "absent", np.array([1.8, 0.7, 0.3, 0.5, 0.9, 1.0, 1.1, 1.2]), {}),
    (loss_shape.loss_ends_above_start, "cannot tell", CLIMBS - 5, {}),  # below zero nothing says that a loss is to fall
    (loss_shape.loss_settles_elsewhere, "seen", JUMPS, {}),
    (loss_shape.loss_settles_elsewhere, "absent", CLIMBS, {}),
    (loss_shape.loss_settles_elsewhere, "cannot tell", FALLS, {}),
    (loss_shape.loss_level_stepped, "seen", LEVEL, {}),
    (loss_shape.loss_level_stepped, "absent", LEVEL[::-1], {}),
    (loss_shape.loss_level_stepped, "cannot tell", SHORT, {}),
    (loss_shape.loss_swings, "seen", WILD, {}),
    (loss_shape.loss_swings, "absent", FLAT, {}),
    (loss_shape.loss_swings, "cannot tell", FLAT - 2, {}),
    (loss_shape.loss_still_falling, "seen", np.linspace(3, 1, 400), {}),
    (loss_shape.loss_still_falling, "absent", FLAT, {}),
    (loss_shape.loss_still_falling, "cannot tell", SHORT, {}),
    (loss_level.loss_stuck, "seen", FLAT, {}),
    (loss_level.loss_stuck, "absent", FALLS, {}),
    (loss_level.loss_stuck, "cannot tell", FALLS[:4], {}),
    (loss_level.loss_stuck_at_chance, "seen", np.log(10) + 0.01 * np.sin(T), {"config": {"num_classes": 10}}),
    (loss_level.loss_stuck_at_chance, "absent", FLAT, {"config": {"num_classes": 1000}}),
    (loss_level.loss_stuck_at_chance, "cannot tell", FLAT, {}),
    (loss_level.loss_falls_slowly, "seen", CREEPS, {}),
    (loss_level.loss_falls_slowly, "absent", 2 + 0.01 * np.sin(T), {}),
    (loss_level.loss_falls_slowly, "cannot tell", FALLS, {}),
    (loss_level.loss_fell_little, "seen", FLAT, {}),
    (loss_level.loss_fell_little, "absent", FALLS, {}),
    (loss_level.loss_fell_little, "cannot tell", FALLS, {"steps": list(range(1000, 1400))}),
    (loss_level.loss_starts_above_chance, "seen", 10 * FALLS, {"config": {"vocab_size": 30}}),
    (loss_level.loss_starts_above_chance, "absent", FALLS, {"config": {"vocab_size": 33}}),
    (loss_level.loss_starts_above_chance, "cannot tell", FALLS, {}),
    (loss_level.loss_starts_beyond_any_weights, "seen", 1e6 * FALLS, {"config": {"vocab_size": 30}}),
    (loss_level.loss_starts_beyond_any_weights, "absent", 10 * FALLS, {"config": {"vocab_size": 30}}),
    (loss_level.loss_starts_beyond_any_weights, "cannot tell", FALLS, {"config": {"vocab_size": 33}}),
    (loss_level.loss_zero_throughout, "seen", np.zeros(100), {}),
    (loss_level.loss_zero_throughout, "absent", ZERO, {}),
    (loss_level.loss_zero_from_step, "seen", ZERO, {}),
    (loss_level.loss_zero_from_step, "absent", FALLS, {}),
]


def symptoms(x: Floats, **more: Any) -> Symptoms:
    metrics = {"loss.train": x} | more.pop("metrics", {})
    run = run_of(metrics, **more)
    return Symptoms(run, tuple(pipeline.detect(run)[0]))


@pytest.mark.parametrize(("sign", "state", "x", "more"), CASES, ids=lambda v: getattr(v, "__name__", v if isinstance(v, str) else ""))
def test_what_the_loss_shows(sign: Callable[[Symptoms], Sign], state: str, x: Floats, more: Mapping[str, Any]) -> None:
    found = sign(symptoms(x, **more))
    assert found.state == state, found.text
    assert found.text.endswith(".") and (state != "seen" or {"first", "last"} <= found.numbers.keys())


@pytest.mark.parametrize(("end", "state"), [(2.2, "absent"), (2.8, "seen")])
def test_an_evaluation_loss_may_rise_a_little(end: float, state: str) -> None:
    """Answers that are too sure cost more, though more of them are right."""
    s = Symptoms(run_of({"loss.eval": np.linspace(2.0, end, 20)}), ())
    assert loss_shape.loss_ends_above_start(s).state == state
    assert loss_shape.loss_ends_above_start(Symptoms(run_of({"loss.train": np.linspace(2.0, end, 20)}), ())).state == "seen"


def test_a_run_trained_well_before_its_trouble_only_where_the_rate_tells() -> None:
    assert loss_shape.trained_well_before(symptoms(CLIMBS, metrics={"lr": RAMP})).state == "seen"
    assert loss_shape.trained_well_before(symptoms(CLIMBS)).state == "cannot tell"
    assert loss_shape.trained_well_before(symptoms(FALLS, metrics={"lr": RAMP})).state == "cannot tell"
    late = np.linspace(1e-5, 1e-3, 400)
    assert loss_shape.trained_well_before(symptoms(CLIMBS, metrics={"lr": late})).state == "absent"


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(3, np.nan), np.full(200, np.nan), -FALLS], ids=str)
def test_odd_losses_break_nothing(x: Floats) -> None:
    s = symptoms(x)
    for sign in {c[0] for c in CASES} | {loss_shape.trained_well_before}:
        assert sign(s).text
