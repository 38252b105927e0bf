"""Many small mazes at once, and what PPO and Q-learning make of them: rows with the numbers that CleanRL's scripts log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from making.clock import Clock
from making.training import Config, Row

MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

PPO: Config = {
    "exp_name": "ppo",
    "seed": 1,
    "num_envs": 16,
    "num_steps": 32,
    "num_iterations": 90,
    "optimizer": "adam",
    "learning_rate": 2.5e-3,
    "anneal_lr": True,
    "gamma": 0.97,
    "gae_lambda": 0.95,
    "num_minibatches": 4,
    "update_epochs": 4,
    "norm_adv": True,
    "clip_coef": 0.2,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "reward_scale": 1.0,
}


@dataclass
class Maze:
    """``size`` x ``size`` cells, seen as one of so many; a prize ends an episode, and so does the time limit."""

    size: int = 6
    prizes: dict[tuple[int, int], float] = field(default_factory=lambda: {(5, 5): 1.0})
    start: tuple[int, int] | None = None  # anywhere
    limit: int = 24
    worlds: int = 16

    def __post_init__(self) -> None:
        self.at = torch.stack([self._begin() for _ in range(self.worlds)])
        self.age, self.sum = torch.zeros(self.worlds), torch.zeros(self.worlds)

    def _begin(self) -> Tensor:
        return torch.tensor(self.start) if self.start else torch.randint(self.size - 1, (2,))

    def seen(self) -> Tensor:
        return nn.functional.one_hot(self.at[:, 0] * self.size + self.at[:, 1], self.size**2).float()

    def place(self) -> Tensor:
        return self.at.float() / (self.size - 1)

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, list[float]]:
        """(rewards, which episodes ended, the returns of those)"""
        self.at = (self.at + MOVES[action]).clamp(0, self.size - 1)
        reward, over = torch.full((self.worlds,), -0.01), torch.zeros(self.worlds, dtype=torch.bool)
        for place, prize in self.prizes.items():
            there = (self.at == torch.tensor(place)).all(1)
            reward, over = reward + prize * there, over | there
        self.age, self.sum = self.age + 1, self.sum + reward
        over |= self.age >= self.limit
        returns = self.sum[over].tolist()
        for i in torch.nonzero(over).flatten().tolist():
            self.at[i], self.age[i], self.sum[i] = self._begin(), 0.0, 0.0
        return reward, over, returns


class Agent(nn.Module):
    """One body for policy and value, as in CleanRL's agent for Atari."""

    def __init__(self, inputs: int, actions: int = 4, width: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, actions), nn.Linear(width, 1)
        nn.init.normal_(self.actor.weight, std=0.01)

    def forward(self, x: Tensor) -> tuple[Categorical, Tensor]:
        hidden = self.body(x)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)  # type: ignore[no-untyped-call]


def _rollout(agent: Agent, maze: Maze, config: Config) -> tuple[tuple[Tensor, ...], list[float]]:
    """Observations, actions, log-probabilities, advantages and returns of ``num_steps`` steps of all worlds."""
    kept: list[tuple[Tensor, ...]] = []
    returns: list[float] = []
    for _ in range(config["num_steps"]):
        x = maze.seen()
        with torch.no_grad():
            policy, value = agent(x)
        action = policy.sample()
        reward, over, ended = maze.step(action)
        kept.append((x, action, policy.log_prob(action), value, reward * config["reward_scale"], over.float()))
        returns += ended
    with torch.no_grad():
        following = agent(maze.seen())[1]
    advantages, running = [], torch.zeros(maze.worlds)
    for _, _, _, value, reward, over in reversed(kept):
        delta = reward + config["gamma"] * following * (1 - over) - value
        running = delta + config["gamma"] * config["gae_lambda"] * (1 - over) * running
        advantages.append(running)
        following = value
    advantage = torch.cat(advantages[::-1])
    x, action, logp, value = (torch.cat([k[i] for k in kept]) for i in range(4))
    return (x, action, logp, advantage, advantage + value), returns


def _update(agent: Agent, optimizer: torch.optim.Optimizer, batch: tuple[Tensor, ...], config: Config) -> Row:
    x, action, old, advantage, target = batch
    policy, value = agent(x)
    if config["norm_adv"]:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    log_ratio = policy.log_prob(action) - old
    ratio, clip = log_ratio.exp(), config["clip_coef"]
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value_loss, entropy = 0.5 * (value - target).square().mean(), policy.entropy().mean()
    optimizer.zero_grad()
    (policy_loss - config["ent_coef"] * entropy + config["vf_coef"] * value_loss).backward()
    nn.utils.clip_grad_norm_(agent.parameters(), config["max_grad_norm"])
    optimizer.step()
    return {
        "policy_loss": policy_loss.item(),
        "value_loss": value_loss.item(),
        "entropy": entropy.item(),
        "approx_kl": ((ratio - 1) - log_ratio).mean().item(),
        "clipfrac": ((ratio - 1).abs() > clip).float().mean().item(),
    }


def ppo(config: Config, clock: Clock, **maze: Any) -> Iterator[Row]:
    """A row an iteration; its step counts those of all worlds together."""
    torch.manual_seed(config["seed"])
    torch.set_num_threads(1)
    world = Maze(worlds=config["num_envs"], **maze)
    agent = Agent(world.size**2)
    optimizer: torch.optim.Optimizer = torch.optim.Adam(agent.parameters(), config["learning_rate"], eps=1e-5)
    if config["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(agent.parameters(), config["learning_rate"], momentum=config["momentum"])
    size, last = config["num_envs"] * config["num_steps"], config["num_iterations"]
    for iteration in range(last):
        rate = config["learning_rate"] * (1 - iteration / last if config["anneal_lr"] else 1)
        optimizer.param_groups[0]["lr"] = rate
        data, returns = _rollout(agent, world, config)
        row: Row = {}
        for _ in range(config["update_epochs"]):
            for rows in torch.randperm(size).chunk(config["num_minibatches"]):
                row = _update(agent, optimizer, tuple(part[rows] for part in data), config)
        row |= {"step": (iteration + 1) * size, "lr": rate, "step_time": clock.tick()}
        row |= {"time": clock.now, "sps": round(size / row["step_time"])}
        if returns:
            row["return"] = sum(returns) / len(returns)
        yield row


def q_learning(config: Config, clock: Clock) -> Iterator[Row]:
    """A row for each step of all worlds, four updates each; targets come from the net that is trained."""
    torch.manual_seed(config["seed"])
    torch.set_num_threads(1)
    world, kept = Maze(worlds=config["num_envs"], limit=100), list[tuple[Tensor, ...]]()
    q = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(q.parameters(), config["learning_rate"])
    for iteration in range(1, config["total_timesteps"] // config["num_envs"] + 1):
        x = world.place()
        epsilon = max(config["end_e"], 1 - iteration / config["exploration_iterations"])
        free = torch.rand(len(x)) < epsilon
        action = torch.where(free, torch.randint(4, (len(x),)), q(x).argmax(1))
        reward, _, returns = world.step(action)
        kept = [*kept, (x, action, reward, world.place(), (reward < 0.5).float())][-config["buffer_size"] :]
        seen, taken, paid, after, goes_on = (torch.cat([k[i] for k in kept]) for i in range(5))
        for _ in range(config["updates_per_step"]):
            i = torch.randint(len(seen), (config["batch_size"],))
            with torch.no_grad():
                target = paid[i] + config["gamma"] * q(after[i]).max(1).values * goes_on[i]
            value = q(seen[i]).gather(1, taken[i, None])[:, 0]
            loss = (value - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        row: Row = {"step": iteration * config["num_envs"], "td_loss": loss.item(), "q": value.mean().item(), "step_time": clock.tick()}
        row |= {"time": clock.now, "sps": round(config["num_envs"] / row["step_time"])}
        if returns:
            row["return"] = sum(returns) / len(returns)
        yield row


LOGGED = {
    "lr": "charts/learning_rate",
    "return": "charts/episodic_return",
    "sps": "charts/SPS",
    "value_loss": "losses/value_loss",
    "policy_loss": "losses/policy_loss",
    "entropy": "losses/entropy",
    "approx_kl": "losses/approx_kl",
    "clipfrac": "losses/clipfrac",
    "td_loss": "losses/td_loss",
    "q": "losses/q_values",
}
