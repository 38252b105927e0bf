"""A first loss far too high: a warning where something says that it is the mean over tokens or classes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forensics.detectors import initial_loss
from tests.forensics.curves import run_of
from tests.forensics.curves_in_logs import run

T = np.arange(60)
LOSS = 3.0 + 17 * np.exp(-T / 3)
GPT = {"n_layer": 2, "n_head": 4, "n_embd": 64, "block_size": 64}


@pytest.mark.parametrize(
    ("config", "metrics", "severity"),
    [
        ({}, {}, "info"),
        (GPT, {}, "warning"),
        ({"n_head": 4, "seq_len": 64}, {}, "info"),  # of numbers in time, too
        ({"block_size": 64}, {}, "info"),
        ({}, {"acc.train": 1 - np.exp(-T / 9)}, "warning"),
        ({"loss.config.reduction": "sum_over_batch_size"}, {"acc.train": 1 - np.exp(-T / 9)}, "warning"),
        ({"reduction": "sum"}, {"acc.train": 1 - np.exp(-T / 9)}, "info"),
    ],
)
def test_a_first_loss_far_too_high(config: Any, metrics: Any, severity: str) -> None:
    (found,) = initial_loss.detect(run_of({"loss.train": LOSS, **metrics}, config=config))
    assert found.severity == severity


@pytest.mark.parametrize(("more", "severity"), [({}, "info"), ({"ppl": lambda i: 1000.0 / i}, "warning")])
def test_minus_the_log_likelihood_of_numbers_has_no_bound(tmp_path: Path, more: dict[str, Any], severity: str) -> None:
    """A flow's, of twelve numbers a row; with a perplexity beside it it is that of a token."""
    (found,) = initial_loss.detect(run(tmp_path, nll=lambda i: 3.0 + 20 * math.exp(-i / 10), **more))
    assert found.severity == severity
