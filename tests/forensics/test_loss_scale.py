"""Overflows that a program counts up itself, in a log that shows every tenth scale."""

from __future__ import annotations

import numpy as np
import pytest
from curves import noisy, run_of

from forensics.detectors import loss_scale

N = 100
SLOW = 2.0**28 * 0.85 ** np.minimum(np.arange(N), 31)  # backs off a little at each overflow


@pytest.mark.parametrize(("skipped", "told"), [(np.minimum(np.arange(N) * 10, 310), [220]), (np.arange(N) // 30, [])])
def test_updates_that_the_program_counts_as_skipped(skipped: np.ndarray, told: list[int]) -> None:
    scale = SLOW if told else np.where(np.arange(N) % 30 < 15, 2.0**16, 2.0**15)
    run = run_of({"loss.train": noisy(N, 0.01), "loss_scale": scale, "skip.count": skipped.astype(float)}, interval=10)
    assert [f.facts.skipped for f in loss_scale.detect(run)] == told
