"""Short logs: what the eye sees as a jump between two values is found, noise and slow curves are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from forensics.detectors import divergence, level_shift, loss_spike
from forensics.spikes import jumps
from forensics.spikes.excursions import Floats
from tests.forensics.curves import run_of


def falling(n: int, sigma: float, seed: int = 0) -> Floats:
    """A loss that falls from 4.5 towards 2, as short logs do, with multiplicative noise."""
    noise = np.random.default_rng(seed).standard_normal(n)
    return np.asarray((2 + 2.5 / (1 + np.arange(n) / 3)) * np.exp(sigma * noise))


def pocket(x: Floats, at: int, values: int) -> Floats:
    out = x.copy()
    out[at : at + values] = 4.5 * x[at : at + values] / x[at : at + values].mean()
    return out


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "at", "values"), [(20, 9, 4), (30, 15, 5), (60, 25, 20), (60, 40, 4)])
def test_a_pocket_of_a_short_noisy_log_is_found_and_comes_back(n: int, at: int, values: int, seed: int) -> None:
    (f,) = [
        f
        for f in loss_spike.detect(run_of({"loss.train": pocket(falling(n, 0.04, seed), at, values)}, interval=10))
        if f.severity != "info"
    ]
    assert f.facts.start == 10 * at and f.facts.end is not None
    assert abs(f.facts.end - 10 * (at + values)) <= 20 and f.severity == "warning"


def test_a_flat_stretch_of_four_values_ends_at_once() -> None:
    (f,) = loss_spike.detect(run_of({"loss.train": pocket(falling(25, 0.03), 12, 4)}, interval=10))
    assert f.facts.falls_at == 160


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [20, 40, 70])
def test_a_level_that_stays_is_a_shift(n: int, seed: int) -> None:
    x = falling(n, 0.02, seed)
    x[n // 2 :] *= 1.4
    (f,) = level_shift.detect(run_of({"loss.train": x}))
    assert f.facts.step == n // 2 and f.facts.stays and f.severity == "warning"
    assert 0.15 < f.facts.size < 0.45  # what the curve falls meanwhile is taken off


@pytest.mark.parametrize("noise", ["white", "heavy", "slow", "waves"])
@pytest.mark.parametrize("n", [20, 60, 200])
def test_short_healthy_curves_have_no_jump(noise: str, n: int) -> None:
    rng = np.random.default_rng(0)
    curve = np.log(2 + 2.5 / (1 + np.arange(n) / 3))
    found = sum(bool(jumps.jumps(curve + 0.05 * NOISES[noise](rng, n))) for _ in range(200))
    assert found <= 2  # of 200


def _slow(rng: np.random.Generator, n: int) -> Floats:
    z = rng.standard_normal(n)
    for i in range(1, n):
        z[i] += 0.6 * z[i - 1]
    return z


NOISES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "white": lambda rng, n: rng.standard_normal(n),
    "heavy": lambda rng, n: rng.standard_t(3, n),
    "slow": _slow,
    "waves": lambda rng, n: rng.standard_normal(n) + 2 * np.sin(np.arange(n) / 3),
}


def test_a_climb_is_a_divergence_and_no_jump() -> None:
    x = np.concatenate([np.linspace(4.4, 3.4, 8), 3.4 + 0.7 * (1 - np.exp(-np.arange(60) / 6))])
    x *= np.exp(0.003 * np.random.default_rng(0).standard_normal(len(x)))
    run = run_of({"loss.train": x})
    (f,) = divergence.detect(run)
    assert 4 <= f.facts.start <= 18 and f.severity == "critical"
    assert all(s.facts.why == "divergence" for s in loss_spike.detect(run))


@pytest.mark.parametrize("seed", range(10))
def test_a_short_noisy_run_that_learns_does_not_diverge(seed: int) -> None:
    for n in (15, 30, 80):
        assert list(divergence.detect(run_of({"loss.train": falling(n, 0.15, seed)}))) == []


def test_near_zero_a_large_share_is_a_trifle() -> None:
    x = 3 * np.exp(-np.arange(80) / 4) + 1e-3
    x *= np.exp(0.05 * np.random.default_rng(0).standard_normal(80))
    x[60:66] *= 8
    found = list(loss_spike.detect(run_of({"loss.train": x}, interval=5)))
    assert found and {f.severity for f in found} == {"info"}
