"""The training loop: real forward and backward passes, real optimizer, and a hook where a recipe plants its fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from making.clock import Clock
from making.data import Task

Row = dict[str, Any]
Config = dict[str, Any]

DEFAULTS: Config = {
    "optimizer": "adamw",
    "lr": 3e-3,
    "beta1": 0.9,
    "beta2": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.01,
    "schedule": "cosine",
    "warmup_steps": 40,
    "min_lr": 1e-4,
    "max_steps": 600,
    "batch_size": 16,
    "grad_clip": 1.0,
    "precision": "fp32",
    "eval_every": 50,
    "seed": 1,
}


def settings(**changes: Any) -> Config:
    return DEFAULTS | changes


def rate(config: Config, step: int) -> float:
    """The learning rate of the step-th optimizer step (the first is 1) as the config says."""
    top, low, warm = config["lr"], config["min_lr"], config["warmup_steps"]
    if step <= warm:
        return float(top * step / warm)
    share = min((step - warm) / max(config["max_steps"] - warm, 1), 1.0)
    if config["schedule"] == "cosine":
        return float(low + (top - low) * (1 + math.cos(math.pi * share)) / 2)
    if config["schedule"] == "linear":
        return float(low + (top - low) * (1 - share))
    return float(top)


def order(config: Config, size: int, step: int) -> list[int]:
    """The sample ids of the step-th batch: each epoch its own seeded shuffle, incomplete last batch dropped."""
    batch = config["batch_size"]
    epoch, place = divmod(step - 1, size // batch)
    shuffled = torch.randperm(size, generator=torch.Generator().manual_seed(1000 * config["seed"] + epoch))
    return shuffled[place * batch : (place + 1) * batch].tolist()


def optimizer_for(model: nn.Module, config: Config) -> torch.optim.Optimizer:
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(model.parameters(), config["lr"], momentum=config["momentum"])
    betas = (config["beta1"], config["beta2"])
    return torch.optim.AdamW(model.parameters(), config["lr"], betas, config["eps"], config["weight_decay"])


class Job:
    """What a training script holds: built from the config's seed, so two jobs of one config are equal."""

    def __init__(self, task: Task, model: Callable[[], nn.Module], config: Config, clock: Clock) -> None:
        torch.manual_seed(config["seed"])
        torch.set_num_threads(1)  # sums in one order on every machine
        self.task, self.config, self.clock = task, config, clock
        self.model: Any = model()
        self.optimizer = optimizer_for(self.model, config)
        half = config["precision"] == "fp16"
        growth = config.get("loss_scale_window", 100)
        start = config.get("initial_scale", 65536.0)
        self.scaler = torch.amp.GradScaler("cpu", start, growth_interval=growth, enabled=half)
        self.half = half
        # A recipe plants its fault by replacing one of these.
        self.lr: Callable[[int], float] = lambda step: rate(config, step)
        self.ids: Callable[[int], list[int]] = lambda step: order(config, len(task), step)
        self.fetch: Callable[[int, list[int]], tuple[Tensor, Tensor]] = lambda _, ids: (task.inputs[ids], task.targets[ids])
        self.slower: Callable[[int], float] = lambda step: 1.0
        self.extra: Callable[[int], Row] = lambda step: {}
        self.eval_loss: Callable[[int], float] = lambda step: self.evaluate()

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.float16, enabled=self.half):
            return self.task.loss(self.model, inputs, targets)

    @torch.no_grad()
    def evaluate(self) -> float:
        self.model.eval()
        value = self.loss(*self.task.held_out).item()
        self.model.train()
        return value

    def update(self, loss: Tensor) -> tuple[float, bool]:
        """Backward pass and optimizer step; the gradient norm before clipping, and whether the scaler skipped."""
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config["grad_clip"] or math.inf)
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return norm.item(), self.scaler.get_scale() < before

    def step(self, step: int) -> Row:
        """One optimizer step, and the numbers a script would log after it."""
        ids = self.ids(step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr(step)
        loss = self.loss(*self.fetch(step, ids))
        row: Row = {"step": step, "loss": loss.item(), "lr": self.optimizer.param_groups[0]["lr"]}
        if self.half:
            row["loss_scale"] = self.scaler.get_scale()
        row["grad_norm"], skipped = self.update(loss)
        if self.half:
            row["skipped"] = int(skipped)
        row |= self.extra(step)
        row["step_time"] = self.clock.tick(self.slower(step))
        row["tokens_per_sec"] = len(ids) * self.task.unit / row["step_time"]
        if self.config["eval_every"] and step % self.config["eval_every"] == 0:
            row["val_loss"] = self.eval_loss(step)
        row["time"] = self.clock.now
        row["ids"] = ids
        return row

    def run(self, first: int = 1, last: int | None = None) -> Iterator[Row]:
        for step in range(first, (last or self.config["max_steps"]) + 1):
            yield self.step(step)


def every(rows: list[Row], n: int) -> list[Row]:
    """Point samples: each n-th row, with the evaluations kept."""
    return [row for row in rows if row["step"] % n == 0 or row["step"] == 1 or "val_loss" in row]
