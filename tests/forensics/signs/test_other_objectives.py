"""Signs of codes, experts and preferences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs import kl_weight as K
from forensics.signs import latents as L
from forensics.signs import other_objectives as O
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(100)
FADES = np.exp(-T / 10)
ONE = np.ones(100)
GROWS = T / 10.0
RIGHT = np.where(T < 50, 0.95, 0.05)

SELF = {"pref.margin": 0 * ONE, "loss.train": np.round(math.log(2) * ONE, 4)}
CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (O.experts_unbalanced, "seen", {"other/router_a/top_share": 0.3 * ONE, "other/router_b/top_share": 0.95 * ONE}, {}),
    (O.experts_unbalanced, "seen", {"other/maxload": 0.97 * ONE}, {}),
    (O.experts_unbalanced, "absent", {"other/router_a/top_share": 0.3 * ONE, "other/router_b/top_share": 0.25 * ONE}, {}),
    (O.experts_unbalanced, "seen", {f"other/load_{i}": x * ONE for i, x in enumerate((0.0, 0.5, 0.5, 0.0))}, {}),
    (O.experts_unbalanced, "absent", {f"other/load_{i}": x * ONE for i, x in enumerate((0.2, 0.3, 0.3, 0.2))}, {}),
    (O.experts_unbalanced, "seen", {"other/expert_load_max": 0.3 + 0.6 * T / 100}, {}),
    (O.experts_unbalanced, "absent", {"other/expert_load_max": 0.3 * ONE}, {}),
    (O.kl_term_vanished, "seen", {"other/kl_loss": 5 * FADES, "other/recon_loss": ONE}, {}),
    (O.kl_term_vanished, "absent", {"other/kl_loss": 5 * ONE}, {}),
    (O.kl_term_vanished, "cannot tell", {"other/kl_loss": 0 * ONE, "other/recon_loss": ONE}, {}),  # never switched on
    (O.kl_term_vanished, "cannot tell", {"other/kl_loss": 5 * FADES, "other/recon_loss": 0 * ONE}, {}),  # nothing to tell
    (O.kl_term_vanished, "absent", {"other/kl_loss": 0.05 * ONE, "other/recon_loss": 30 * ONE}, {}),  # an encoder that never learned
    (O.kl_term_vanished, "absent", {"other/kl_loss": 0.01 + 0.2 * FADES, "other/recon_loss": 0.1 * ONE}, {}),  # means over pixels
    (O.kl_term_vanished, "absent", {"other/kl_loss": 0.01 + 0.2 * FADES}, {}),
    (O.kl_term_vanished, "seen", {"other/train/kl": 0.01 + 0.2 * FADES, "other/train/recon": 30 * ONE}, {}),
    (O.kl_term_vanished, "seen", {"other/train/kl": 0.01 + 0.9 * FADES, "other/train/recon": 30 * ONE}, {}),  # told a bit once
    (O.kl_term_vanished, "seen", {"other/kl": 0.43 + 5 * FADES, "other/rec": 28 * ONE}, {}),
    (O.kl_term_vanished, "absent", {"other/kl": 1.2 + 20 * FADES, "other/rec": 28 * ONE}, {}),
    (O.kl_term_vanished, "absent", {"other/kl": 0.43 + 5 * FADES, "other/rec": 9 * ONE}, {}),
    (O.kl_term_vanished, "cannot tell", {"other/kl_loss": 5 * FADES, "rl.reward": GROWS}, {}),
    (O.experts_unbalanced, "seen", {f"other/moe/expert_{i}_load": (ONE if i else 9 * ONE) for i in range(8)}, {}),
    (O.experts_unbalanced, "absent", {f"other/moe/expert_{i}_load": ONE for i in range(8)}, {}),
    (
        O.experts_unbalanced,  # of two layers each is judged by itself
        "seen",
        {
            f"other/moe/load_l{k}/{i}": x * ONE
            for k in (0, 1)
            for i, x in enumerate((0.25, 0.25, 0.25, 0.25) if k else (0.88, 0.04, 0.04, 0.04))
        },
        {},
    ),
    (O.experts_unbalanced, "absent", {f"other/expert_load/{i}": x * ONE for i, x in enumerate((0.51, 0.3, 0.07, 0.12))}, {}),
    (O.experts_unbalanced, "seen", {f"other/load L0/{i}": x * ONE for i, x in enumerate((0.0, 0.0, 0.0, 1.0))}, {}),
    (O.experts_unbalanced, "cannot tell", {f"other/gpu_usage/{i}": x * ONE for i, x in enumerate((0.0, 0.0, 0.0, 1.0))}, {}),  # devices
    (O.experts_unbalanced, "cannot tell", {f"other/cpu_load/{i}": x * ONE for i, x in enumerate((0.0, 0.0, 0.0, 1.0))}, {}),
    (O.experts_unbalanced, "seen", {f"other/expert_load/{i}": x * ONE for i, x in enumerate((0.5, 0.0, 0.5, 0.0))}, {}),
    (O.experts_unbalanced, "seen", {"other/router/entropy": 2 * FADES}, {}),
    (O.experts_unbalanced, "seen", {"other/max expert load": np.clip(GROWS / 5, 0.2, 0.9)}, {}),
    (O.experts_unbalanced, "absent", {"other/max expert load": 0.2 * ONE}, {}),
    (O.experts_unbalanced, "seen", {"other/load_balancing_loss": 1 + GROWS}, {}),
    (O.experts_unbalanced, "seen", {"other/load_balancing_loss": 8 - 7 * (T == 0)}, {}),
    (O.experts_unbalanced, "absent", {"other/load_balancing_loss": 1.1 - 0.1 * (T == 0)}, {}),
    (O.experts_unbalanced, "cannot tell", {"loss.train": FADES}, {}),
    (O.accuracies_reversed, "seen", {"pref.acc": RIGHT}, {}),
    (O.accuracies_reversed, "absent", {"pref.acc": 0.9 * ONE}, {}),
    (O.accuracies_reversed, "seen", {"other/val c_index": np.where(T < 50, 0.7, 0.1), "loss.train": FADES}, {}),
    (
        O.accuracies_reversed,
        "cannot tell",
        {"other/val c_index": np.where(T < 50, 0.7, 0.0), "loss.train": np.where(T < 50, FADES, np.nan)},
        {},
    ),
    (O.accuracies_reversed, "cannot tell", {"loss.train": FADES}, {}),
    (
        O.accuracies_reversed,
        "seen",
        {"other/eval_rewards/accuracies": np.array([0.39, 0.25, 0.2, 0.2])},
        {},
    ),  # of pairs that are the wrong way round
    (O.accuracies_reversed, "cannot tell", {"other/eval_rewards/accuracies": np.array([0.39, 0.25, 0.4, 0.45])}, {}),
    (O.accuracies_reversed, "cannot tell", {"other/eval_rewards/accuracies": np.array([0.2, 0.2, 0.2])}, {}),
    (
        O.accuracies_reversed,  # the reference is the policy
        "absent",
        {"other/eval_rewards/accuracies": 0 * ONE, "pref.margin": 0 * ONE, "loss.train": np.round(math.log(2) * ONE, 4)},
        {},
    ),
    (O.experts_unbalanced, "seen", {"other/busiest/0": 1 - 0.7 * FADES}, {}),
    (O.experts_unbalanced, "absent", {"other/busiest/0": 0.3 * ONE}, {}),
    (O.rewards_exactly_zero_loss_ln2, "seen", {"pref.margin": 0 * ONE, "loss.train": np.round(math.log(2) * ONE, 4)}, {}),
    (O.rewards_exactly_zero_loss_ln2, "absent", {"pref.margin": GROWS, "loss.train": FADES}, {}),
    (O.rewards_exactly_zero_loss_ln2, "cannot tell", {"loss.train": FADES}, {}),
    (O.reference_moves_along, "seen", SELF | {"pref.chosen": -20 - T / 10}, {}),
    (O.reference_moves_along, "absent", SELF | {"pref.chosen": -20 * ONE}, {}),
    (O.reference_moves_along, "cannot tell", SELF, {}),
    (K.kl_weight_annealed, "seen", {"other/kl_weight": np.minimum(T / 50, 1), "other/kl_loss": 5 * ONE}, {}),
    (K.kl_weight_annealed, "seen", {"other/kl_loss": 5 * ONE}, {"config": {"kl_anneal_steps": 500}}),
    (K.kl_weight_annealed, "absent", {"other/kl_weight": ONE, "other/kl_loss": 5 * ONE}, {}),
    (K.kl_weight_annealed, "cannot tell", {"loss.train": FADES}, {}),
    (L.latents_inactive, "seen", {"other/active_units": 0 * ONE}, {}),
    (L.latents_inactive, "seen", {"other/active_units": 0 * ONE, "other/kl": 0.2 * ONE}, {}),
    (L.latents_inactive, "absent", {"other/active_units": 0 * ONE, "other/kl": 28 * ONE}, {}),  # counted from some variance on
    (L.latents_inactive, "seen", {"other/n_active_latents": np.where(T < 50, 3.0, 0.0)}, {}),
    (L.latents_inactive, "absent", {"other/active_units": np.where(T < 50, 0.0, 7.0)}, {}),
    (L.latents_inactive, "absent", {"other/active_units": np.where(T < 50, 5.0, 0.0), "loss.train": np.where(T < 50, 2.0, np.nan)}, {}),
    (L.latents_inactive, "cannot tell", {"loss.train": FADES}, {}),
    (L.latents_inactive, "seen", {"other/perplexity": ONE + 0.02}, {}),
    (L.latents_inactive, "absent", {"other/perplexity": 1 + T / 10}, {}),
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    found = look(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


def test_a_turn_is_placed() -> None:
    turned = O.accuracies_reversed(Symptoms(run_of({"pref.acc": RIGHT}), ()))
    assert turned.numbers["first"] == 50


NAMES = ("rl.reward", "pref.margin", "pref.acc", "loss.train")
LOOKS = [f for m in (K, L, O) for n, f in vars(m).items() if callable(f) and getattr(f, "__module__", "") == m.__name__ and n[0] != "_"]


@pytest.mark.parametrize("look", LOOKS, ids=[f.__name__ for f in LOOKS])
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    for names in (NAMES, ("other/kl_loss", "other/kl_weight", "other/moe/expert_1_load", "other/router/entropy", "other/div")):
        assert look(Symptoms(run_of(dict.fromkeys(names, x)), ())).state in ("absent", "cannot tell", "seen")
