"""A loss that begins to swing, and one that freezes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.detectors import oscillation, zero_loss
from forensics.errors import CannotTell
from forensics.run.robust import last_digit
from tests.forensics.curves import noisy, run_of


def test_wild_swings_are_found_where_they_begin() -> None:
    x = noisy(600, 0.02)
    x[300:] *= np.exp(0.6 * np.random.default_rng(2).standard_normal(300))
    (f,) = oscillation.detect(run_of({"loss.train": x}))
    assert f.facts.kind == "wild" and f.severity == "warning" and f.facts.to_end
    assert 280 <= f.facts.start <= 345
    assert f.facts.swing == pytest.approx(0.5, abs=0.25) and f.facts.ratio > 10


def test_a_loss_near_zero_is_naturally_noisy() -> None:
    t = np.arange(1000)
    rng = np.random.default_rng(0)
    x = 2 * np.exp(-t / 60) + np.abs(0.02 * rng.standard_normal(1000))
    assert list(oscillation.detect(run_of({"loss.train": x}))) == []


def test_steady_noise_however_large_is_no_oscillation() -> None:
    assert list(oscillation.detect(run_of({"loss.train": noisy(800, 0.3)}))) == []


def test_one_spike_is_no_oscillation() -> None:
    x = noisy(600, 0.01)
    x[300:310] *= 5
    assert list(oscillation.detect(run_of({"loss.train": x}))) == []


def test_a_loss_that_freezes() -> None:
    x = noisy(400, 0.02)
    x[250:] = 2.302585
    (f,) = oscillation.detect(run_of({"loss.train": x}))
    assert (f.facts.kind, f.facts.start, f.facts.count) == ("frozen", 250, 150)


def test_rounded_values_and_zeros_are_not_frozen() -> None:
    x = np.round(noisy(400, 0.001), 2)
    assert list(oscillation.detect(run_of({"loss.train": x}))) == []
    x = noisy(400, 0.02)
    x[200:] = 0.0  # zero_loss says that
    assert list(oscillation.detect(run_of({"loss.train": x}))) == []


def test_a_short_log_cannot_tell() -> None:
    with pytest.raises(CannotTell):
        list(oscillation.detect(run_of({"loss.train": noisy(100, 0.01)})))


@pytest.mark.parametrize(("level", "frozen"), [(0.0002, False), (0.4183, True)])
def test_a_value_of_few_printed_digits_is_not_frozen(level: float, frozen: bool) -> None:
    """Four decimals show 0.0002 again and again; a loss of 0.4183 that never moves in its last digit stands still."""
    x = np.round(np.concatenate([noisy(100, 0.02), np.full(100, level)]), 4)
    assert [f.facts.kind for f in oscillation.detect(run_of({"loss.train": x}))] == ["frozen"] * frozen


def test_a_loss_that_fell_to_the_last_printed_digit_is_not_exactly_zero() -> None:
    falls = np.maximum(np.round(0.1 * np.exp(-np.arange(300) / 20) * noisy(300, 0.1), 3), 0)
    with pytest.raises(CannotTell, match="last digit"):
        list(zero_loss.detect(run_of({"loss.train": falls})))
    (f,) = zero_loss.detect(run_of({"loss.train": np.where(np.arange(300) < 150, np.round(noisy(300, 0.1), 3), 0.0)}))
    assert f.facts.step == 150


@pytest.mark.parametrize(("held", "severity"), [(np.exp(-np.arange(100) / 30), "info"), (np.full(100, 0.7), "critical")])
def test_zeros_beside_an_evaluation_that_gets_better_are_the_logs(held: Any, severity: str) -> None:
    run = run_of({"loss.train": np.where(np.arange(100) < 2, 0.51234, 0.0), "loss.eval": held})
    assert [f.severity for f in zero_loss.detect(run)] == [severity]


@pytest.mark.parametrize(("x", "unit"), [([2.3456, 0.0002, np.nan], 1e-4), ([3.0, 20.0], 1.0), ([1 / 3, 2.0], 0.0)])
def test_the_last_printed_digit(x: list[float], unit: float) -> None:
    assert last_digit(np.array(x)) == pytest.approx(unit)


@pytest.mark.parametrize(("before", "frozen"), [(0.0001, False), (0.002, True)])
def test_a_loss_that_moved_by_less_than_is_printed_is_not_frozen(before: float, frozen: bool) -> None:
    """0.0121 after 0.0121 and 0.0122 is rounding; after 0.0100 and 0.0140 it stands still."""
    x = np.concatenate([0.0121 + np.tile([0.0, before], 50), np.full(100, 0.0121)])
    assert [f.facts.kind for f in oscillation.detect(run_of({"loss.train": np.round(x, 4)}))] == ["frozen"] * frozen


def test_a_loss_that_drops_by_a_few_last_digits_and_stands_is_not_frozen() -> None:
    x = np.r_[0.0032 - 1e-4 * (np.arange(100) % 5 == 0), 0.0030, 0.0028, np.full(40, 0.0027), np.full(20, 0.0025)]
    assert not list(oscillation.detect(run_of({"loss.train": np.round(x, 4)})))


@pytest.mark.parametrize(("recon", "held", "told"), [(0.0, 0.0, True), (0.0, 2.0, False), (1.5, 2.0, False)])
def test_a_reconstruction_term_that_is_zero_throughout_has_nothing_to_learn_from(recon: float, held: float, told: bool) -> None:
    """Every target is masked: what the loss falls by is its KL term."""
    kl = 0.7 * np.exp(-np.arange(100) / 10)
    run = run_of({"loss.train": recon + kl, "other/kl": kl, "other/recon": np.full(100, recon), "other/val/recon": np.full(100, held)})
    assert [f.title for f in zero_loss.detect(run)] == (["recon is exactly zero from step 0 on (100 of 100 values)"] if told else [])
