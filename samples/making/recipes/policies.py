"""Policies that are trained by their rewards: in a maze, and on text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.distributions import Categorical

from making import files, tensorboard
from making.clock import Clock
from making.data import LETTERS, language
from making.expect import HEALTHY, Expect
from making.grid import LOGGED, PPO, ppo, q_learning
from making.models import Recurrent
from making.training import Config, Job, Row, every, settings

SOFT = ["nonfinite", "restart", "divergence", "loss_spike"]


def entropy_tensorboard(out: Path) -> Expect:
    """PPO without an entropy bonus, in a maze with a small prize beside the start and one five times as large across it:
    within ten iterations the policy goes to the small one always, and no other way is ever tried again. TensorBoard with
    the names of CleanRL."""
    config = PPO | {"ent_coef": 0.0, "seed": 121}
    clock = Clock("2026-06-22T08:00:00", 0.6)
    started = clock.now
    rows = list(ppo(config, clock, prizes={(5, 5): 1.0, (0, 2): 0.2}, start=(0, 0)))
    files.config_yaml(out, config)
    tensorboard.event_file(out / "runs" / "maze__ppo__121", rows, started, LOGGED)
    low = next(row["step"] for row in rows if row["entropy"] < 0.05 * rows[0]["entropy"])
    return Expect(top="rl_entropy_collapse", clear=SOFT, status="unknown", first_bad_step=low)


def reward_scale_csv(out: Path) -> Expect:
    """Rewards are multiplied by a hundred before PPO sees them, and its advantages are as large: the first updates make the
    policy sure of ways that lead nowhere, and the returns fall. With a factor of 1 they reach 0.94 (checked). CSV with the
    names of CleanRL; returns are logged as they come."""
    config = PPO | {"reward_scale": 100.0, "norm_adv": False, "optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.3, "seed": 122}
    rows = list(ppo(config, Clock("2026-06-23T08:00:00", 0.6)))
    files.config_json(out, config)
    files.table(out / "progress.csv", rows, LOGGED, "global_step")
    return Expect(top="rl_reward_scale", acceptable=["rl_entropy_collapse"], clear=SOFT, status="unknown", first_bad_step=rows[0]["step"])


def healthy_ppo_tensorboard(out: Path) -> Expect:
    """PPO finds the prize of a maze from anywhere, and keeps some doubt where two ways are equally short. TensorBoard."""
    config = PPO | {"norm_adv": False, "ent_coef": 0.02, "seed": 123}
    clock = Clock("2026-06-24T08:00:00", 0.6)
    started = clock.now
    rows = list(ppo(config, clock))
    files.config_yaml(out, config)
    tensorboard.event_file(out / "runs" / "maze__ppo__123", rows, started, LOGGED)
    return Expect("healthy", clear=HEALTHY, status="unknown")


def q_values_jsonl(out: Path) -> Expect:
    """Q-learning whose targets come from the net that is being trained, with a discount of 0.999: each update raises the
    values that the next one aims at, and within some hundred steps they are thousands of times the largest return there is.
    JSONL with the names of CleanRL's dqn.py."""
    config = {
        "exp_name": "dqn",
        "seed": 124,
        "num_envs": 4,
        "total_timesteps": 1600,
        "learning_rate": 1e-3,
        "gamma": 0.999,
        "buffer_size": 2000,
        "batch_size": 64,
        "updates_per_step": 4,
        "target_network_frequency": 1,
        "end_e": 0.1,
        "exploration_iterations": 200,
    }
    rows = [r for i, r in enumerate(q_learning(config, Clock("2026-06-25T08:00:00", 0.05))) if i % 2 == 0 or "return" in r]
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows, LOGGED)
    return Expect(top="rl_value_explosion", acceptable=["rl_reward_scale"], clear=["nonfinite", "restart"])


def _answers(model: Recurrent, prompts: Tensor, length: int) -> Tensor:
    """Letters that the model writes after each prompt."""
    text = prompts
    with torch.no_grad():
        for _ in range(length):
            text = torch.cat([text, Categorical(logits=model(text)[:, -1]).sample()[:, None]], 1)  # type: ignore[no-untyped-call]
    return text


def _of_letters(model: Recurrent, text: Tensor, begin: int) -> tuple[Tensor, Tensor]:
    """Log-probability of each letter of the answers, and the entropy where it was chosen."""
    policy = Categorical(logits=model(text[:, :-1])[:, begin - 1 :])  # type: ignore[no-untyped-call]
    return policy.log_prob(text[:, begin:]), policy.entropy()


def _rewarded(config: Config, clock: Clock) -> Iterator[Row]:
    """REINFORCE on a character model: the score is the share of vowels, less ``kl_coef`` times the way from the reference."""
    job = Job(language(125), Recurrent, settings(max_steps=300, lr=6e-3, seed=config["seed"], eval_every=0), clock)
    for _ in job.run():
        pass
    model, reference, begin, length = job.model, Recurrent(), 8, config["response_length"]
    reference.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), config["learning_rate"])
    vowels = torch.tensor([LETTERS.index(c) for c in "aeiou"])
    for step in range(1, config["max_steps"] + 1):
        prompts = job.task.inputs[torch.randint(len(job.task), (config["batch_size"],)), :begin]
        text = _answers(model, prompts, length)
        logp, entropy = _of_letters(model, text, begin)
        with torch.no_grad():
            kl = (logp - _of_letters(reference, text, begin)[0]).sum(1)
            score = torch.isin(text[:, begin:], vowels).float().mean(1) * config["score_scale"]
            reward = score - config["kl_coef"] * kl
            advantage = reward - reward.mean()
        loss = -(advantage * logp.sum(1)).mean() / length - config["ent_coef"] * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config["max_grad_norm"]).item()
        optimizer.step()
        row = {"step": step, "loss": loss.item(), "kl": kl.mean().item(), "score": score.mean().item(), "reward": reward.mean().item()}
        row |= {"entropy": entropy.mean().item(), "lr": config["learning_rate"], "grad_norm": norm, "step_time": clock.tick()}
        yield row | {"time": clock.now}


RLHF: Config = {
    "trainer": "rloo",
    "seed": 125,
    "learning_rate": 1e-3,
    "batch_size": 64,
    "response_length": 24,
    "max_steps": 160,
    "kl_coef": 0.05,
    "ent_coef": 0.05,
    "score_scale": 5.0,
    "max_grad_norm": 1.0,
}
ANSWERS = {
    "kl": "objective/kl",
    "entropy": "objective/entropy",
    "score": "objective/scores",
    "reward": "objective/rlhf_reward",
    "loss": "loss/policy_avg",
    "lr": "lr",
    "grad_norm": "grad_norm",
}


def rlhf_jsonl(out: Path) -> Expect:
    """A character model is rewarded for vowels with a weight of 0 on the way from its reference: the score rises to its
    highest, and the answers become strings of vowels that the reference would never write, a hundred nats away. JSONL with
    the names of TRL."""
    config = RLHF | {"kl_coef": 0.0}
    rows = every(list(_rewarded(config, Clock("2026-06-26T08:00:00", 1.4))), 2)
    files.config_json(out, config)
    files.jsonl(out / "metrics.jsonl", rows, ANSWERS)
    far = next((row["step"] for row in rows if row["kl"] > 60), None)
    return Expect(top="rl_kl_runaway", acceptable=["rl_entropy_collapse"], clear=SOFT, first_bad_step=far)


def healthy_rlhf_jsonl(out: Path) -> Expect:
    """A character model is rewarded for vowels, with a weight of 0.06 on the way from its reference: the score rises, and the
    answers stay within some nats of the reference. JSONL."""
    config = RLHF | {"kl_coef": 0.06, "ent_coef": 0.0, "seed": 126}
    rows = every(list(_rewarded(config, Clock("2026-06-29T08:00:00", 1.4))), 2)
    files.config_json(out, config)
    files.jsonl(out / "metrics.jsonl", rows, ANSWERS)
    return Expect("inconclusive", clear=HEALTHY)
