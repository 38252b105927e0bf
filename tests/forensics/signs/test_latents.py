"""A KL term that free bits hold up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.pipeline import judge
from forensics.signs.latents import free_bits_hold_kl
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(80)
REST = 60 + 60 * np.exp(-T / 20)
FREE = {"free_bits": 3.0, "latent_dim": 12}


@pytest.mark.parametrize(
    ("kl", "config", "state"),
    [
        (36 + 0.2 * np.sin(T), FREE, "seen"),
        (50 - 10 * np.exp(-T / 10), FREE, "absent"),  # well above the floor
        (1.2 + 0.01 * np.sin(T), {"free_bits": 0.1, "z_dim": 12}, "cannot tell"),  # a floor that holds up next to nothing
        (36 + 0.2 * np.sin(T), {"latent_dim": 12}, "cannot tell"),
        (None, FREE, "cannot tell"),
    ],
)
def test_the_floor_of_the_kl_term(kl: Any, config: dict[str, Any], state: str) -> None:
    metrics = {"loss.train": REST + (0 if kl is None else kl)} | ({} if kl is None else {"other/train/kl": kl, "other/train/recon": REST})
    found = free_bits_hold_kl(Symptoms(run_of(metrics, config=config), ()))
    assert found.state == state, found.text


def test_it_makes_the_run_unhealthy_by_itself() -> None:
    kl = 36 + 0.2 * np.sin(T)
    case = judge(run_of({"loss.train": REST + kl, "other/train/kl": kl, "other/train/recon": REST}, config=FREE))
    assert case.verdict == "unhealthy" and case.hypotheses[0].id == "regularization_floor"
