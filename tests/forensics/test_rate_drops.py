"""Falls of the learning rate at once are told for information; other ways down are not."""

from __future__ import annotations

import numpy as np
import pytest
from curves import run_of

from forensics.detectors import lr_schedule

N = 300
WARM = np.linspace(1e-5, 1e-3, 50)
COSINE = 1e-3 * 0.5 * (1 + np.cos(np.pi * np.arange(N) / N))


def levels(*rates: float) -> np.ndarray:
    return np.repeat(rates, N // len(rates))


@pytest.mark.parametrize(
    ("rate", "at"),
    [(levels(1e-3, 1e-4, 1e-5), (100, 200)), (levels(1e-3, 5e-4), (150,)), (np.r_[WARM, levels(1e-3, 5e-5)], (200,))],
    ids=["tenths", "half", "after a warmup"],
)
def test_drops_are_told(rate: np.ndarray, at: tuple[int, ...]) -> None:
    (found,) = lr_schedule.detect(run_of({"lr": rate}))
    assert found.severity == "info" and found.facts.steps == at and (found.first_step, found.last_step) == (at[0], at[-1])


@pytest.mark.parametrize(
    "rate",
    [
        COSINE,
        1e-3 * 0.95 ** np.repeat(np.arange(30), 10),
        1e-3 * 0.5 ** np.repeat(np.arange(20), 10),
        levels(1e-3),
        np.r_[levels(1e-3), 0.0],
    ],
    ids=["cosine", "exponential", "many stairs", "constant", "zero at the end"],
)
def test_other_ways_down_are_none(rate: np.ndarray) -> None:
    assert not list(lr_schedule.detect(run_of({"lr": rate})))


def test_a_rate_that_comes_back_has_not_dropped() -> None:
    assert all(f.severity != "info" for f in lr_schedule.detect(run_of({"lr": np.r_[levels(1e-3), 1e-4, levels(1e-3)]})))
