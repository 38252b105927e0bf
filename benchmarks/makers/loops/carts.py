"""A cart and pole in numpy, and the logs of the agents that balance it."""

from typing import ClassVar

import numpy as np


class CartPoles:
    """n carts at once; 100 steps at most; reward 1 a step."""

    def __init__(self, n, rng, limit=100):
        self.n, self.rng, self.limit, self.s, self.t = n, rng, limit, rng.uniform(-0.05, 0.05, (n, 4)), np.zeros(n, int)
        self.lengths = []

    def step(self, act):
        x, v, th, w = self.s.T
        f = np.where(act == 1, 10.0, -10.0)
        c, s = np.cos(th), np.sin(th)
        tmp = (f + 0.05 * w**2 * s) / 1.1
        aw = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
        av = tmp - 0.05 * aw * c / 1.1
        self.s = np.stack([x + 0.02 * v, v + 0.02 * av, th + 0.02 * w, w + 0.02 * aw], 1)
        self.t += 1
        done = (np.abs(self.s[:, 0]) > 2.4) | (np.abs(self.s[:, 2]) > 0.21) | (self.t >= self.limit)
        for i in np.flatnonzero(done):
            self.lengths.append(int(self.t[i]))
            self.s[i], self.t[i] = self.rng.uniform(-0.05, 0.05, 4), 0
        return np.ones(self.n), done


class Say:
    def __init__(self, folder, h):
        print(f"CartPole, {h['n_envs']} envs, lr {h['lr']}, gamma {h['gamma']}, entropy bonus {h['ent_coef']}")

    def row(self, d):
        print(
            f"Episode batch {d['it']}\tlast reward: {d['ret']:.2f}\taverage length: {d['len']:.2f}\tpolicy loss: {d['pl']:.3f}\tvalue loss: {d['vl']:.3f}\tH: {d['ent']:.3f}"
        )

    def close(self):
        pass


class Progress:
    cols: ClassVar = {
        "it": "iteration",
        "steps": "total_timesteps",
        "len": "ep_len_mean",
        "ret": "ep_rew_mean",
        "vl": "value_loss",
        "pl": "policy_loss",
        "ent": "entropy",
        "fps": "fps",
    }

    def __init__(self, folder, h):
        self.f = open(folder / "progress.csv", "w")
        self.f.write(",".join(self.cols.values()) + "\n")

    def row(self, d):
        self.f.write(",".join(f"{d[c]:.6g}" for c in self.cols) + "\n")
        self.f.flush()

    def close(self):
        self.f.close()


class RlBoard:
    keys: ClassVar = {
        "ret": "rollout/ep_rew_mean",
        "len": "rollout/ep_len_mean",
        "pl": "train/policy_gradient_loss",
        "vl": "train/value_loss",
        "kl": "train/approx_kl",
        "ent": "train/entropy",
        "lr": "train/learning_rate",
    }

    def __init__(self, folder, h):
        from torch.utils.tensorboard import SummaryWriter

        self.w = SummaryWriter(str(folder / "PPO_1"))

    def row(self, d):
        for a, b in self.keys.items():
            self.w.add_scalar(b, d[a], d["steps"])

    def close(self):
        self.w.close()
