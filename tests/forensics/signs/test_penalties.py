"""A divergence that the loss rewards, one that begins absurd, and sound sums of terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs import penalties as P
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

AT = np.arange(40)
RECON = 40.0 - AT / 10
RUNS_OFF = 0.12 * np.exp(AT)
SOUND = 12 - 10 * np.exp(-AT / 10)

CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any]]] = [
    (P.penalty_rewarded, "seen", {"loss.train": RECON - 0.25 * RUNS_OFF, "other/recon": RECON, "other/kld": RUNS_OFF}),
    (
        P.penalty_rewarded,
        "seen",
        {"loss.train": np.round(RECON - RUNS_OFF, 4), "other/mse": RECON, "other/reg_loss": np.round(RUNS_OFF, 4)},
    ),
    (P.penalty_rewarded, "absent", {"loss.train": RECON + 0.25 * SOUND, "other/recon": RECON, "other/kld": SOUND}),
    (P.penalty_rewarded, "absent", {"loss.train": RECON - 2, "other/recon": RECON, "other/kld": 0 * SOUND + 2}),  # stays
    (
        P.penalty_rewarded,
        "cannot tell",
        {"loss.train": RECON - 0.01 * RUNS_OFF, "other/recon": RECON, "other/entropy": RUNS_OFF},
    ),  # a bonus
    (P.penalty_rewarded, "cannot tell", {"loss.train": RECON + AT / 40 * SOUND, "other/recon": RECON, "other/kld": SOUND}),  # annealed
    (P.penalty_rewarded, "cannot tell", {"loss.train": RECON - RUNS_OFF, "other/recon": RECON, "other/kld": RUNS_OFF, "rl.reward": RECON}),
    (P.penalty_rewarded, "cannot tell", {"loss.train": RECON}),
    (P.divergence_absurd_at_start, "seen", {"loss.train": 1e13 / (1 + AT), "other/kl": 1e13 / (1 + AT)}),
    (P.divergence_absurd_at_start, "absent", {"loss.train": RECON, "other/kl": 0.01 + SOUND}),
    (P.divergence_absurd_at_start, "absent", {"loss.train": RECON, "other/kl": RUNS_OFF}),  # later
    (P.divergence_absurd_at_start, "cannot tell", {"loss.train": 1e13 / (1 + AT)}),
]


@pytest.mark.parametrize(("look", "state", "metrics"), CASES)
def test_terms_beside_the_loss(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any]) -> None:
    found = look(Symptoms(run_of(metrics), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize("look", [P.penalty_rewarded, P.divergence_absurd_at_start])
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(40, np.nan), np.zeros(40)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    assert look(Symptoms(run_of({"loss.train": x, "other/kl": x, "other/recon": x}), ())).state in ("absent", "cannot tell")
