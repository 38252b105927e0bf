"""Policy gradients on a hand-written cart and pole: REINFORCE (console), A2C with GAE (CSV), PPO (TensorBoard)."""

import math
import time

import numpy as np
import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from carts import CartPoles, Progress, RlBoard, Say
from core import OK, F, Family
from loop import send_later
from rates import lr_at


def agent(folder, h, ext, meas, ckpt, k):
    """Rollouts of n carts, advantages with GAE, one or several passes (clipped ratio when there are several)."""
    torch.manual_seed(h["seed"])
    rng = np.random.default_rng(h["seed"])
    env, n, T = CartPoles(h["n_envs"], rng), h["n_envs"], h["horizon"]
    pi = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    vf = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.Adam(
        [{"params": pi.parameters(), "base": h["lr"]}, {"params": vf.parameters(), "base": h.get("vf_lr", h["lr"])}], lr=h["lr"]
    )
    out, t0 = h["sink"](folder, h), time.time()
    for it in range(h["steps"]):
        t1 = time.perf_counter()
        for g in opt.param_groups:
            g["lr"] = ext.lr(it, g["base"] * lr_at({**h, "lr": 1.0}, ext.clock(it, 0)))
        obs, acts, rews, dones = [], [], [], []
        for _ in range(T):
            o = torch.tensor(env.s, dtype=torch.float32)
            with torch.no_grad():
                a = torch.distributions.Categorical(logits=pi(o)).sample()
            r, d = env.step(a.numpy())
            obs.append(o)
            acts.append(a)
            rews.append(r * h.get("reward_scale", 1.0))
            dones.append(d)
        seen, A = torch.stack(obs), torch.stack(acts)
        b = ext.batch(it, {"x": seen})
        seen = b["x"]
        with torch.no_grad():
            V = vf(torch.cat([seen, torch.tensor(env.s, dtype=torch.float32)[None]]))[..., 0].numpy()
            old = torch.log_softmax(pi(seen), -1).gather(-1, A[..., None])[..., 0]
        adv, last = np.zeros((T, n)), np.zeros(n)
        for t in reversed(range(T)):
            live = 1 - dones[t].astype(float)
            last = rews[t] + h["gamma"] * V[t + 1] * live - V[t] + h["gamma"] * h["lam"] * live * last
            adv[t] = last
        ret = torch.tensor(adv + V[:-1], dtype=torch.float32)
        adv = torch.tensor(adv, dtype=torch.float32)
        if h.get("normalize", True):
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(h["epochs"]):
            dist = torch.distributions.Categorical(logits=pi(seen))
            lp = dist.log_prob(A)
            ratio = (lp - old).exp()
            c = h.get("clip_range") or 1e9
            pl = -torch.min(ratio * adv, ratio.clamp(1 - c, 1 + c) * adv).mean()
            vl, ent = F_.mse_loss(vf(seen)[..., 0], ret), dist.entropy().mean()
            loss = pl + h["vf_coef"] * vl - h["ent_coef"] * ent
            loss.backward()
            gn = float(nn.utils.clip_grad_norm_([p for m in (pi, vf) for p in m.parameters()], h.get("grad_clip") or 1e12))
            opt.step()
            if ext.clear:
                opt.zero_grad()
        if ext.after:
            ext.after(it, pi, opt)
        if ext.pause:
            time.sleep(ext.pause(it))
        kl = float((old - lp.detach()).mean())
        L = env.lengths[-40:]
        meas.m["dt"].append(time.perf_counter() - t1)
        meas.m["loss"].append((it, -float(np.mean(L)) if L else -1.0))
        meas.m["eval"].append((it, -float(np.mean(L)) if L else -1.0))
        meas.m["gn"].append(vl.item())
        meas.dump()
        if it % h["log_every"] == 0 or it == h["steps"] - 1:
            out.row(
                {
                    "it": it,
                    "steps": (it + 1) * n * T,
                    "ret": float(np.mean(L)) * h.get("reward_scale", 1.0) if L else math.nan,
                    "len": float(np.mean(L)) if L else math.nan,
                    "pl": pl.item(),
                    "vl": vl.item(),
                    "ent": ent.item(),
                    "kl": kl,
                    "gn": gn,
                    "lr": opt.param_groups[0]["lr"],
                    "fps": (it + 1) * n * T / (time.time() - t0),
                }
            )
        if ext.signal_at and it == ext.signal_at[0]:
            send_later(ext.signal_at[1])
    out.close()
    meas.dump(True)


def best(m):
    return float(np.mean([-v for _, v in m["eval"][-15:]]))


def bad(m, t, s):
    return (not best(m) < 10 and best(m) < 0.72 * best(t)) or best(m) < 30, f"length {best(m):.0f} twin {best(t):.0f}"


def good(m, t, s):
    return best(m) > 0.8 * best(t) and best(m) > 60, f"length {best(m):.0f} twin {best(t):.0f}"


def values_blow(m, t, s):
    a, b = max(m["gn"][-20:]), max(t["gn"][-20:])
    return not a < 20 * b, f"value loss {a:.3g} twin {b:.3g}"


def fine(words="plain", **kw):
    return OK(words, check=good, **kw)


B = {
    "n_envs": 8,
    "horizon": 32,
    "gamma": 0.98,
    "lam": 0.95,
    "epochs": 1,
    "vf_coef": 0.5,
    "ent_coef": 0.01,
    "log_every": 2,
    "schedule": "constant",
}
C = {"train": agent, "task": None, "hide": ["sink"]}
reinforce = Family(
    "torch-reinforce-console",
    {**B, "steps": 110, "lr": 1.5e-2, "lam": 1.0, "normalize": True, "sink": Say},
    None,
    console="reinforce.txt",
    logs=["entropy", "config"],
    **C,
    plan=[
        fine(),
        fine(),
        fine("more envs", h={"n_envs": 12}),
        fine("linear rate", h={"schedule": "linear", "steps": 140}),
        F("rl_entropy_collapse", h={"ent_coef": -2.0}, step=0, check=bad),
        F("rl_reward_scale", h={"reward_scale": 1e-4, "normalize": False}, step=0, check=bad),
        F("rl_reward_scale", h={"reward_scale": 1e5, "normalize": False}, step=0, check=values_blow),
        P.lr_high(3.0, check=bad),
        F("rl_value_explosion", h={"gamma": 1.05, "normalize": False}, step=0, check=values_blow),
        P.killed(80),
    ],
)
a2c = Family(
    "torch-a2c-progresscsv",
    {**B, "steps": 120, "lr": 1e-2, "grad_clip": 0.5, "sink": Progress},
    None,
    config="json",
    console="out.log",
    logs=["entropy", "time"],
    **C,
    plan=[
        fine(),
        fine(),
        fine("high entropy bonus", h={"ent_coef": 0.03}),
        fine("one-cycle", h={"schedule": "onecycle", "lr": 2e-2}),
        F("rl_entropy_collapse", h={"ent_coef": -0.2, "lr": 3e-2}, step=0, check=bad),
        F("rl_reward_scale", h={"reward_scale": 1e4, "normalize": False}, step=0, check=values_blow),
        F("rl_value_explosion", h={"vf_lr": 3.0, "grad_clip": 0.0}, step=0, check=values_blow),
        P.slow(60, 0.05),
        P.no_clear(check=bad),
        F(
            "regularization_floor",
            h={"ent_coef": 2.0},
            step=0,
            check=bad,
            accept=[],
            ident="partly",
            what="the entropy bonus outweighs the reward: entropy stays at ln 2",
        ),
        P.killed(90),
    ],
)
ppo = Family(
    "torch-ppo-tensorboard",
    {**B, "steps": 70, "lr": 5e-3, "epochs": 6, "clip_range": 0.2, "grad_clip": 0.5, "log_every": 1, "sink": RlBoard},
    None,
    config="yaml",
    logs=["entropy", "lr", "kl"],
    **C,
    plan=[
        fine(),
        fine(),
        fine("linear rate", h={"schedule": "linear"}),
        fine("short horizon", h={"horizon": 24, "n_envs": 10}),
        F("rl_kl_runaway", h={"clip_range": 0.0, "lr": 0.1, "epochs": 20}, step=0, check=bad),
        F("rl_kl_runaway", h={"clip_range": 0.0, "epochs": 40, "lr": 3e-2, "grad_clip": 0.0}, step=0, check=bad),
        P.lr_jump(45, 100, check=bad),
        F("rl_entropy_collapse", h={"ent_coef": -0.5}, step=0, check=bad),
        F("rl_value_explosion", h={"gamma": 1.05, "lam": 1.0}, step=0, check=values_blow),
        P.units(30, h={"schedule": "linear", "lr": 1e-3}, check=bad),
        P.lr_low(1e-5, check=bad),
        F("rl_reward_scale", h={"reward_scale": 1e3, "grad_clip": 0.5}, step=0, check=values_blow),
    ],
)

FAMILIES = [reinforce, a2c, ppo]
