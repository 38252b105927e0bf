"""Losses that are another number at the same places of every epoch, and losses that are high there for a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.loss_by_place import loss_lifted_by_place
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

EPOCHS, PLACES = 8, 10
RNG = np.random.default_rng(5)
EPOCH = np.repeat(np.arange(EPOCHS, dtype=float), PLACES)
LOSS = np.exp(-EPOCH / 3) * np.exp(0.2 * RNG.standard_normal(len(EPOCH)))
HITS = np.clip(1 - LOSS / 3, 0, 1)
LAST = np.tile(np.arange(PLACES) >= PLACES - 2, EPOCHS)
SUMMED, HARDER = np.where(LAST, 32 * LOSS, LOSS), np.where(LAST, HITS / 4, HITS)


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"loss.train": SUMMED, "acc.train": HITS, "epoch": EPOCH}, "seen"),
        ({"loss.train": SUMMED, "acc.train": 100 * HITS, "epoch": EPOCH}, "seen"),
        ({"loss.train": SUMMED, "acc.train": HARDER, "epoch": EPOCH}, "absent"),  # samples that are missed, too
        ({"loss.train": np.where(LAST & (EPOCH == 3), SUMMED, LOSS), "acc.train": HITS, "epoch": EPOCH}, "absent"),  # once
        ({"loss.train": LOSS, "acc.train": HITS, "epoch": EPOCH}, "absent"),
        ({"loss.train": SUMMED, "epoch": EPOCH}, "cannot tell"),
        ({"loss.train": SUMMED, "acc.train": HITS}, "cannot tell"),
        ({"loss.train": SUMMED, "acc.train": HITS, "epoch": np.arange(80.0)}, "cannot tell"),  # one value an epoch
        ({"loss.train": SUMMED, "acc.train": np.ones(80), "epoch": EPOCH}, "cannot tell"),  # harder samples, learnt by heart
        ({"loss.train": -SUMMED, "acc.train": HITS, "epoch": EPOCH}, "cannot tell"),
    ],
)
def test_the_loss_of_some_places_alone(metrics: dict[str, Any], state: str) -> None:
    found = loss_lifted_by_place(Symptoms(run_of(metrics), ()))
    assert found.state == state, found.text
