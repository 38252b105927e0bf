"""The cases of the PPO family."""

import numpy as np
from common import bad, ok, plain


def low(k):
    return lambda r, t: r["rc"] == 0 and r["final"] > t["final"] + k * (t["init"] - t["final"])


def ppo_cases(rng):
    k = rng.randint(9, 14)
    return [
        plain(),
        plain(),
        bad(
            "lr_too_high",
            low(0.4),
            "reward stays low; approx_kl and clip_fraction high; learning_rate printed",
            0,
            accept=("rl_kl_runaway", "rl_entropy_collapse"),
            cfg={"learning_rate": 0.1},
        ),
        bad("lr_too_low", low(0.5), "reward hardly moves, approx_kl about zero", 0, cfg={"learning_rate": 1e-5}),
        bad(
            "rl_kl_runaway",
            lambda r, t: low(0.3)(r, t) and max(r["kl"]) > 5 * max(t["kl"]),
            "approx_kl and clip_fraction far too large",
            0,
            cfg={"clip_range": 50.0, "n_epochs": 20, "learning_rate": 8e-3},
            accept=("lr_too_high",),
        ),
        bad(
            "rl_entropy_collapse",
            lambda r, t: low(0.3)(r, t) and np.mean(r["ent"][-5:]) < 0.1,
            "entropy at zero early while reward is low",
            0,
            cfg={"ent_coef": -0.5},
            accept=("lr_too_high",),
        ),
        bad(
            "rl_reward_scale",
            lambda r, t: low(0.25)(r, t) and r["evals"][2][1] > 1e3,
            "value_loss in the many thousands, rewards low",
            0,
            f={"reward_scale": 1000.0},
            accept=("rl_value_explosion",),
            ident="partly",
        ),
        bad(
            "rl_value_explosion",
            lambda r, t: low(0.25)(r, t),
            "value_loss grows without bound",
            0,
            cfg={"gamma": 1.12},
            accept=("rl_reward_scale",),
        ),
        bad("other:too strong entropy bonus", low(0.4), "entropy stays at its maximum, ent_coef in the config", 0, cfg={"ent_coef": 1.5}),
        bad(
            "other:reward sign wrong from an iteration on",
            low(0.4),
            "reward rises, then falls back for good",
            k,
            f={"flip_reward": k},
            ident="no",
            accept=("data_distribution_shift", "forgetting"),
        ),
        bad(
            "other:advantages do not match their actions",
            low(0.5),
            "reward stays at chance with healthy entropy and value loss",
            0,
            f={"zero_adv": 1},
            ident="no",
            accept=("labels_wrong",),
        ),
        bad("lr_jump", low(0.3), "printed learning_rate jumps and reward falls", k, f={"rate": (k, 100)}),
        bad(
            "silent_data_corruption",
            low(0.2),
            "reward falls from one iteration to the next and entropy with it",
            k,
            f={"flip": k},
            ident="partly",
            accept=("rl_entropy_collapse",),
        ),
        bad(
            "throughput_collapse",
            lambda r, t: r["rc"] == 0 and np.median(r["dts"][-5:]) > 2 * np.median(r["dts"][2:8]),
            "fps falls, time_elapsed grows faster",
            k,
            f={"slow": (k, 0.0012)},
        ),
        bad(
            "stopped_from_outside",
            "crash",
            "ends before total_timesteps with the launcher's words",
            k,
            f={"kill": k},
            launcher="slurmstepd: error: *** JOB 771230 ON cpu14 CANCELLED AT 2026-04-02T11:20:45 DUE TO TIME LIMIT ***",
        ),
        bad("code_error", "crash", "traceback with the reason", k, f={"code_error": k}),
        ok("more epochs, smaller clip range", {"clip_range": 0.1, "n_epochs": 6}, check="fine:.35"),
        ok("small entropy bonus", {"ent_coef": 0.01}, check="fine:.35"),
        ok("short batches", {"batch_size": 32, "learning_rate": 1e-3}, check="fine:.35"),
        ok("longer rollouts", {"n_steps": 768}, check="fine:.35"),
    ]
