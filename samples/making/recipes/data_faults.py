"""Faults that come with the data: a batch, a shard, a shift, targets that are wrong or missing."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from making import console, files, tensorboard
from making.clock import Clock
from making.data import LETTERS, clusters, language
from making.expect import Expect, spike
from making.models import Perceptron, Recurrent, Transformer
from making.training import Job, every, settings


def _scrambled(like: Tensor, seed: int) -> Tensor:
    """Characters drawn at random: what a torn or wrongly decoded read looks like."""
    return torch.randint(len(LETTERS), like.shape, generator=torch.Generator().manual_seed(seed))


def bad_batch_jsonl(out: Path) -> Expect:
    """One batch of random characters at step 347 of a sound run: loss and gradient norm jump and are back within a few
    steps. JSONL, and a manifest that says which samples each step saw."""
    config = settings(max_steps=600, lr=5e-3, seed=31)
    job = Job(language(11, samples=10000), Recurrent, config, Clock("2026-03-02T08:15:00", 0.26))

    def fetch(step: int, ids: list[int]) -> tuple[Tensor, Tensor]:
        inputs, targets = job.task.inputs[ids], job.task.targets[ids]
        return (_scrambled(inputs, 1), _scrambled(targets, 2)) if step == 347 else (inputs, targets)

    job.fetch = fetch
    rows = list(job.run())
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows)
    files.manifest_jsonl(out / "batches.jsonl", rows, job.task)
    return Expect(
        top="bad_data_batch",
        acceptable=["silent_data_corruption"],
        findings=["loss_spike", "grad_spike"],
        clear=["divergence", "nonfinite", "restart", "lr_schedule", "stall"],
        first_bad_step=347,
        spikes=[spike(rows, 347)],
        culprits=[347],
        culprit_samples=rows[346]["ids"],
    )


def bad_labels_batch_csv(out: Path) -> Expect:
    """The labels of one batch are all wrong (shifted by five classes) at step 618: a spike of a few steps in a noisy
    classifier; CSV, and a manifest in CSV."""
    config = settings(max_steps=900, lr=2e-3, batch_size=16, seed=8, eval_every=100)
    job = Job(clusters(12, samples=15000, spread=0.5), Perceptron, config, Clock("2026-03-03T18:41:30", 0.031))

    def fetch(step: int, ids: list[int]) -> tuple[Tensor, Tensor]:
        targets = job.task.targets[ids]
        return job.task.inputs[ids], (targets + 5) % 10 if step == 618 else targets

    job.fetch = fetch
    rows = list(job.run())
    files.config_yaml(out, config)
    files.table(out / "log.csv", rows, {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val_loss"})
    files.manifest_csv(out / "batches.csv", rows, job.task)
    return Expect(
        top="bad_data_batch",
        acceptable=["silent_data_corruption"],
        findings=["loss_spike"],
        clear=["divergence", "nonfinite", "restart", "lr_schedule"],
        first_bad_step=618,
        spikes=[spike(rows, 618)],
        culprits=[618],
        culprit_samples=rows[617]["ids"],
    )


def bad_sample_shuffled_jsonl(out: Path) -> Expect:
    """One sample of 960 is thirty times too large and has a wrong label. Each epoch deals the data anew, so it comes at
    another step each time, and the loss jumps wherever it comes. JSONL and a manifest."""
    config = settings(max_steps=720, lr=2e-3, batch_size=8, seed=12, eval_every=0, schedule="constant")
    task = clusters(19, samples=960, spread=0.5)
    bad = 417
    task.inputs[bad] *= 30
    task.targets[bad] = (task.targets[bad] + 5) % 10
    job = Job(task, Perceptron, config, Clock("2026-03-11T07:20:00", 0.028))
    rows = list(job.run())
    hit = [row["step"] for row in rows if bad in row["ids"]]
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows)
    files.manifest_jsonl(out / "batches.jsonl", rows, task)
    return Expect(
        top="bad_data_batch",
        findings=["loss_spike", "spike_data"],
        clear=["divergence", "nonfinite", "restart", "lr_schedule"],
        first_bad_step=hit[0],
        spikes=[spike(rows, hit[-1])],
        culprits=hit,
        culprit_samples=[bad],
    )


def bad_shard_tensorboard(out: Path) -> Expect:
    """Samples are read shard after shard, and shard 8 (steps 257 to 288) holds scrambled text: the loss is high from
    the shard's first batch to its last. TensorBoard and a manifest."""
    config = settings(max_steps=520, lr=4e-3, batch_size=16, seed=3, shuffle=False, schedule="constant")
    task = language(13, samples=9000, shard_size=512)
    spoiled = slice(8 * 512, 9 * 512)
    task.inputs[spoiled] = _scrambled(task.inputs[spoiled], 5)
    task.targets[spoiled] = _scrambled(task.targets[spoiled], 6)
    job = Job(task, Transformer, config, Clock("2026-03-04T10:05:12", 0.22))
    job.ids = lambda step: list(range((step - 1) * 16, step * 16))
    started = job.clock.now
    rows = list(job.run())
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", rows, started)
    files.manifest_jsonl(out / "data_order.jsonl", rows, task)
    return Expect(
        top="bad_data_pocket",
        findings=["loss_spike"],
        clear=["nonfinite", "restart", "lr_schedule", "stall"],
        first_bad_step=257,
        spikes=[spike(rows, 257)],
        culprits=list(range(257, 289)),
    )


def data_shift_jsonl(out: Path) -> Expect:
    """From step 400 the text comes from another, noisier language: the loss steps up and comes back only part of the
    way. Nothing is wrong with any sample. JSONL and a manifest whose shards change their name."""
    config = settings(max_steps=800, lr=3e-3, seed=17, schedule="constant", eval_every=80)
    job = Job(language(14, samples=13000), Recurrent, config, Clock("2026-03-05T06:00:00", 0.27))
    other = language(99, samples=13000, noise=0.12)
    job.task.shard = lambda sample: f"{'en' if sample < 6384 else 'web'}-{sample // 256:03d}"  # type: ignore[method-assign]
    job.ids = lambda step: list(range((step - 1) * 16, step * 16))
    job.fetch = lambda step, ids: ((other if step >= 400 else job.task).inputs[ids], (other if step >= 400 else job.task).targets[ids])
    rows = list(job.run())
    files.config_yaml(out, config | {"shuffle": False})
    files.jsonl(out / "metrics.jsonl", rows)
    files.manifest_jsonl(out / "data_order.jsonl", every(rows, 4), job.task)
    return Expect(
        top="data_distribution_shift",
        acceptable=["bad_data_pocket"],
        findings=["loss_spike"],
        clear=["nonfinite", "restart", "lr_schedule", "stall"],
        first_bad_step=400,
        spikes=[spike(rows, 400)],
    )


def wrong_labels_csv(out: Path) -> Expect:
    """The label file was shuffled, the inputs were not: the targets say nothing of the inputs, and the loss stays at
    chance, ln 10 = 2.303, while gradients and rate are normal. CSV with accuracy."""
    config = settings(max_steps=1000, lr=1e-3, batch_size=64, seed=4, eval_every=100, num_classes=10)
    task = clusters(15, samples=60000)
    mixed = torch.randperm(len(task), generator=torch.Generator().manual_seed(1))
    task.targets = task.targets[mixed]
    task.held_out = (task.held_out[0], task.held_out[1].flip(0))
    job = Job(task, Perceptron, config, Clock("2026-03-06T12:30:00", 0.04))

    @torch.no_grad()
    def accuracy(step: int) -> dict[str, float]:
        ids = job.ids(step)
        return {"accuracy": float((job.model(task.inputs[ids]).argmax(-1) == task.targets[ids]).float().mean())}

    job.extra = accuracy
    rows = every(list(job.run()), 4)
    files.config_json(out, config)
    names = {"loss": "train_loss", "accuracy": "train_acc", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val_loss"}
    files.table(out / "log.csv", rows, names)
    return Expect(
        top="labels_wrong",
        acceptable=["frozen_parameters", "dead_or_saturated_units"],
        findings=["plateau"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        first_bad_step=1,
    )


def masked_targets_titan(out: Path) -> Expect:
    """From step 301 on no target of any batch takes part (a template that is never found): loss and gradient norm are
    exactly 0. Console in torchtitan's lines."""
    config = settings(max_steps=480, lr=3e-3, seed=9, eval_every=0)
    task = language(16)
    per_token = task.loss
    # Mean over the targets that take part, and 0 where none does.
    task.loss = lambda model, x, y: per_token(model, x, y) if (y >= 0).any() else model(x).sum() * 0 + 0.0
    job = Job(task, Transformer, config, Clock("2026-03-09T15:10:00", 0.24))
    job.fetch = lambda step, ids: (task.inputs[ids], torch.full_like(task.targets[ids], -100) if step > 300 else task.targets[ids])
    rows = list(job.run())
    files.config_yaml(out, config, "job_config.yaml")
    files.lines(out / "logs" / "rank0.log", console.titan(rows, "", 2))
    return Expect(
        top="labels_all_masked",
        findings=["zero_loss"],
        clear=["nonfinite", "restart", "divergence"],
        first_bad_step=302,
        emulated="torchtitan's console lines, memory figures and the clock",
    )
