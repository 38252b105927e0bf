"""A stretch of data that is read in each pass, beside what else lifts a loss at even distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.detectors import loss_spike
from forensics.signs.bumps_each_pass import bumps_high_each_pass
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

T = np.arange(240)
BUMP = (T % 48 > 20) & (T % 48 < 26)
LOSS = noisy(240, 0.02)


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"loss.train": LOSS * np.where(BUMP, 5.0, 1.0)}, "seen"),
        ({"loss.train": LOSS * np.where(BUMP, 1.4, 1.0)}, "cannot tell"),  # regions of data that are not shuffled
        ({"loss.train": LOSS}, "cannot tell"),
        ({"loss.train": LOSS * np.where(np.isin(T // 6, [4, 9, 30]), 5.0, 1.0)}, "absent"),  # at no even distances
        ({"loss.train": LOSS * np.where(BUMP, 5.0, 1.0), "lr": 1e-3 * (1 - 0.95 * ((T + 27) % 48) / 48)}, "absent"),  # warm restarts
        ({"loss.train": LOSS * np.where(BUMP, 5.0, 1.0), "other/beta": np.where(BUMP, 1.0, 0.0)}, "cannot tell"),
    ],
)
def test_bumps_at_even_distances(metrics: dict[str, Any], state: str) -> None:
    run = run_of(metrics, interval=10)
    found = bumps_high_each_pass(Symptoms(run, tuple(loss_spike.detect(run))))
    assert found.state == state, found.text
