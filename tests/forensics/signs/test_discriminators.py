"""A discriminator's losses, scores and hits, the diversity of samples, and the rates of both players."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.pipeline import judge
from forensics.signs import discriminators as D
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

N = 60
AT = np.arange(N)
A, B = np.random.default_rng(1).standard_normal((2, N)) * 0.02
REAL, FAKE = 0.5 + A, 0.5 + B
LONG = np.arange(100)
FADES, ONE, GROWS = np.exp(-LONG / 10), np.ones(100), LONG / 10.0


def scores(real: Any, fake: Any) -> dict[str, Any]:
    return {"other/D(x)": real, "other/D(G(z))": fake, "other/Loss_D": -np.log(real) - np.log(1 - fake)}


def halves(real: Any, fake: Any) -> dict[str, Any]:
    return {"other/loss_D_real": -np.log(real), "other/loss_D_fake": -np.log(1 - fake)}


CASES: list[tuple[Callable[[Symptoms], Sign], str, dict[str, Any]]] = [
    (D.gan_trouble, "seen", scores(np.where(AT < 20, 0.999, 0.9), np.where(AT < 20, 0.001, 0.1))),  # for a third of the run
    (
        D.gan_trouble,
        "seen",
        {"other/d_loss": np.where(AT < 40, 0.7 + A, 50.0), "other/g_loss": np.where(AT < 40, 1.5 + B, 0.0)},
    ),  # is fooled
    (D.gan_trouble, "absent", {"other/d_loss": np.where(AT < 40, 0.7 + A, 50.0), "other/g_loss": 1.5 + B}),
    (D.gan_trouble, "seen", scores(0.95 + A / 10, np.where(AT < 10, 0.7, 0.98))),  # takes generated samples for real
    (D.gan_trouble, "absent", scores(0.95 + A / 10, np.where(AT < 40, 0.7, 0.98))),  # at the end alone
    (D.gan_trouble, "absent", scores(np.where(AT < 6, 0.999, 0.6), np.where(AT < 6, 0.001, 0.4))),  # ahead at first
    (D.gan_trouble, "seen", {"other/D(x)": 1 - FADES / 2, "other/D(G(z))": FADES / 2}),
    (D.gan_trouble, "seen", {"other/p_real": 1 - FADES / 2, "other/p_fake": FADES / 2}),
    (D.gan_trouble, "seen", {"other/loss_D": 1.4 * FADES}),
    (D.gan_trouble, "seen", {"other/critic_loss": 1.4 * FADES}),
    (D.gan_trouble, "seen", {"other/loss/d": 6e-4 * FADES, "other/loss/g": ONE}),  # won from the first logged value on
    (D.gan_trouble, "absent", {"other/D(x)": 0.7 * ONE, "other/D(G(z))": 0.3 * ONE}),
    (D.gan_trouble, "seen", {"other/D(x)": 0.97 * ONE, "other/D(G(z))": 0.03 * ONE}),
    (D.gan_trouble, "absent", {"other/D(x)": 0.97 * ONE, "other/D(G(z))": 0.2 * ONE}),
    (D.gan_trouble, "seen", {"other/D_real": 0.9 * ONE, "other/D_fake": 0.002 * ONE}),  # labels of real samples are smoothed
    (D.gan_trouble, "absent", {"other/D_real": 0.9 * ONE, "other/D_fake": 0.02 * ONE}),
    (D.gan_trouble, "absent", {"other/D_real": 0.7 * ONE, "other/D_fake": 0.002 * ONE}),
    (D.gan_trouble, "seen", {"other/D/acc_real": 0.97 * ONE, "other/D/acc_fake": 0.99 * ONE}),
    (D.gan_trouble, "seen", {"other/disc/acc_expert": 0.97 * ONE, "other/disc/acc_gen": 0.99 * ONE}),  # of imitation
    (D.gan_trouble, "absent", {"other/D/acc_real": 0.55 * ONE, "other/D/acc_fake": 0.99 * ONE}),
    (D.gan_trouble, "absent", {"other/D/acc_real": 1 - 0.5 * (LONG > 60), "other/D/acc_fake": ONE}),  # it was right at first
    (D.gan_trouble, "seen", {"other/errD0": 1.3 * ONE, "other/errD1": 100 * ONE, "other/g_loss0": ONE, "other/g_loss1": 0 * ONE}),
    (D.gan_trouble, "absent", {"other/errD0": 1.3 * ONE, "other/errD1": 100 * ONE, "other/g_loss0": 0 * ONE, "other/g_loss1": ONE}),
    (D.gan_trouble, "cannot tell", {"other/loss_D": -GROWS}),
    (D.gan_trouble, "seen", {"other/losses/l_d_real": 0.3 * FADES**2, "other/losses/l_d_fake": 0.3 * FADES**2}),
    (D.gan_trouble, "absent", {"other/losses/l_d_real": 0.3 * FADES**2, "other/losses/l_d_fake": 0.3 * ONE}),
    (D.gan_trouble, "cannot tell", {"loss.train": FADES}),
    (D.samples_alike, "seen", {"other/samples/diversity": FADES}),
    (D.samples_alike, "absent", {"other/samples/diversity": ONE}),
    (D.samples_alike, "cannot tell", {"loss.train": FADES}),
    (D.samples_alike, "seen", {"other/mode coverage": FADES}),
    (D.samples_alike, "cannot tell", {"other/val coverage80": FADES}),  # of intervals that a forecast gives
]


@pytest.mark.parametrize(("look", "state", "metrics"), CASES)
def test_a_discriminator_beside_its_scores(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any]) -> None:
    found = look(Symptoms(run_of(metrics), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize(
    ("config", "state"),
    [
        ({"lr_g": 1e-5, "lr_d": 5e-3}, "seen"),
        ({"generator_lr": 4e-3, "discriminator_lr": 4e-4}, "seen"),
        ({"g_lr": 1e-4, "d_lr": 4e-4}, "absent"),
        ({"lr": 1e-4}, "cannot tell"),
        ({"lr_g": "cosine", "lr_d": 1e-4}, "cannot tell"),
    ],
)
def test_rates_of_both_players(config: dict[str, Any], state: str) -> None:
    assert D.player_rates_apart(Symptoms(run_of(scores(REAL, FAKE), config=config), ())).state == state


@pytest.mark.parametrize("look", sorted({c[0] for c in CASES}, key=lambda f: f.__name__))
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    for names in (scores(REAL, FAKE), halves(REAL, FAKE)):
        metrics = dict.fromkeys([*names, "other/D(G(z)) (after)"], x)
        assert look(Symptoms(run_of(metrics), ())).state in ("absent", "cannot tell")


@pytest.mark.parametrize(
    ("metrics", "verdict"),
    [
        ({"loss.aux": 1.3 + A}, "healthy"),  # the discriminator's, which is no whole
        ({"loss.aux": 1.3 * np.exp(-AT / 5)}, "unhealthy"),
        ({"loss.aux": np.where(AT < 40, 1.3 + A, np.nan)}, "unhealthy"),
        ({"loss.aux": (1.3 + A) * np.where(AT < 40, 1, 200)}, "inconclusive"),  # it runs away, and what it is a loss of nobody knows
        ({"loss.aux": (1.3 + A)[:12]}, "inconclusive"),  # nothing watched it
        ({"other/content": 1.3 + A}, "inconclusive"),
    ],
)
def test_where_neither_player_wins_no_loss_has_to_stand_for_the_whole(metrics: Mapping[str, Any], verdict: str) -> None:
    run = run_of(metrics)
    rows = [r | {"tag": "Loss_D"} if r["name"] == "loss.aux" else r for r in run.tables["metrics"].to_pylist()]
    run.tables["metrics"] = pa.Table.from_pylist(rows, run.tables["metrics"].schema)
    assert judge(run).verdict == verdict
