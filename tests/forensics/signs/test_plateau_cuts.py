"""A scheduler that cuts the rate where an evaluation stands still, or where it should not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.plateau_cuts import rate_cut_while_improving
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(30)
FALLS = 0.5 + 1.5 * np.exp(-T / 4)
STANDS = np.where(T < 8, FALLS, FALLS[8] + 0.01 * np.cos(T))
FAST, SLOW = 1e-3 * 0.1 ** np.minimum(T, 8), np.where(T < 12, 1e-3, np.where(T < 20, 1e-4, 1e-5))

LATE = 1e-3 * 0.5 ** (T // 3)  # below a hundredth at 21 of 30


def cuts(*steps: int) -> list[dict[str, Any]]:
    said = {"kind": "rate_cut", "text": "ReduceLROnPlateau reducing learning rate to 1e-4.", "level": "info", "source": "out", "at": 9}
    return [said | {"step": step} for step in steps]


@pytest.mark.parametrize(
    ("metrics", "told", "state"),
    [
        ({"loss.eval": FALLS, "lr": FAST}, cuts(0, 1, 2, 3), "seen"),
        ({"acc.eval": 1 - FALLS / 3, "lr": FAST}, cuts(0, 1, 2, 3), "seen"),
        ({"loss.eval": STANDS, "lr": SLOW}, cuts(12, 20), "absent"),
        (
            {"loss.eval": STANDS, "lr": np.where(T < 10, 1e-3, 1e-6)},
            cuts(9, 11),
            "absent",
        ),  # down to nothing, but of an evaluation that stands
        ({"loss.eval": FALLS, "acc.eval": 1 - FALLS / 3, "lr": LATE}, cuts(2, 5, 8, 11), "seen"),  # nothing stands still at any cut
        ({"loss.eval": FALLS, "acc.eval": 0.6 + 0 * T, "lr": LATE}, cuts(2, 5, 8, 11), "absent"),  # the hits may be what it watches
        ({"loss.eval": 0.5 + 0.001 * FALLS, "lr": LATE}, cuts(2, 5, 8, 11), "absent"),  # better by less than counts
        ({"loss.eval": FALLS, "lr": FAST}, cuts(3), "cannot tell"),
        ({"loss.eval": FALLS, "lr": FAST}, [], "cannot tell"),
        ({"loss.eval": FALLS}, cuts(0, 1, 2, 3), "cannot tell"),
    ],
)
def test_each_state(metrics: dict[str, Any], told: list[dict[str, Any]], state: str) -> None:
    found = rate_cut_while_improving(Symptoms(run_of(metrics, events=told), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")
