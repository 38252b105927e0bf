"""Data that begin again with the first batch, told from few losses: and orders that come round by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.batches.first_batches import again
from forensics.detectors.repeated_data import detect
from forensics.spikes.excursions import Floats
from tests.forensics.curves import run_of
from tests.forensics.test_resume_data import course, restarted


def hardness(seed: int, n: int = 66, begin: int = 40, *, from_start: bool) -> Floats:
    fresh = np.random.default_rng(seed).standard_normal(n)
    return np.concatenate([fresh[:begin], fresh[: n - begin]]) if from_start else fresh


@pytest.mark.parametrize("interval", [1, 10])
@pytest.mark.parametrize("seed", range(5))
def test_few_values_tell_that_the_data_begin_again(interval: int, seed: int) -> None:
    values = course(hardness(seed, from_start=True), 0.01, seed)
    found = again(restarted(values, 40, interval), 1, 1)
    assert found is not None
    assert (found.what, found.offset, found.from_start, found.sure) == ("repeated", 40 * interval, True, False)


def test_a_first_attempt_may_log_a_step_more() -> None:
    """It logs before its first step, too, and the next attempt only behind its first interval."""
    values = course(hardness(2, from_start=True), 0.01, 2)
    run = run_of({"loss.train": np.delete(values, 40)}, attempts=[0] * 40 + [1] * 25, steps=[10 * i for i in range(66) if i != 40])
    assert [(f.facts.offset, f.facts.from_start) for f in detect(run)] == [(400, True)]


def test_fresh_data_do_not_agree_however_the_loss_falls_or_is_smoothed() -> None:
    alarms = 0
    for seed in range(600):
        values = course(hardness(seed, 90, 50, from_start=False), 0.01, seed + 1000)
        if seed % 3 == 1:
            values = np.convolve(values, 0.8 ** np.arange(30), mode="full")[: len(values)]
        if seed % 3 == 2:  # both begin with a decay, as after a restart without its optimizer
            values = values * (1 + np.exp(-(np.arange(90) % 50) / 3))
        alarms += again(restarted(values, 50), 1, 1) is not None
    assert alarms <= 2


def test_an_order_that_comes_round_by_itself_is_no_fault() -> None:
    epoch = np.random.default_rng(3).standard_normal(40)
    values = course(np.tile(epoch, 2), 0.01, 4)
    assert again(restarted(values, 40), 1, 1) is not None  # nothing says that an epoch ends there
    assert again(restarted(values, 40), 1, 1, epoch=40.0) is None
    thrice = course(np.tile(epoch[:20], 4), 0.01, 4)
    assert again(restarted(thrice, 40), 1, 1) is None  # the order of twenty steps repeats before the restart as well


def test_steps_done_again_with_their_own_batches_are_no_repetition() -> None:
    fresh = np.random.default_rng(7).standard_normal(60)
    values = course(np.concatenate([fresh[:40], fresh[20:]]), 0.01, 8)
    run = run_of({"loss.train": values}, attempts=[0] * 40 + [1] * 40, steps=[*range(40), *range(20, 60)])
    assert list(detect(run)) == []


def test_the_detector_names_the_first_batch() -> None:
    values = course(hardness(1, from_start=True), 0.01, 1)
    found = list(detect(run_of({"loss.train": values}, attempts=[0] * 40 + [1] * 26)))
    assert [f.facts.from_start for f in found] == [True]


def test_the_mean_of_an_epoch_is_of_no_batch() -> None:
    values = course(hardness(1, from_start=True), 0.01, 1)
    run = run_of({"loss.train": values, "epoch": np.arange(66.0)}, attempts=[0] * 40 + [1] * 26)
    assert list(detect(run)) == []


@pytest.mark.parametrize("few", [5, 2])
def test_too_few_values_say_nothing(few: int) -> None:
    values = course(hardness(1, 40 + few, from_start=True), 0.01, 1)
    assert again(restarted(values, 40), 1, 1) is None
