"""Train and evaluation against each other, and runs that differ only in their seed."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from making import files, tensorboard
from making.clock import Clock
from making.data import Task, clusters, cross_entropy
from making.expect import Expect, healthy
from making.models import Perceptron
from making.training import Job, every, settings


def overfitting_keras(out: Path) -> Expect:
    """400 samples for 60 epochs: the training loss goes on falling, the validation loss turns up after a few epochs.
    Keras' log, one line an epoch."""
    config = settings(max_steps=1500, lr=2e-3, batch_size=16, seed=91, eval_every=25, schedule="constant", weight_decay=0.0)
    job = Job(clusters(71, samples=400, spread=0.8), lambda: Perceptron(width=128), config, Clock("2026-05-11T08:00:00", 0.02))
    rows = list(job.run())
    files.config_json(out, config)
    files.keras(out / "training.csv", rows, epoch=25)
    best = min((row for row in rows if "val_loss" in row), key=lambda row: row["val_loss"])
    return Expect(
        top="overfitting",
        findings=["train_eval_gap"],
        clear=["nonfinite", "restart", "divergence"],
        first_bad_step=best["step"] // 25 - 1,
        emulated="Keras (its log's layout is followed) and the clock",
    )


def leakage_jsonl(out: Path) -> Expect:
    """The validation samples are a part of the training set: their loss follows the training loss into memorisation of
    noisy labels, and the honest test at the end is far worse. JSONL, and the split that shows it."""
    config = settings(max_steps=1600, lr=2e-3, batch_size=16, seed=92, eval_every=50, schedule="constant", weight_decay=0.0)
    task = clusters(72, samples=480, spread=0.9)
    test = task.held_out
    inside = list(range(0, 480, 4))
    task.held_out = (task.inputs[inside], task.targets[inside])
    job = Job(task, lambda: Perceptron(width=128), config, Clock("2026-05-12T08:00:00", 0.02))
    rows = list(job.run())
    task.held_out = test
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", every(rows, 5))
    files.lines(out / "metrics.jsonl", [f'{{"step": 1600, "test/loss": {job.evaluate():.6g}}}'], "a")
    files.config_json(out, {"train": list(range(480)), "val": inside}, "split.json")
    return Expect(
        top="train_eval_leakage", acceptable=["overfitting"], findings=["eval_shadow"], clear=["loss_spike", "nonfinite", "restart"]
    )


def eval_changed_lightning(out: Path) -> Expect:
    """From step 800 on the evaluation runs on other, noisier points: its loss steps up and stays, the training loss
    goes on undisturbed. Lightning's CSV."""
    config = settings(max_steps=1500, lr=2e-3, batch_size=32, seed=93, eval_every=50, schedule="constant")
    task = clusters(73)
    job = Job(task, Perceptron, config, Clock("2026-05-13T08:00:00", 0.02))
    before = job.eval_loss

    def evaluate(step: int) -> float:
        if step == 800:
            points, labels = task.held_out
            noise = torch.randn(points.shape, generator=torch.Generator().manual_seed(1))
            task.held_out = (points + 0.9 * noise, labels)
        return before(step)

    job.eval_loss = evaluate
    files.lightning(out, list(job.run()), config, epoch=250, log_every=10)
    return Expect(
        top="eval_changed",
        findings=["train_eval_gap"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        first_bad_step=799,
        emulated="Lightning's logger (its file's layout is followed) and the clock",
    )


def _parity() -> Task:
    """The parity of five of twelve bits: nothing to follow for long, then a sudden fall, or none."""
    generator = torch.Generator().manual_seed(5)
    bits = torch.randint(2, (6000, 12), generator=generator)
    labels = bits[:, :5].sum(1) % 2
    points: Tensor = bits * 2.0 - 1
    return Task(points[:5000], labels[:5000], (points[5000:], labels[5000:]), cross_entropy, 500)


def seeds_far_apart(out: Path) -> Expect:
    """Four runs of one config that differ only in their seed: two learn parity, the others stay at ln 2 = 0.693 or a
    little above. A CSV each."""
    for seed in (1, 2, 3, 4):
        config = settings(
            max_steps=700, lr=0.2, optimizer="sgd", momentum=0.9, schedule="constant", seed=seed, batch_size=32, eval_every=100
        )
        job = Job(_parity(), lambda: Perceptron(12, 12, 2, 1, torch.tanh), config, Clock(f"2026-05-14T0{seed}:00:00", 0.01))
        files.config_yaml(out / f"seed_{seed}", config)
        names = {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val_loss"}
        files.table(out / f"seed_{seed}" / "log.csv", every(list(job.run()), 5), names)
    return Expect(top="seed_variance", acceptable=["lr_too_high"], findings=["seed_spread"], clear=["nonfinite", "restart"])


def seeds_alike(out: Path) -> Expect:
    """Three runs of one config that differ only in their seed and end alike. TensorBoard each."""
    for seed in (10, 11, 12):
        config = settings(max_steps=500, lr=2e-3, seed=seed, batch_size=32, eval_every=100)
        job = Job(clusters(75), Perceptron, config, Clock(f"2026-05-15T{seed}:00:00", 0.03))
        started = job.clock.now
        files.config_yaml(out / f"seed_{seed}", config)
        tensorboard.event_file(out / f"seed_{seed}" / "tb", every(list(job.run()), 5), started, pid=seed)
    return healthy()
