"""A value of a whole epoch that is printed with each step is one value; a loss that is printed coarsely is not."""

from __future__ import annotations

import numpy as np

from forensics.detectors import loss_spike
from forensics.run.inputs import loss_of
from forensics.run.series import series
from forensics.spikes.excursions import Floats
from tests.forensics.curves import run_of

EPOCHS, ROWS = 40, 28
MEANS = np.round(1.4 + np.exp(-np.arange(EPOCHS) / 8) + 0.005 * np.random.default_rng(3).standard_normal(EPOCHS), 2)


def judged(x: Floats) -> int:
    return len(loss_of(run_of({"loss.train": x})))


def test_each_epoch_counts_once_though_its_value_is_printed_with_every_step() -> None:
    bar = np.repeat(MEANS, ROWS)
    run = run_of({"loss.train": bar})
    assert EPOCHS - 3 <= len(loss_of(run)) <= EPOCHS + 1  # the last ones may be equal, and then nothing tells how many they are
    assert loss_of(run).interval == ROWS
    assert [f for f in loss_spike.detect(run) if f.severity != "info"] == []
    whole = series(run, "loss.train")
    assert whole is not None and len(whole) == len(bar)  # the tables stay as logged


def test_a_loss_that_is_printed_coarsely_or_stands_is_as_it_is() -> None:
    rng = np.random.default_rng(4)
    coarse = np.round(0.02 + 0.002 * rng.standard_normal(EPOCHS * ROWS), 2)  # mostly 0.02
    flat = np.full(EPOCHS * ROWS, 1.5)
    steps = np.repeat(rng.uniform(1, 2, 12), rng.integers(20, 90, 12))  # of any length
    assert [judged(x) for x in (coarse, flat, steps)] == [len(coarse), len(flat), len(steps)]
