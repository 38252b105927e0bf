"""Faults of the optimizer's settings: rate, warmup, schedule, clipping, second moment."""

from __future__ import annotations

import math
from pathlib import Path

from making import console, files
from making.clock import Clock
from making.data import clusters, language
from making.expect import Expect, spike
from making.models import Perceptron, Recurrent, Transformer, squared_relu
from making.training import Job, every, rate, settings


def lr_too_high_diverges(out: Path) -> Expect:
    """Momentum SGD with a rate the recurrent net stands until the schedule reaches its peak: it learns for a while,
    then the loss goes up and stays above where it began. CSV."""
    config = settings(
        max_steps=400, optimizer="sgd", momentum=0.9, lr=6.0, warmup_steps=300, seed=3, schedule="constant", grad_clip=1.0, weight_decay=0.0
    )
    job = Job(language(22), Recurrent, config, Clock("2026-03-10T13:00:00", 0.21))
    rows = list(job.run())
    files.config_yaml(out, config)
    files.table(out / "log.csv", rows, {"loss": "train/loss", "lr": "train/lr", "grad_norm": "train/grad_norm"})
    return Expect(top="lr_too_high", acceptable=["warmup_too_short"], findings=["divergence"], clear=["restart"])


def swinging_rate_csv(out: Path) -> Expect:
    """Momentum SGD with a rate that grows through the whole run, as in a range test that nobody stopped: the perceptron
    learns, then the loss swings ever wider and is lost. CSV."""
    config = settings(
        max_steps=600,
        optimizer="sgd",
        momentum=0.9,
        lr=1.0,
        warmup_steps=550,
        seed=11,
        schedule="constant",
        batch_size=64,
        weight_decay=0.0,
        grad_clip=1.0,
    )
    job = Job(clusters(61, samples=3200), Perceptron, config, Clock("2026-03-12T08:00:00", 0.03))
    rows = list(job.run())
    files.config_yaml(out, config)
    files.table(out / "log.csv", rows, {"loss": "train/loss", "lr": "train/lr", "grad_norm": "train/grad_norm"})
    return Expect(top="lr_too_high", findings=["oscillation", "divergence"], clear=["restart", "nonfinite"])


def lr_too_low_keras(out: Path) -> Expect:
    """A rate of 2e-6 where 2e-3 is right: the loss creeps down in a straight line, far from what the data allow. Keras'
    log, one line an epoch."""
    config = settings(max_steps=2000, lr=2e-6, schedule="constant", warmup_steps=1, batch_size=64, seed=6, eval_every=50)
    job = Job(clusters(23, samples=3200), Perceptron, config, Clock("2026-03-11T08:00:00", 0.03))
    rows = list(job.run())
    files.config_json(out, config)
    files.keras(out / "training.csv", rows, epoch=50)
    return Expect(
        top="lr_too_low",
        acceptable=["frozen_parameters", "labels_wrong"],
        findings=["plateau"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        first_bad_step=0,
        emulated="Keras (its log's layout is followed) and the clock",
    )


def warmup_too_short_megatron(out: Path) -> Expect:
    """A post-norm transformer at its peak rate from the first step: the loss gets stuck at that of letter counts, near
    2.75; with 150 steps of warmup the same rate ends at 1.0 (checked). Console in Megatron's lines."""
    config = settings(max_steps=450, lr=0.016, warmup_steps=1, seed=12, beta2=0.999, eval_every=150)
    job = Job(language(24), lambda: Transformer(layers=6, norm="post"), config, Clock("2026-03-12T10:00:00", 0.41))
    rows = list(job.run())
    files.lines(out / "train.log", console.megatron(rows, config))
    return Expect(
        top="warmup_too_short",
        acceptable=["lr_too_high"],
        findings=["plateau"],
        clear=["restart", "nonfinite"],
        first_bad_step=1,
        emulated="Megatron's console lines and the clock",
    )


def schedule_wrong_units_jsonl(out: Path) -> Expect:
    """The schedule is stepped once for each of four micro-batches: the rate is down at a quarter of the run, and the
    loss stops there. JSONL."""
    config = settings(max_steps=800, lr=4e-3, seed=14, min_lr=0.0, gradient_accumulation_steps=4, warmup_steps=80, eval_every=100)
    job = Job(language(25), Recurrent, config, Clock("2026-03-13T17:00:00", 0.3))
    job.lr = lambda step: rate(config, min(4 * step, config["max_steps"]))
    rows = every(list(job.run()), 2)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows)
    return Expect(
        top="schedule_wrong_units",
        acceptable=["lr_too_low", "lr_jump"],
        findings=["schedule_length"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        first_bad_step=20,
    )


def lr_jump_recovers_csv(out: Path) -> Expect:
    """A callback sets the rate to thirty times its value for steps 301 to 360 and back: the loss jumps and needs more
    than a hundred steps to come back. CSV with rate and gradient norm."""
    config = settings(max_steps=800, lr=2e-3, seed=15, schedule="constant", eval_every=100)
    job = Job(language(26), Transformer, config, Clock("2026-03-16T08:20:00", 0.21))
    job.lr = lambda step: rate(config, step) * (30 if 301 <= step <= 360 else 1)
    rows = list(job.run())
    files.config_yaml(out, config)
    names = {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val_loss"}
    files.table(out / "log.csv", rows, names)
    return Expect(
        top="lr_jump",
        acceptable=["lr_too_high"],
        findings=["loss_spike", "lr_schedule"],
        clear=["nonfinite", "restart", "stall"],
        first_bad_step=301,
        spikes=[spike(rows, 301)],
    )


def lr_jump_stays_jsonl(out: Path) -> Expect:
    """From step 401 on the rate is a hundred times what the config says, and stays: the loss steps up and never comes
    back. JSONL."""
    config = settings(max_steps=800, lr=2e-3, seed=16, schedule="constant", eval_every=100)
    job = Job(language(27), Transformer, config, Clock("2026-03-16T14:20:00", 0.21))
    job.lr = lambda step: rate(config, step) * (100 if step > 400 else 1)
    rows = list(job.run())
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows)
    return Expect(
        top="lr_jump",
        acceptable=["lr_too_high"],
        findings=["loss_spike", "lr_schedule"],
        clear=["nonfinite", "restart", "stall"],
        first_bad_step=401,
        spikes=[spike(rows, 401)],
    )


def clipping_missing_jsonl(out: Path) -> Expect:
    """A perceptron with squared activations under momentum SGD without gradient clipping: it learns, the norm jumps
    by orders of magnitude, the loss blows up and is NaN; clipped at 0.1 the same run learns to the end (checked).
    JSONL."""
    config = settings(
        max_steps=640,
        optimizer="sgd",
        momentum=0.9,
        lr=0.02,
        warmup_steps=100,
        seed=18,
        schedule="constant",
        grad_clip=None,
        weight_decay=0.0,
        eval_every=0,
        batch_size=32,
    )
    task = clusters(28, samples=20000, spread=0.5)
    job = Job(task, lambda: Perceptron(act=squared_relu), config, Clock("2026-03-17T10:00:00", 0.17))
    rows = list(job.run())
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows)
    worst = max((row for row in rows if math.isfinite(row["loss"])), key=lambda row: row["loss"])["step"]
    return Expect(
        top="gradient_clipping_missing",
        acceptable=["lr_too_high"],
        findings=["grad_spike", "nonfinite"],
        clear=["restart"],
        first_bad_step=worst,
    )


def second_moment_csv(out: Path) -> Expect:
    """Adam with a short second-moment memory (beta2 0.9) and an epsilon of 1e-16 in a run whose gradients have become
    tiny: sudden spikes out of the quiet, which beta2 0.99 and epsilon 1e-6 do not have (checked). CSV."""
    config = settings(
        max_steps=700,
        lr=5e-3,
        beta2=0.9,
        eps=1e-16,
        seed=19,
        schedule="constant",
        warmup_steps=10,
        batch_size=64,
        eval_every=0,
        weight_decay=0.0,
    )
    job = Job(clusters(29, samples=1024, spread=0.32), Perceptron, config, Clock("2026-03-18T10:00:00", 0.03))
    rows = list(job.run())
    files.config_yaml(out, config)
    files.table(out / "log.csv", rows, {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm"})
    return Expect(top="optimizer_second_moment", acceptable=["lr_too_high"], findings=["loss_spike"], clear=["restart", "nonfinite"])
