"""Small trainings made for real, and the worker's commands in this process: what the tests of replay share. Needs torch."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from forensics import at_path
from forensics.case import Case
from forensics.replays import into_case, request
from forensics.replays.client import ReplayFailed
from forensics.replays.session import Options
from forensics.replays.training import commands, states

PLAIN = """
import torch
from torch import nn

def factor(step):
    return 1.0

def build():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: factor(k))

def batch(step):
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
    y = torch.tanh(x.sum(1))
    if step in BAD:
        y[[2, 5]] = 9.0
    return {"x": x, "y": y, "ids": torch.arange(8) + 8 * step}

def loss(model, batch, reduction="mean"):
    rows = (model(batch["x"])[:, 0] - batch["y"]) ** 2
    return rows if reduction == "none" else rows.mean()

CLIP = 5.0
BAD = {60}
"""


class Direct:
    """The worker's commands in this process: the same code without the process around it."""

    def __init__(self, python: str, adapter: Path, order: Any = None, **_: Any) -> None:
        self.order = order
        self.session, self.adapter, self.steps, self.seconds = commands.Session(), adapter, 0, 0.0
        self.beside: list[str] = []

    def __enter__(self) -> Direct:
        self.environment = patch.dict(os.environ)  # on the CPU a worker hides the GPUs from itself
        self.environment.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.environment.stop()
        torch.use_deterministic_algorithms(False)

    def open(self, device: str, threads: int, memory: int = 1 << 30) -> dict[str, Any]:
        return self.ask("open", adapter=str(self.adapter), device=device, threads=0, memory=memory, order=self.order)

    def ask(self, op: str, on_step: Callable[[Any], None] | None = None, **arguments: Any) -> dict[str, Any]:
        def step(row: Any) -> None:
            self.steps += 1
            if on_step:
                on_step(row)

        try:
            return commands.do(self.session, {"op": op, **arguments}, step)
        except Exception as e:
            told = commands.describe(e)
            raise ReplayFailed(told["what"], told["traceback"], told["kind"]) from e


def train(
    folder: Path, extra: str = "", steps: int = 90, save: int | None = 40, stale: int | None = None, shown: slice = slice(None)
) -> Path:
    """Trains for real, logs it (of each batch the loss of the rows `shown`), and leaves the adapter; at step `stale` the moments of step
    `save` are put in once more."""
    path = folder / "train.py"
    path.write_text(PLAIN + textwrap.dedent(extra))
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), "train.py", "exec"), space)
    model, optimizer, scheduler = space["build"]()
    kept: Any = None
    with (folder / "metrics.jsonl").open("w") as f:
        for step in range(steps):
            if step == save:
                (folder / "checkpoints").mkdir()
                kept = states.copied(optimizer.state_dict())
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step,
                    "scheduler": {k: v for k, v in scheduler.state_dict().items() if k != "lr_lambdas"},
                }
                torch.save(state, folder / "checkpoints" / f"step_{step}.pt")
            optimizer.zero_grad()
            batch = space["batch"](step)
            loss = space["loss"](model, batch)
            loss.backward()
            told = space["loss"](model, {k: v[shown] for k, v in batch.items()})
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            lr = optimizer.param_groups[0]["lr"]
            if step == stale:
                optimizer.load_state_dict({"state": kept["state"], "param_groups": optimizer.state_dict()["param_groups"]})
            row = {"step": step, "loss": float(told.detach()), "grad_norm": float(norm), "lr": lr}
            optimizer.step()
            scheduler.step()
            f.write(json.dumps(row) + "\n")
    return path


def replayed(folder: Path, adapter: Path, budget: int | None = None, **more: Any) -> tuple[Case, Any]:
    run = at_path.read(str(folder))
    return into_case.replayed(run, Options(adapter, sys.executable, "cpu", budget, **more), None)


def outcome(result: Any, begin: str) -> str:
    return next(str(a["outcome"]) for a in result.document["arms"] if a["name"].startswith(begin))


@contextmanager
def direct() -> Iterator[None]:
    """Inside, a replay runs its commands in this process."""
    with patch.object(request, "Worker", Direct):
        yield


def train_again(folder: Path, extra: str) -> Path:
    path = folder / "train.py"
    path.write_text(PLAIN + extra)
    return path
