"""Runs in which nothing is wrong, in the formats of five loggers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from making import console, files, tensorboard, wandb_offline
from making.clock import Clock
from making.data import clusters, language
from making.expect import Expect, healthy
from making.models import Perceptron, Recurrent, Transformer
from making.training import Job, every, settings


def healthy_tensorboard(out: Path) -> Expect:
    """A recurrent character model learns well; TensorBoard, a config in YAML."""
    config = settings(max_steps=700, lr=6e-3, batch_size=24, seed=11)
    job = Job(language(1), Recurrent, config, Clock("2026-02-03T09:12:44", 0.34))
    started = job.clock.now
    rows = every(list(job.run()), 2)
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", rows, started)
    return healthy()


def healthy_trainer_state(out: Path) -> Expect:
    """A small transformer learns well; Hugging Face's trainer_state.json with interval means of 10 steps."""
    config = settings(max_steps=800, lr=4e-3, seed=42, schedule="linear", min_lr=0.0, eval_every=100)
    job = Job(language(2), Transformer, config, Clock("2026-02-05T14:02:10", 0.21))
    rows = list(job.run())
    files.config_json(out, config, "run_args.json")
    files.trainer_state(out, rows, config, epoch=len(job.task) // config["batch_size"])
    return healthy("the Trainer (its file's layout and arithmetic are followed, transformers is not used) and the clock")


def healthy_lightning(out: Path) -> Expect:
    """A perceptron sorts points into ten classes; Lightning's sparse metrics.csv and hparams.yaml."""
    config = settings(max_steps=1250, lr=2e-3, batch_size=32, seed=7, eval_every=250, schedule="constant")
    job = Job(clusters(3), Perceptron, config, Clock("2026-02-07T20:40:00", 0.02))
    files.lightning(out, list(job.run()), config, epoch=250)
    return healthy("Lightning's logger (its file's layout is followed) and the clock")


def healthy_nanogpt(out: Path) -> Expect:
    """A small transformer with a constant rate; only a console log in nanoGPT's lines, every fifth step."""
    config = settings(max_steps=1001, lr=2e-3, schedule="constant", warmup_steps=60, seed=1337, eval_every=0)
    task = language(4)
    job = Job(task, lambda: Transformer(width=40), config, Clock("2026-02-11T07:30:21", 0.118))
    rows = []
    for row in job.run():
        if row["step"] % 200 == 1:
            with torch.no_grad():
                row["train_loss"] = task.loss(job.model, task.inputs[:256], task.targets[:256]).item()
            row["val_loss"] = job.evaluate()
        rows.append(row | {"tokens": config["batch_size"] * task.unit})
    head = [f"Overriding: {key} = {value}" for key, value in config.items()]
    files.lines(out / "train.log", [*head, *console.nanogpt(rows, config)])
    return healthy("nanoGPT's console lines and the step times")


def healthy_wandb(out: Path) -> Expect:
    """A recurrent character model, logged by the real wandb package in offline mode."""
    config = settings(max_steps=500, lr=5e-3, seed=5, warmup_steps=25, batch_size=20)
    job = Job(language(5), lambda: Recurrent(width=48), config, Clock("2026-02-17T16:21:05", 0.29))
    wandb_offline.offline_run(out, every(list(job.run()), 4), config, "wordlets", "k3v9q2xd")
    return healthy("the clock and the machine's name in wandb's file")


def healthy_noisy_jsonl(out: Path) -> Expect:
    """Tiny batches make a noisy but sound curve: single hard batches are no spikes; JSONL and a batch manifest."""
    config = settings(max_steps=900, lr=1.5e-3, batch_size=6, seed=23, eval_every=150)
    job = Job(clusters(6, samples=9000, spread=0.75), Perceptron, config, Clock("2026-02-19T11:00:09", 0.05))
    rows = every(list(job.run()), 2)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows)
    files.manifest_jsonl(out / "batches.jsonl", rows, job.task)
    return healthy()


def healthy_stale_monitor_jsonl(out: Path) -> Expect:
    """A sound perceptron whose script logs a metric of its own, the share of hidden units above zero; from step 361 on the
    monitor writes its last value again and again. The loss knows nothing of it: a lead, no trouble. JSONL."""
    config = settings(max_steps=500, lr=2e-3, seed=24, batch_size=24)
    job = Job(clusters(7), Perceptron, config, Clock("2026-02-20T10:00:00", 0.05))
    last: dict[str, float] = {}

    @torch.no_grad()
    def monitor(step: int) -> dict[str, float]:
        if step <= 360:
            hidden = job.model.layers[0](job.task.inputs[job.ids(step)])
            last["active"] = (hidden > 0).float().mean().item()
        return dict(last)

    job.extra = monitor
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", every(list(job.run()), 4), files.NAMES | {"active": "probe/fired_share"})
    return replace(healthy("the monitor that stops, and the clock"), findings=["odd_metric"])
