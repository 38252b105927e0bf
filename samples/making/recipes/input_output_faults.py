"""Faults between data, model and loss: raw inputs, a softmax too many, an evaluation in training mode; and a sound run with dropout."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from making import files
from making.clock import Clock
from making.data import Task, clusters
from making.expect import HEALTHY, Expect
from making.models import Perceptron
from making.training import Config, Job, every, settings

NAMES = files.NAMES | {"val_acc": "val/accuracy", "epoch": "epoch"}


def _with_accuracy(out: Path, job: Job, config: Config, *, eval_mode: bool = True, log_every: int = 5) -> None:
    """Runs the job and logs every few steps, the epoch and the accuracy of evaluations."""

    @torch.no_grad()
    def measured(step: int) -> dict[str, float]:
        row = {"epoch": step * config["batch_size"] / len(job.task)}
        if step % config["eval_every"] == 0:
            points, labels = job.task.held_out
            job.model.train(not eval_mode)
            row["val_acc"] = float((job.model(points).argmax(-1) == labels).float().mean())
            job.model.train()
        return row

    job.extra = measured
    rows = every(list(job.run()), log_every)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows, NAMES)


def double_softmax_jsonl(out: Path) -> Expect:
    """The model's last layer is a softmax, and cross_entropy applies another one: 9 of 10 answers come out right, and the loss
    stands at 1.6, because probabilities for logits can not take it below ln(e + 9) - 1 = 1.46. JSONL with accuracy."""
    config = settings(max_steps=900, lr=4e-3, batch_size=32, seed=121, eval_every=60, num_classes=10)
    task = clusters(121, spread=0.35)

    def twice(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(inputs).softmax(-1), targets)

    task.loss = twice
    _with_accuracy(out, Job(task, Perceptron, config, Clock("2026-06-15T08:00:00", 0.02)), config)
    return Expect(
        top="double_softmax",
        acceptable=["regularization_floor"],
        findings=["loss_of_probabilities"],
        clear=["nonfinite", "restart", "divergence", "loss_spike"],
        first_bad_step=1,
    )


def raw_inputs_jsonl(out: Path) -> Expect:
    """The inputs come in as they were measured, around 300 and hundreds apart, with the usual initialization: the first loss is
    far above ln 10 = 2.303, and the run is spent on undoing it. JSONL."""
    config = settings(max_steps=600, lr=2e-3, batch_size=32, seed=122, eval_every=60, num_classes=10, normalize_inputs=False)
    task = clusters(122)
    raw = Task(300 + 100 * task.inputs, task.targets, (300 + 100 * task.held_out[0], task.held_out[1]), task.loss, task.shard_size)
    _with_accuracy(out, Job(raw, Perceptron, config, Clock("2026-06-16T08:00:00", 0.02)), config)
    return Expect(
        top="inputs_not_normalized",
        acceptable=["init_too_large", "lr_too_high"],
        findings=["initial_loss"],
        clear=["nonfinite", "restart"],
        first_bad_step=1,
    )


class _Dropped(Perceptron):
    """Half of what the layers give to the head is dropped in training mode."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = nn.functional.dropout(self.act(layer(x)), 0.5, self.training)
        scores: Tensor = self.head(x)
        return scores


def _dropped(seed: int) -> tuple[Job, Config]:
    config = settings(
        max_steps=400,
        lr=3e-3,
        batch_size=128,
        seed=seed,
        eval_every=40,
        num_classes=10,
        dropout=0.5,
        normalize_inputs=True,
        warmup_steps=20,
    )
    return Job(clusters(seed, samples=51200, held_out=2000), _Dropped, config, Clock("2026-06-17T08:00:00", 0.02)), config


def eval_with_dropout_jsonl(out: Path) -> Expect:
    """model.eval() is missing, so half of the units are dropped in evaluations too: each evaluation costs what training costs,
    where the sound run beside it (healthy_dropout_jsonl) evaluates far below training. JSONL with the epoch."""
    job, config = _dropped(123)

    @torch.no_grad()
    def in_training_mode(step: int) -> float:
        return job.loss(*job.task.held_out).item()

    job.eval_loss = in_training_mode
    _with_accuracy(out, job, config, eval_mode=False, log_every=2)
    return Expect(
        top="eval_mode_missing",
        acceptable=[],
        findings=["eval_like_training_with_dropout"],
        clear=["nonfinite", "restart", "divergence", "loss_spike", "plateau"],
        first_bad_step=40,
    )


def healthy_dropout_jsonl(out: Path) -> Expect:
    """A sound run with a dropout of one half: evaluation lies below training throughout, as it should. JSONL with the epoch."""
    job, config = _dropped(124)
    _with_accuracy(out, job, config, log_every=2)
    return Expect(verdict="healthy", clear=HEALTHY)
