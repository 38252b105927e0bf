"""Embeddings that become one, and embeddings that only begin close to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs.representations import representations_alike
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

AT = np.arange(30)
ONE = np.ones(30)
FADES = np.exp(-AT / 5)


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"other/embed_std": 0.03 * FADES}, {}, "seen"),
        ({"other/train/features std": np.where(AT < 3, 0.1, 1e-3)}, {}, "seen"),
        ({"other/proj_std": 0.012 * ONE}, {"proj_dim": 32}, "seen"),  # collapsed before the first value
        ({"other/out_std": 0.009 + 0.027 * FADES, "loss.train": -1 + 0.3 * FADES}, {}, "seen"),  # the stop-gradient is missing
        ({"other/out_std": 0.177 * ONE, "loss.train": -0.91 + 0.9 * FADES}, {"dim": 32}, "absent"),  # late and good
        ({"other/embed_std": 0.177 - 0.14 * FADES}, {"proj_dim": 32}, "absent"),  # contrastive: begins close together
        ({"other/embed_std": 0.02 * ONE}, {"proj_dim": 2048}, "absent"),  # 1 / sqrt(2048)
        ({"other/output_std": 3.0 * ONE}, {"dim": 32}, "absent"),  # of another length than one
        ({"other/z_std": 0.05 + 0.074 * FADES, "loss.train": -0.9 + 0.85 * FADES, "acc.eval": 62 + 25 * FADES}, {"dim": 64}, "seen"),
        ({"other/z_std": 0.05 + 0.074 * FADES, "loss.train": -0.9 + 0.85 * FADES, "acc.eval": 94 - 25 * FADES}, {"dim": 64}, "absent"),
        ({"other/z_std": 0.124 * ONE, "loss.train": -0.9 + 0.85 * FADES, "acc.eval": 62 + 25 * FADES}, {"dim": 64}, "absent"),
        (
            {"other/z_std": FADES, "other/kl": 9 - 8 * FADES, "loss.train": 60 + 90 * FADES},
            {"dim": 16},
            "cannot tell",
        ),  # an autoencoder's noise
        ({"other/pixel_std": 0.4 * FADES}, {}, "cannot tell"),
        ({"other/item_cos_mean": 1 - 0.4 * FADES}, {}, "seen"),  # no negatives: one direction for all
        ({"other/item_cos_mean": 0.7 * ONE}, {}, "absent"),
        ({"other/pos_cos_mean": 1 - 0.4 * FADES}, {}, "cannot tell"),  # pairs that are to agree
        ({"loss.train": -1 + 0.3 * FADES}, {}, "cannot tell"),
    ],
)
def test_embeddings_that_become_one(metrics: Mapping[str, Any], config: Mapping[str, Any], state: str) -> None:
    found = representations_alike(Symptoms(run_of(metrics, config=config), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(x: Any) -> None:
    run = run_of({"other/embed_std": x, "loss.train": x}, config={"proj_dim": 32})
    assert representations_alike(Symptoms(run, ())).state in ("absent", "cannot tell", "seen")
