"""Steps of a few percent: found, measured with an interval, and not seen where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import level_shift
from forensics.errors import CannotTell
from tests.forensics.curves import noisy, run_of


@pytest.mark.parametrize(("size", "way"), [(0.05, "up"), (-0.05, "down")])
def test_a_step_is_found_with_its_size(size: float, way: str) -> None:
    x = noisy(1000, 0.01)
    x[600:] *= 1 + size
    (f,) = level_shift.detect(run_of({"loss.train": x}))
    assert abs(f.facts.step - 600) <= 5
    assert f.facts.low < size < f.facts.high and f.facts.high - f.facts.low < 0.03
    assert way in f.title and f.severity == ("warning" if size > 0 else "info")


@pytest.mark.parametrize("sigma", [0.005, 0.03])
def test_half_of_the_smallest_effect_is_not_seen_and_twice_of_it_is(sigma: float) -> None:
    x = noisy(1500, sigma)
    effect = level_shift.smallest_effect(run_of({"loss.train": x}))
    share = float(effect.removeprefix("a step of ").split("%")[0]) / 100
    for factor, count in ((0.4, 0), (2.0, 1)):
        y = x.copy()
        y[800:] *= 1 + factor * share
        assert len(list(level_shift.detect(run_of({"loss.train": y})))) == count


@pytest.mark.parametrize("seed", range(8))
def test_falling_noisy_and_smoothed_curves_have_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1200
    x = np.exp(np.log(1 + 6 * (1 + np.arange(n) / 30) ** -0.6) + rng.choice([0.004, 0.03]) * rng.standard_normal(n))
    if seed % 2:
        for i in range(1, n):
            x[i] = 0.9 * x[i - 1] + 0.1 * x[i]
    assert list(level_shift.detect(run_of({"loss.train": x}))) == []


def test_a_spike_is_no_step() -> None:
    x = noisy(1000, 0.01)
    x[500:520] *= 1 + np.exp(-np.arange(20) / 5)
    assert list(level_shift.detect(run_of({"loss.train": x}))) == []


def test_a_step_at_a_restart_belongs_to_resume_break() -> None:
    x = noisy(1000, 0.01)
    x[600:] *= 1.05
    assert list(level_shift.detect(run_of({"loss.train": x}, attempts=[0] * 600 + [1] * 400))) == []


def test_a_short_log_cannot_tell() -> None:
    with pytest.raises(CannotTell):
        list(level_shift.detect(run_of({"loss.train": noisy(10, 0.01)})))


def saw(teeth: int, last: int) -> np.ndarray:
    """A loss that steps up by a sixth with each part of its data, and comes down again; the last step stays."""
    tooth = np.linspace(0.16, -0.02, 1500)
    x = 3 * np.exp(np.r_[np.zeros(1500), np.tile(tooth, teeth), np.full(last, 0.16)])
    return np.asarray(x * (1 + 0.06 * np.random.default_rng(3).standard_normal(len(x))))


@pytest.mark.parametrize(("teeth", "grave"), [(12, 0), (2, 1), (0, 1)])
def test_steps_that_the_loss_takes_back_are_of_its_data(teeth: int, grave: int) -> None:
    """One that it had no time to take back is not another kind, unless it is the only one."""
    found = [f for f in level_shift.detect(run_of({"loss.train": saw(teeth, 600)})) if f.facts.up]
    assert len(found) == teeth + 1
    assert [f.severity for f in found].count("warning") == grave
    assert [f.facts.stays for f in found].count(True) == grave
