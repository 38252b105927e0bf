"""Trees of which the first one knows already, and trees that learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.first_round import ranked_by_first_tree
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(100)
TREES = {"num_leaves": 15, "objective": "binary"}
GIVEN, LEARNT, EASY = 0.9955 + 0.001 * T / 100, 0.95 - 0.15 * np.exp(-T / 20), 1 - 0.005 * np.exp(-T / 20)


@pytest.mark.parametrize(
    ("auc", "config", "steps", "state"),
    [
        (GIVEN, TREES, T, "seen"),
        (LEARNT, TREES, T, "absent"),
        (EASY, TREES, T, "absent"),  # one tree knows nearly all, the others the rest
        (GIVEN, {"batch_size": 32, "num_leaves": 15}, T, "cannot tell"),
        (GIVEN, {"lr": 0.1}, T, "cannot tell"),
        (GIVEN, TREES, 5 * T + 5, "cannot tell"),  # five trees at first
        (GIVEN[:20], TREES, T[:20], "cannot tell"),
    ],
)
def test_what_the_first_tree_gave(auc: Any, config: dict[str, Any], steps: Any, state: str) -> None:
    run = run_of({"loss.train": 0.6 * 0.98 ** T[: len(auc)], "other/valid-auc": auc}, config=config, steps=steps)
    found = ranked_by_first_tree(Symptoms(run, ()))
    assert found.state == state, found.text
