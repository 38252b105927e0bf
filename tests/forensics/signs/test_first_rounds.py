"""Held-out samples that are ranked nearly perfectly by the first trees or updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.first_rounds import held_out_known_at_once
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

SURE, LEARNS = np.linspace(0.991, 0.999, 40), np.linspace(0.76, 0.999, 40)


@pytest.mark.parametrize(
    ("metrics", "more", "state"),
    [
        ({"other/valid auc": SURE}, {}, "seen"),
        ({"other/valid auc": np.minimum(0.975 + np.arange(40) / 1000, 0.99)}, {}, "seen"),  # a few trees later
        ({"other/valid auc": np.minimum(0.9 + np.arange(40) / 200, 0.99)}, {"interval": 2}, "absent"),
        ({"score.eval": SURE}, {}, "cannot tell"),  # no word says what it measures
        ({"other/valid ndcg@10": SURE}, {"interval": 5}, "seen"),
        ({"other/valid auc": LEARNS}, {}, "absent"),
        ({"other/train auc": SURE}, {}, "cannot tell"),
        ({"other/valid auc": SURE}, {"config": {"pretrained": True}}, "cannot tell"),
        ({"other/valid auc": SURE}, {"attempts": [0] * 20 + [1] * 20}, "cannot tell"),
        ({"other/valid auc": SURE}, {"steps": list(range(100, 4100, 100))}, "cannot tell"),  # a hundred updates teach
        ({"other/valid psnr": 30 * SURE}, {}, "cannot tell"),
    ],
)
def test_each_state(metrics: dict[str, Any], more: dict[str, Any], state: str) -> None:
    found = held_out_known_at_once(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text
