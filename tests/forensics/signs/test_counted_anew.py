"""What counts along with the data and begins anew at a restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.counted_anew import epochs_count_anew, samples_count_anew
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(400)
LOSS = 1 + 2 * np.exp(-T / 60) + 0.02 * np.random.default_rng(3).standard_normal(400)
ATTEMPTS = [0] * 200 + [1] * 200
ANEW = np.where(T < 200, T // 50, (T - 200) // 50).astype(float)
RESUMED = [{"kind": "resume", "text": "continue from update 200", "level": "info", "source": "out", "at": 9}]


@pytest.mark.parametrize(
    ("epoch", "more", "state"),
    [
        (ANEW, {"attempts": ATTEMPTS}, "seen"),
        (ANEW, {"events": RESUMED}, "seen"),
        (np.where(T < 200, T / 50, (T - 200) / 50), {"attempts": ATTEMPTS}, "seen"),
        (np.where(T < 200, T / 210, (T - 199) / 210), {"attempts": ATTEMPTS}, "seen"),  # all in the first pass
        (ANEW, {}, "cannot tell"),  # stages of one plan
        (ANEW, {"config": {"resume": "ckpt_01300.pkl"}}, "seen"),
        (ANEW, {"config": {"resume": True}}, "cannot tell"),
        (T // 50, {"attempts": ATTEMPTS}, "absent"),
        (np.where(T < 200, T / 50, T / 800), {"attempts": ATTEMPTS}, "absent"),  # a batch a sixteenth as large: epochs are longer now
        (np.where(T % 2, T // 50, 0), {"attempts": ATTEMPTS}, "cannot tell"),  # rows of another table in between
    ],
)
def test_epochs_that_are_counted_anew(epoch: Any, more: dict[str, Any], state: str) -> None:
    found = epochs_count_anew(Symptoms(run_of({"loss.train": LOSS, "epoch": np.asarray(epoch, float)}, **more), ()))
    assert found.state == state, found.text


SEEN = np.where(T < 200, 64.0 * (T + 1), 64.0 * (T - 199))


@pytest.mark.parametrize(
    ("metrics", "more", "state"),
    [
        ({"other/pos": SEEN}, {"attempts": ATTEMPTS}, "seen"),
        ({"other/samples seen": SEEN}, {"events": [RESUMED[0] | {"step": 200}]}, "seen"),
        ({"other/pos": 64.0 * (T + 1)}, {"attempts": ATTEMPTS}, "absent"),
        ({"other/pos": np.where(T < 200, 64.0 * (T + 1), 16.0 * (T + 601))}, {"attempts": ATTEMPTS}, "absent"),  # a smaller batch
        ({"other/pos": 64.0 * (T % 100 + 1)}, {"attempts": ATTEMPTS}, "absent"),  # a place within each epoch
        ({"other/pos": SEEN}, {}, "cannot tell"),
        ({"other/samples/s": SEEN}, {"attempts": ATTEMPTS}, "cannot tell"),  # a speed
        ({"other/entropy": SEEN}, {"attempts": ATTEMPTS}, "cannot tell"),
    ],
)
def test_samples_that_are_counted_anew(metrics: dict[str, Any], more: dict[str, Any], state: str) -> None:
    found = samples_count_anew(Symptoms(run_of({"loss.train": LOSS, **metrics}, **more), ()))
    assert found.state == state, found.text
