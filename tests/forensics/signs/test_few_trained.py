"""A frozen body that never learnt, beside a head on one that did, adapters, and a model that trains whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs.few_trained import little_learnt_by_few
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(30)
CREEPS = 2.3 - 0.014 * T
LEARNS = 0.2 + 2.1 * np.exp(-T / 5)
FEW, PEFT, MOST = (
    "Trainable params: 650 || total params: 38,282",
    "trainable params: 650 || all params: 38,282 || trainable%: 1.7",
    "Trainable params: 37,632 || total params: 38,282",
)


@pytest.mark.parametrize(
    ("loss", "accuracy", "line", "config", "state"),
    [
        (CREEPS, 0.11 + 0.02 * T, FEW, {}, "seen"),
        (CREEPS, 11 + 2.0 * T, FEW, {}, "seen"),  # in per cent
        (LEARNS, 0.11 + 0.02 * T, FEW, {}, "absent"),  # a new head on features that were learnt before
        (np.r_[CREEPS[:10], np.full(20, 2.1)], 0.11 + 0.02 * T, FEW, {}, "absent"),  # it has learnt what it can
        (CREEPS, 0.55 + 0.01 * T, FEW, {}, "cannot tell"),  # it knew something at first
        (CREEPS, 0.11 + 0.02 * T, PEFT, {}, "cannot tell"),
        (CREEPS, 0.11 + 0.02 * T, FEW, {"freeze_backbone": True}, "cannot tell"),
        (CREEPS, 0.11 + 0.02 * T, MOST, {}, "cannot tell"),
        (CREEPS, None, FEW, {}, "cannot tell"),
    ],
)
def test_little_learnt_by_few(loss: Any, accuracy: Any, line: str, config: Mapping[str, Any], state: str) -> None:
    metrics = {"loss.train": loss} if accuracy is None else {"loss.train": loss, "acc.train": accuracy}
    event = {"step": 0, "kind": "start", "level": "info", "text": line, "source": "log.txt", "at": 1}
    found = little_learnt_by_few(Symptoms(run_of(metrics, config=config, events=[event]), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")
