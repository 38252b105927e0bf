"""Answers of a batch that are right or wrong together, and those of samples that were drawn one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.batch_composition import batch_answers_alike, correlations
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

RNG = np.random.default_rng(3)
N, B = 100, 32
BY_CLASS = np.where(np.arange(N) % 10 == 0, 0.9, np.where(np.arange(N) % 10 == 7, 1.0, 0.0))
DRAWN = RNG.binomial(B, 0.2, N) / B
RISES = RNG.binomial(B, np.linspace(0, 1, N) ** 2, N) / B
AT_ONCE = np.where(np.arange(N) < 55, 0.0, 1.0)
LOW, HIGH = np.full(10, 0.17), np.full(10, 0.9)
CONFIG = {"batch_size": B}


@pytest.mark.parametrize(
    ("train", "held_out", "config", "state"),
    [
        (BY_CLASS, LOW, CONFIG, "seen"),
        (100 * BY_CLASS, 100 * LOW, CONFIG, "seen"),
        (BY_CLASS, HIGH, CONFIG, "absent"),  # batches by task, from which it learns
        (DRAWN, LOW, CONFIG, "absent"),
        (RISES, LOW, CONFIG, "absent"),
        (AT_ONCE, LOW, CONFIG, "absent"),
        (BY_CLASS, LOW, {}, "cannot tell"),
        (BY_CLASS, LOW, {"batch_size": 1}, "cannot tell"),
        (BY_CLASS[:20], LOW, CONFIG, "cannot tell"),
        (BY_CLASS, None, CONFIG, "cannot tell"),
        (None, LOW, CONFIG, "cannot tell"),
    ],
)
def test_answers_within_a_batch(train: Any, held_out: Any, config: dict[str, int], state: str) -> None:
    metrics = {name: x for name, x in (("acc.train", train), ("acc.eval", held_out)) if x is not None}
    run = run_of({"loss.train": np.linspace(2.3, 2.1, N), **metrics}, config=config)
    found = batch_answers_alike(Symptoms(run, ()))
    assert found.state == state, found.text


def test_a_policy_is_asked_nothing() -> None:
    run = run_of({"acc.train": BY_CLASS, "acc.eval": np.full(N, 0.1), "rl.reward": BY_CLASS}, config=CONFIG)
    assert not batch_answers_alike(Symptoms(run, ())).missing


def test_the_correlation_is_none_of_drawn_samples_and_one_of_samples_of_one_kind() -> None:
    drawn = RNG.binomial(B, 0.3, 20000) / B
    assert abs(np.mean(correlations(drawn, B))) < 0.01
    assert np.nanmean(correlations(np.where(RNG.random(20000) < 0.3, 1.0, 0.0), B)) > 0.95
