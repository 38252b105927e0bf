"""Totals that are not set back, and losses that really rise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.detectors import divergence
from forensics.run.series import series
from forensics.signs.added_up_losses import loss_added_up
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

N, AT = 60, 30
LOSS = noisy(N, 0.03) * np.exp(-np.arange(N) / 80)
T = np.arange(N)


def added(x: Any, at: int) -> Any:
    return np.r_[x[:at], x[at - 1] + np.cumsum(x[at:])] if at else np.cumsum(x)


@pytest.mark.parametrize("at", [0, AT, 45])
def test_what_was_added_is_judged(at: int) -> None:
    run = run_of({"loss.train": added(LOSS, at)})
    found = loss_added_up(Symptoms(run, ()))
    assert (found.state, found.numbers.get("first")) == ("seen", max(at, 1)), found.text
    s = series(run, "loss.train")
    assert s is not None
    assert np.allclose(s.value, LOSS)
    assert list(divergence.detect(run)) == []


def set_back(x: Any, rows: int) -> Any:
    return np.concatenate([np.cumsum(part) for part in np.split(x, range(rows, len(x), rows))])


@pytest.mark.parametrize("rows", [5, 10, 16])
def test_a_total_that_is_set_back_now_and_then(rows: int) -> None:
    run = run_of({"loss.train": set_back(LOSS, rows)})
    found = loss_added_up(Symptoms(run, ()))
    assert found.state == "seen" and f"set back only every {rows} values" in found.text
    s = series(run, "loss.train")
    assert s is not None
    assert np.allclose(s.value, LOSS)


def test_a_total_whose_loss_halves_within_the_first_rounds() -> None:
    falls = LOSS * (1 + 2 * np.exp(-T / 10))
    run = run_of({"loss.train": set_back(falls, 10)})
    assert loss_added_up(Symptoms(run, ())).state == "seen"


@pytest.mark.parametrize(
    "loss",
    [
        LOSS,
        set_back(LOSS, 10) / (T % 10 + 1),  # a mean that begins anew
        LOSS + 0.4 * (T % 10),  # rises in every round, from its level on
        np.where(T < 30, set_back(LOSS, 10), LOSS),
        np.where(T < AT, LOSS, LOSS[AT] * 1.15 ** (T - AT)),  # runs away, ever faster
        np.where(T < AT, LOSS, LOSS[AT] + 8 * (1 - np.exp(-(T - AT) / 8)) + LOSS),  # and levels off
        np.where(T < AT, LOSS, LOSS + 0.4 * (T - AT)),  # in a straight line, by less than its level
        np.where(T < AT, LOSS, LOSS + 9 * (T - AT)),  # by more
        added(LOSS, 54),  # too short to tell
        T + 0.0,
        np.where(T < 50, added(LOSS, AT), np.nan),
    ],
)
def test_losses_that_really_rise(loss: Any) -> None:
    run = run_of({"loss.train": loss})
    assert loss_added_up(Symptoms(run, ())).state == "absent"
    s = series(run, "loss.train")
    assert s is not None
    assert np.array_equal(s.value, loss, equal_nan=True)


def test_few_values_cannot_tell() -> None:
    assert loss_added_up(Symptoms(run_of({"loss.train": LOSS[:8]}), ())).state == "cannot tell"
    assert loss_added_up(Symptoms(run_of({"loss.eval": LOSS}), ())).state == "cannot tell"
