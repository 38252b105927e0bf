"""PPO that prints a table in the Stable-Baselines form, on gymnasium's CartPole."""

import os
import signal
import time

import gymnasium as gym
import numpy as np
import proj
import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from rl_cases import ppo_cases


def mlp(i, o, last=1.0):
    n = nn.Sequential(nn.Linear(i, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, o))
    with torch.no_grad():
        n[-1].weight *= last
    return n


def table(groups):
    rows = []
    for g, d in groups.items():
        rows.append((g + "/", ""))
        rows += [("   " + k, v if isinstance(v, int) else f"{v:.3g}") for k, v in d.items()]
    a, b = max(len(r[0]) for r in rows), max(len(str(r[1])) for r in rows)
    print("-" * (a + b + 7))
    for k, v in rows:
        print(f"| {k:<{a}} | {v!s:<{b}} |")
    print("-" * (a + b + 7), flush=True)


def ppo(case, rec):
    c = {
        "total_timesteps": 12288,
        "n_steps": 512,
        "batch_size": 64,
        "n_epochs": 4,
        "learning_rate": 1.5e-3,
        "gamma": 0.98,
        "gae_lambda": 0.9,
        "clip_range": 0.2,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        **case.cfg,
    }
    f = case.f
    yaml.safe_dump({**c, "env": "CartPole-v1", "policy": "MlpPolicy"}, open("config.yml", "w"))
    print("Using cpu device\nWrapping the env with a `Monitor` wrapper\nWrapping the env in a DummyVecEnv.")
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=rec["seed"])
    pi, vf = mlp(4, 2, 0.1), mlp(4, 1)
    ps = [*pi.parameters(), *vf.parameters()]
    opt = torch.optim.Adam(ps, lr=c["learning_rate"], eps=1e-5)
    rets, lens, ep, el, t0, upd = [], [], 0.0, 0, time.time(), 0
    iters = c["total_timesteps"] // c["n_steps"]
    for it in range(iters):
        states, A, P, R, D, V = [], [], [], [], [], []
        if "rate" in f and it == f["rate"][0]:
            for g in opt.param_groups:
                g["lr"] *= f["rate"][1]
        for _ in range(c["n_steps"]):
            o = torch.as_tensor(obs)
            with torch.no_grad():
                d = torch.distributions.Categorical(logits=pi(o))
                v = vf(o).item()
            a = d.sample()
            nxt, r, term, trunc, _ = env.step(a.item())
            if "slow" in f and it >= f["slow"][0]:
                time.sleep(f["slow"][1])
            ep, el = ep + r, el + 1
            rr = r * f.get("reward_scale", 1.0)
            if "flip_reward" in f and it >= f["flip_reward"]:
                rr = -rr
            states.append(o), A.append(a), P.append(d.log_prob(a)), R.append(rr), D.append(term or trunc), V.append(v)
            obs = nxt
            if term or trunc:
                rets.append(ep), lens.append(el)
                ep, el = 0.0, 0
                obs, _ = env.reset()
        with torch.no_grad():
            last = vf(torch.as_tensor(obs)).item()
        adv, g = np.zeros(len(R), np.float32), 0.0
        for i in reversed(range(len(R))):
            nv = (V[i + 1] if i + 1 < len(R) else last) * (1 - D[i])
            g = R[i] + c["gamma"] * nv - V[i] + c["gamma"] * c["gae_lambda"] * g * (1 - D[i])
            adv[i] = g
        states, A, P, V = torch.stack(states), torch.stack(A), torch.stack(P), torch.tensor(V)
        adv = torch.from_numpy(adv)
        ret = adv + V
        if f.get("zero_adv"):
            adv = adv[torch.randperm(len(adv))]
        log = []
        for _ in range(c["n_epochs"]):
            for b in torch.randperm(len(states)).split(c["batch_size"]):
                d = torch.distributions.Categorical(logits=pi(states[b]))
                lr_ = d.log_prob(A[b]) - P[b]
                ratio, ad = lr_.exp(), (adv[b] - adv[b].mean()) / (adv[b].std() + 1e-8)
                cl = c["clip_range"]
                pg = -torch.min(ratio * ad, ratio.clamp(1 - cl, 1 + cl) * ad).mean()
                vl = F.mse_loss(vf(states[b])[:, 0], ret[b])
                ent = d.entropy().mean()
                loss = pg + c["vf_coef"] * vl - c["ent_coef"] * ent
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(ps, c["max_grad_norm"] or 1e9)
                opt.step()
                upd += 1
                log.append(
                    [
                        ((ratio - 1) - lr_).mean().item(),
                        ((ratio - 1).abs() > cl).float().mean().item(),
                        ent.item(),
                        pg.item(),
                        vl.item(),
                        loss.item(),
                    ]
                )
        if "flip" in f and it == f["flip"]:
            with torch.no_grad():
                pi[2].weight.view(torch.int32).view(-1)[7] ^= 1 << 30
        m = np.mean(log, 0)
        rew = float(np.mean(rets[-30:]))
        rec["train"].append((it, -rew))
        rec["evals"].append((it, m[4]))
        rec.setdefault("ent", []).append(m[2]), rec.setdefault("kl", []).append(m[0])
        table(
            {
                "rollout": {"ep_len_mean": float(np.mean(lens[-30:])), "ep_rew_mean": rew},
                "time": {
                    "fps": int((it + 1) * c["n_steps"] / (time.time() - t0)),
                    "iterations": it + 1,
                    "time_elapsed": int(time.time() - t0),
                    "total_timesteps": (it + 1) * c["n_steps"],
                },
                "train": {
                    "approx_kl": m[0],
                    "clip_fraction": m[1],
                    "clip_range": c["clip_range"],
                    "entropy_loss": -m[2],
                    "explained_variance": float(1 - (ret - V).var() / (ret.var() + 1e-8)),
                    "learning_rate": opt.param_groups[0]["lr"],
                    "loss": m[5],
                    "n_updates": upd,
                    "policy_gradient_loss": m[3],
                    "value_loss": m[4],
                },
            }
        )
        rec["dts"].append(time.time() - t0 - sum(rec["dts"]))
        if it == f.get("kill"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        if it == f.get("code_error"):
            proj.read_meta(it)
    rec["init"], rec["final"] = -20.0, -float(np.mean(rets[-15:]))


FAMILIES = {"gym-ppo-cartpole-sb3table": {"cases": ppo_cases, "console": "ppo.log", "run": ppo, "gain": -99}}
