"""Signs of policies, two players, codes, experts and preferences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.signs import discriminators as D
from forensics.signs import kl_weight as K
from forensics.signs import latents as L
from forensics.signs import other_objectives as O
from forensics.signs import policies as P
from forensics.signs import policy_learning as PL
from forensics.signs import policy_rewards as PR
from forensics.signs import policy_updates as U
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(100)
FADES = np.exp(-T / 10)
ONE = np.ones(100)
GROWS = T / 10.0
SCALED = {
    "rl.loss_value": 9e7 * ONE,
    "rl.reward": 20 + GROWS,
    "rl.kl": 1e-6 * ONE,
    "rl.clipfrac": 0 * ONE,
    "rl.expl_var": 1e-5 * ONE,
}  # by 1000
MOVES = SCALED | {"rl.loss_value": 2e6 * ONE, "rl.kl": 0.002 * ONE, "rl.clipfrac": 0.016 * ONE}
RIGHT = np.where(T < 50, 0.95, 0.05)

SELF = {"pref.margin": 0 * ONE, "loss.train": np.round(math.log(2) * ONE, 4)}
CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES}, {}),
    (P.entropy_collapsed, "seen", {"rl.entropy": -0.7 * FADES}, {}),
    (P.entropy_collapsed, "seen", {"rl.entropy": -5e-8 * ONE}, {}),
    (P.entropy_collapsed, "absent", {"rl.entropy": 0.7 * ONE}, {}),
    (P.entropy_collapsed, "absent", {"rl.entropy": 0.7 * FADES, "rl.reward": np.minimum(0.2 + GROWS, 1.0)}, {}),  # every answer is right
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES, "rl.reward": 0.3 + 0.01 * np.sin(T)}, {}),
    (
        P.entropy_collapsed,
        "absent",
        {"rl.entropy": 0.7 * FADES, "rl.reward": -0.4 + 1.2 * np.minimum(GROWS / 2, 1.0)},
        {},
    ),  # it had won by then
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES, "rl.reward": -0.4 + 1.2 * GROWS}, {}),  # much came later
    (P.entropy_collapsed, "seen", {"rl.entropy": 0.7 * FADES, "rl.reward": 0.8 - 1.2 * GROWS}, {}),  # and was lost
    (P.entropy_collapsed, "cannot tell", {"rl.entropy": 1 - GROWS}, {}),
    (P.entropy_collapsed, "cannot tell", {"rl.reward": GROWS}, {}),
    (P.policy_kl_ran_away, "seen", {"rl.kl": 20 * GROWS, "rl.reward": GROWS}, {}),
    (P.policy_kl_ran_away, "absent", {"rl.kl": 0.01 * ONE, "rl.reward": GROWS}, {}),
    (P.policy_kl_ran_away, "seen", {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE}, {}),  # to the policy before
    (P.policy_kl_ran_away, "absent", {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE, "tokens.seen": GROWS}, {}),
    (P.policy_kl_ran_away, "absent", {"rl.kl": 3 * ONE, "rl.reward": GROWS}, {}),
    (
        P.policy_kl_ran_away,
        "absent",
        {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE, "rl.clipfrac": 0.1 * ONE},
        {},
    ),  # no update's
    (P.policy_kl_ran_away, "seen", {"rl.kl": 3 * ONE, "rl.reward": GROWS, "rl.expl_var": ONE, "rl.clipfrac": 0.8 * ONE}, {}),
    (P.policy_kl_ran_away, "cannot tell", {"rl.reward": GROWS}, {}),
    (P.value_loss_exploded, "seen", {"rl.loss_value": 10.0 ** (T / 20)}, {}),
    (P.value_loss_exploded, "absent", {"rl.loss_value": 2 * ONE}, {}),
    (P.value_loss_exploded, "absent", {"rl.loss_value": 10.0 ** (T / 20), "rl.reward": 50 * GROWS}, {}),  # up to 495, learning
    (P.value_loss_exploded, "seen", {"rl.loss_value": 10.0 ** (T / 20), "rl.reward": GROWS}, {}),
    (P.value_loss_exploded, "seen", {"rl.loss_value": 1e8 * ONE, "rl.reward": 9 * ONE, "rl.len": 200 * ONE}, {}),
    (P.value_loss_exploded, "absent", {"rl.loss_value": 1e6 * ONE, "rl.reward": 9 * ONE, "rl.len": 200 * ONE}, {}),  # 9 may be a step's
    (P.value_loss_exploded, "absent", {"rl.loss_value": 1e8 * ONE, "rl.reward": 9 * ONE}, {}),
    (P.value_loss_exploded, "cannot tell", {"rl.reward": GROWS}, {}),
    (U.entropy_penalized, "seen", {"rl.entropy": -0.7 * ONE + 0.005 * T}, {"config": {"ent_coef": -0.4}}),
    (U.entropy_penalized, "seen", {"rl.entropy": 1 - GROWS}, {"config": {"entropy_coeff": -0.01}}),  # of continuous actions
    (U.entropy_penalized, "seen", {"rl.entropy": 0.7 * FADES}, {"config": {"ent": -0.4}}),
    (U.entropy_penalized, "absent", {"rl.entropy": 0.03 * T - 1}, {"config": {"ent": -0.4}}),  # it rises
    (U.entropy_below_target, "seen", {"rl.entropy": -8 * ONE + 0.005 * T}, {"config": {"target_entropy": -1.0}}),
    (U.entropy_below_target, "absent", {"rl.entropy": -1.3 * ONE}, {"config": {"target_entropy": -1.0}}),
    (U.entropy_below_target, "absent", {"rl.entropy": -8 + 0.15 * T}, {"config": {"target_entropy": -1.0}}),  # it comes nearer
    (U.entropy_below_target, "cannot tell", {"rl.entropy": -8 * ONE}, {"config": {"target_entropy": "auto"}}),
    (U.entropy_penalized, "absent", {"rl.entropy": -0.7 * ONE + 0.005 * T}, {"config": {"ent_coef": 0.01}}),  # a task that is solved
    (U.entropy_penalized, "absent", {"rl.entropy": -0.7 * ONE}, {"config": {"ent_coef": -1e-6}}),
    (U.entropy_penalized, "cannot tell", {"rl.entropy": -0.7 * ONE}, {"config": {"ent_coef": "auto"}}),
    (U.entropy_penalized, "cannot tell", {"rl.reward": GROWS}, {"config": {"ent_coef": -0.4}}),
    (U.value_loss_dwarfs_return, "seen", SCALED, {}),
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.reward": -1400 - GROWS * 100, "rl.loss_value": 1e5 * ONE}, {}),  # large by nature
    (U.value_loss_dwarfs_return, "cannot tell", SCALED | {"rl.reward": 0 * ONE}, {}),  # nothing was ever paid
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.loss_value": 0.01 * ONE}, {}),  # rewards are normalized
    (
        U.value_loss_dwarfs_return,
        "absent",
        SCALED | {"rl.loss_value": 1e6 * ONE, "rl.kl": 0.005 * ONE, "rl.clipfrac": 0.1 * ONE},
        {},
    ),  # the loss is a sum over the batch
    (U.value_loss_dwarfs_return, "seen", MOVES | {"rl.loss_value": 9e8 * ONE, "rl.expl_var": 1e-6 * ONE}, {}),  # more than any sum
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_value": 9e8 * ONE, "rl.expl_var": 0.4 * ONE}, {}),
    (U.value_loss_dwarfs_return, "seen", MOVES | {"rl.loss_policy": -2100 * ONE}, {}),
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -0.02 * ONE}, {}),  # advantages are normalized
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -20 * ONE}, {}),  # advantages of the size of the returns
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -2100 * ONE, "rl.reward": 3000 * ONE}, {}),  # large by nature
    (U.value_loss_dwarfs_return, "absent", MOVES | {"rl.loss_policy": -2100 * ONE, "rl.expl_var": 0.8 * ONE}, {}),
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.expl_var": 0.8 * ONE}, {}),
    (U.value_loss_dwarfs_return, "absent", SCALED | {"rl.loss_value": 10.0 ** (T / 10)}, {}),  # it explodes
    (U.value_loss_dwarfs_return, "cannot tell", {"rl.loss_value": 9e7 * ONE, "rl.reward": 20 + GROWS}, {}),
    (U.value_loss_dwarfs_return, "cannot tell", {"rl.loss_value": 9e7 * ONE}, {}),
    (PR.reward_steps_to_other_scale, "cannot tell", SCALED | {"rl.len": 20 + GROWS}, {}),
    (PL.rewards_scaled_up, "seen", {"rl.reward": GROWS}, {"config": {"reward_scale": 100}}),
    (PL.rewards_scaled_up, "absent", {"rl.reward": GROWS}, {"config": {"reward_scale": 1}}),
    (PL.rewards_scaled_up, "seen", {"rl.reward": GROWS}, {"config": {"reward_per_tick": 250.0}}),
    (PL.rewards_scaled_up, "absent", {"rl.reward": GROWS}, {"config": {"healthy_reward": 1.0}}),
    (PL.rewards_scaled_up, "cannot tell", {"rl.reward": GROWS}, {}),
    (PR.reward_fell, "seen", {"rl.reward": np.where(T < 60, GROWS, -3)}, {}),
    (PR.reward_fell, "absent", {"rl.reward": GROWS}, {}),
    (PR.reward_fell, "seen", {"rl.reward": np.where(T < 60, T % 5 > 0, 0)}, {}),  # hits that are all lost
    (
        PR.reward_fell,
        "absent",
        {"rl.reward": 1.0 + np.where(T < 60, T % 3 > 0, T % 5 < 2)},
        {},
    ),  # counted in ones: a median moves by a whole one
    (PR.evaluated_return_falls_behind, "cannot tell", {"rl.reward": GROWS}, {}),
    (PR.reward_fell, "cannot tell", {"loss.train": FADES}, {}),
    (PR.reward_fell, "cannot tell", {"loss.train": FADES, "pref.margin": GROWS, "rl.reward": np.where(T < 60, GROWS, -3)}, {}),
    (PR.reward_steps_to_other_scale, "seen", {"rl.reward": np.where(T < 60, 9, -9.2), "rl.len": 20 * ONE}, {}),
    (PR.reward_steps_to_other_scale, "seen", {"rl.reward": np.where(T < 60, 1.0, 10.0), "rl.len": 20 * ONE}, {}),
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": np.where(T < 60, 9, -9.2), "rl.len": np.where(T < 60, 90, 9)}, {}),
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": GROWS, "rl.len": 20 * ONE}, {}),
    (
        PR.reward_steps_to_other_scale,
        "absent",
        {"rl.reward": np.where(T < 8, 3, 19 + T / 5), "rl.len": 20 * ONE},
        {},
    ),  # and goes on climbing
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": np.where(T % 11 < 5, -9, 9), "rl.len": 20 * ONE}, {}),  # lost or won
    (PR.reward_steps_to_other_scale, "absent", {"rl.reward": 4 - 12 * np.exp(-T / 3), "rl.len": 20 * ONE}, {}),  # learnt at once
    (
        PR.reward_steps_to_other_scale,
        "seen",
        {"rl.reward": np.where(T < 60, 1.0, 10.0), "rl.len": 20 * ONE, "rl.reward_std": np.where(T < 60, 0.3, 3.0)},
        {},
    ),
    (
        PR.reward_steps_to_other_scale,
        "absent",
        {"rl.reward": np.where(T < 60, 0.1, 0.95), "rl.len": 20 * ONE, "rl.reward_std": np.where(T < 60, 0.3, 0.1)},
        {},
    ),
    (PR.reward_steps_to_other_scale, "cannot tell", {"rl.reward": GROWS}, {}),
    (PR.reward_steps_to_other_scale, "cannot tell", {"loss.train": FADES}, {}),
    (PR.reward_never_rose, "seen", {"rl.reward": ONE}, {}),
    (PR.reward_never_rose, "absent", {"rl.reward": GROWS}, {}),
    (PR.reward_never_rose, "cannot tell", {"loss.train": FADES}, {}),
    (D.gan_trouble, "seen", {"other/D(x)": 1 - FADES / 2, "other/D(G(z))": FADES / 2}, {}),
    (O.experts_unbalanced, "seen", {"other/router_a/top_share": 0.3 * ONE, "other/router_b/top_share": 0.95 * ONE}, {}),
    (O.experts_unbalanced, "seen", {"other/maxload": 0.97 * ONE}, {}),
    (O.experts_unbalanced, "absent", {"other/router_a/top_share": 0.3 * ONE, "other/router_b/top_share": 0.25 * ONE}, {}),
    (O.experts_unbalanced, "seen", {f"other/load_{i}": x * ONE for i, x in enumerate((0.0, 0.5, 0.5, 0.0))}, {}),
    (O.experts_unbalanced, "absent", {f"other/load_{i}": x * ONE for i, x in enumerate((0.2, 0.3, 0.3, 0.2))}, {}),
    (D.gan_trouble, "seen", {"other/p_real": 1 - FADES / 2, "other/p_fake": FADES / 2}, {}),
    (D.gan_trouble, "seen", {"other/loss_D": 1.4 * FADES}, {}),
    (D.gan_trouble, "seen", {"other/critic_loss": 1.4 * FADES}, {}),
    (D.gan_trouble, "seen", {"other/loss/d": 6e-4 * FADES, "other/loss/g": ONE}, {}),  # won from the first logged value on
    (D.gan_trouble, "absent", {"other/D(x)": 0.7 * ONE, "other/D(G(z))": 0.3 * ONE}, {}),
    (D.gan_trouble, "seen", {"other/D(x)": 0.97 * ONE, "other/D(G(z))": 0.03 * ONE}, {}),
    (D.gan_trouble, "absent", {"other/D(x)": 0.97 * ONE, "other/D(G(z))": 0.2 * ONE}, {}),
    (D.gan_trouble, "seen", {"other/D_real": 0.9 * ONE, "other/D_fake": 0.002 * ONE}, {}),  # labels of real samples are smoothed
    (D.gan_trouble, "absent", {"other/D_real": 0.9 * ONE, "other/D_fake": 0.02 * ONE}, {}),
    (D.gan_trouble, "absent", {"other/D_real": 0.7 * ONE, "other/D_fake": 0.002 * ONE}, {}),
    (D.gan_trouble, "seen", {"other/D/acc_real": 0.97 * ONE, "other/D/acc_fake": 0.99 * ONE}, {}),
    (D.gan_trouble, "absent", {"other/D/acc_real": 0.55 * ONE, "other/D/acc_fake": 0.99 * ONE}, {}),
    (D.gan_trouble, "absent", {"other/D/acc_real": 1 - 0.5 * (T > 60), "other/D/acc_fake": ONE}, {}),  # it was right at first
    (D.gan_trouble, "seen", {"other/errD0": 1.3 * ONE, "other/errD1": 100 * ONE, "other/g_loss0": ONE, "other/g_loss1": 0 * ONE}, {}),
    (D.gan_trouble, "absent", {"other/errD0": 1.3 * ONE, "other/errD1": 100 * ONE, "other/g_loss0": 0 * ONE, "other/g_loss1": ONE}, {}),
    (O.experts_unbalanced, "seen", {"other/expert_load_max": 0.3 + 0.6 * T / 100}, {}),
    (O.experts_unbalanced, "absent", {"other/expert_load_max": 0.3 * ONE}, {}),
    (D.gan_trouble, "cannot tell", {"other/loss_D": -GROWS}, {}),
    (D.gan_trouble, "seen", {"other/losses/l_d_real": 0.3 * FADES**2, "other/losses/l_d_fake": 0.3 * FADES**2}, {}),
    (D.gan_trouble, "absent", {"other/losses/l_d_real": 0.3 * FADES**2, "other/losses/l_d_fake": 0.3 * ONE}, {}),
    (D.gan_trouble, "cannot tell", {"loss.train": FADES}, {}),
    (D.samples_alike, "seen", {"other/samples/diversity": FADES}, {}),
    (D.samples_alike, "absent", {"other/samples/diversity": ONE}, {}),
    (D.samples_alike, "cannot tell", {"loss.train": FADES}, {}),
    (D.samples_alike, "seen", {"other/mode coverage": FADES}, {}),
    (D.samples_alike, "cannot tell", {"other/val coverage80": FADES}, {}),  # of intervals that a forecast gives
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
    (L.latents_inactive, "seen", {"other/active_units": 0 * ONE}, {}),
    (L.latents_inactive, "seen", {"other/active_units": 0 * ONE, "other/kl": 0.2 * ONE}, {}),
    (L.latents_inactive, "absent", {"other/active_units": 0 * ONE, "other/kl": 28 * ONE}, {}),  # counted from some variance on
    (L.latents_inactive, "seen", {"other/n_active_latents": np.where(T < 50, 3.0, 0.0)}, {}),
    (L.latents_inactive, "absent", {"other/active_units": np.where(T < 50, 0.0, 7.0)}, {}),
    (L.latents_inactive, "absent", {"other/active_units": np.where(T < 50, 5.0, 0.0), "loss.train": np.where(T < 50, 2.0, np.nan)}, {}),
    (L.latents_inactive, "cannot tell", {"loss.train": FADES}, {}),
    (L.latents_inactive, "seen", {"other/perplexity": ONE + 0.02}, {}),
    (L.latents_inactive, "absent", {"other/perplexity": 1 + T / 10}, {}),
    (O.kl_term_vanished, "cannot tell", {"other/kl_loss": 5 * FADES, "rl.reward": GROWS}, {}),
    (K.kl_weight_annealed, "seen", {"other/kl_weight": np.minimum(T / 50, 1), "other/kl_loss": 5 * ONE}, {}),
    (K.kl_weight_annealed, "seen", {"other/kl_loss": 5 * ONE}, {"config": {"kl_anneal_steps": 500}}),
    (K.kl_weight_annealed, "absent", {"other/kl_weight": ONE, "other/kl_loss": 5 * ONE}, {}),
    (K.kl_weight_annealed, "cannot tell", {"loss.train": FADES}, {}),
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
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    found = look(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


def test_places() -> None:
    fell = PR.reward_fell(Symptoms(run_of({"rl.reward": np.where(T < 60, GROWS, -3)}), ()))
    assert fell.numbers["first"] == pytest.approx(60, abs=2)
    turned = O.accuracies_reversed(Symptoms(run_of({"pref.acc": RIGHT}), ()))
    assert turned.numbers["first"] == 50


NAMES = ("rl.entropy", "rl.kl", "rl.loss_value", "rl.reward", "pref.margin", "pref.acc", "loss.train", "other/D(x)", "other/D(G(z))")
LOOKS = [f for m in (O, P) for n, f in vars(m).items() if callable(f) and getattr(f, "__module__", "") == m.__name__ and n[0] != "_"]


@pytest.mark.parametrize("look", LOOKS, ids=[f.__name__ for f in LOOKS])
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    for names in (
        NAMES,
        ("other/kl_loss", "other/kl_weight", "other/moe/expert_1_load", "other/router/entropy", "other/div", "other/loss_D"),
    ):
        assert look(Symptoms(run_of(dict.fromkeys(names, x)), ())).state in ("absent", "cannot tell", "seen")


@pytest.mark.parametrize(
    ("trained", "evaluated", "state"),
    [
        (GROWS, GROWS + np.where(T < 60, 3.0, -3.0), "seen"),
        (GROWS, GROWS + np.where(T < 60, 3.0, -0.3), "absent"),  # training caught up
        (GROWS, GROWS + 3.0, "absent"),
        (np.where(T < 60, GROWS, -3.0), np.where(T < 60, GROWS + 3.0, -9.0), "absent"),  # both got worse
        (GROWS, GROWS + np.where(T < 110, 3.0, -3.0), "absent"),  # one evaluation
    ],
)
def test_an_evaluation_that_leaves_what_is_trained(trained: Any, evaluated: Any, state: str) -> None:
    """The returns of training at each step, those of the evaluation at each tenth."""
    run = run_of({"rl.reward": trained, "loss.aux": FADES})
    rows = run.tables["metrics"].to_pylist()
    held = [
        row | {"tag": "eval/mean_reward", "value": float(evaluated[row["step"]])}
        for row in rows
        if row["name"] == "rl.reward" and row["step"] % 10 == 9
    ]
    run.tables["metrics"] = pa.Table.from_pylist([*rows, *held], run.tables["metrics"].schema)
    found = PR.evaluated_return_falls_behind(Symptoms(run, ()))
    assert found.state == state, found.text
    console = [row | {"tag": "eval return", "step": row["step"] // 10} for row in held]  # which counts otherwise, and comes first
    run.tables["metrics"] = pa.Table.from_pylist([*rows, *console, *held], run.tables["metrics"].schema)
    run.cache.clear()
    assert PR.evaluated_return_falls_behind(Symptoms(run, ())).state == state
