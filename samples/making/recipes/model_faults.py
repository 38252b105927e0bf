"""Faults of the model: how it begins, which parts of it move, what runs away inside."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from torch import nn

from making import checkpoints, files, tensorboard
from making.clock import Clock
from making.data import clusters, language
from making.expect import Expect, spike
from making.models import Perceptron, Recurrent, Transformer
from making.training import Job, every, settings


def large_init_jsonl(out: Path) -> Expect:
    """The output layer starts with weights thirty times too large: the first loss is far above ln 30 = 3.40, and the
    run stays behind. JSONL."""
    config = settings(max_steps=500, lr=2e-3, seed=61, init_std=3.0)

    def model() -> nn.Module:
        net = Transformer()
        nn.init.normal_(net.head.weight, std=config["init_std"])
        return net

    job = Job(language(41), model, config, Clock("2026-04-06T09:00:00", 0.2))
    rows = every(list(job.run()), 2)
    files.config_yaml(out, config | {"vocab_size": 30})
    files.jsonl(out / "metrics.jsonl", rows)
    return Expect(
        top="init_too_large", acceptable=["lr_too_high"], findings=["initial_loss"], clear=["nonfinite", "restart"], first_bad_step=1
    )


def attention_logits_jsonl(out: Path) -> Expect:
    """No q/k norm and a high rate: the attention logits run away to thousands, and the loss stays at one and a half
    times of what a sound run reaches. JSONL that logs the largest logit."""
    config = settings(max_steps=500, lr=0.06, seed=62, schedule="constant", qk_norm=False, eval_every=100)
    job = Job(language(42), lambda: Transformer(heads=2), config, Clock("2026-04-07T09:00:00", 0.2))
    job.extra = lambda step: {"attn_logit_max": job.model.peak()}
    rows = every(list(job.run()), 2)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows, files.NAMES | {"attn_logit_max": "train/max_attention_logit"})
    return Expect(top="attention_logit_growth", acceptable=["lr_too_high"], clear=["restart", "nonfinite"])


def dead_units_csv(out: Path) -> Expect:
    """All hidden biases start far below zero, so no ReLU ever fires: the loss sits at chance, ln 10 = 2.303, and only
    the last bias has a gradient. CSV with the share of dead units."""
    config = settings(max_steps=600, lr=2e-3, seed=63, batch_size=32, eval_every=100, num_classes=10)

    def model() -> nn.Module:
        net = Perceptron(act=nn.functional.relu)
        for layer, value in zip(net.layers, (-12.0, -6.0), strict=True):
            nn.init.constant_(cast(nn.Linear, layer).bias, value)
        return net

    job = Job(clusters(43), model, config, Clock("2026-04-08T09:00:00", 0.02))

    @torch.no_grad()
    def dead(step: int) -> dict[str, float]:
        hidden = job.task.inputs[job.ids(step)]
        for layer in job.model.layers:
            hidden = layer(hidden).relu()
        return {"dead": (hidden == 0).all(0).float().mean().item()}

    job.extra = dead
    rows = every(list(job.run()), 2)
    files.config_yaml(out, config)
    names = {"loss": "train_loss", "lr": "lr", "grad_norm": "grad_norm", "dead": "dead_fraction", "val_loss": "val_loss"}
    files.table(out / "log.csv", rows, names)
    return Expect(
        top="dead_or_saturated_units",
        acceptable=["frozen_parameters", "init_too_large", "labels_wrong"],
        findings=["plateau"],
        clear=["loss_spike", "nonfinite", "restart"],
        first_bad_step=1,
    )


def frozen_body_jsonl(out: Path) -> Expect:
    """Everything but the head has requires_grad off, left over from a probe: the loss stops early, the norm of the
    body's gradient is 0 and its tensors are equal in all checkpoints. JSONL and three small safetensors files."""
    config = settings(max_steps=450, lr=4e-3, seed=64, eval_every=50)
    job = Job(language(44), lambda: Recurrent(width=32, embedding=16), config, Clock("2026-04-09T09:00:00", 0.2))
    for name, parameter in job.model.named_parameters():
        parameter.requires_grad_(name.startswith("head"))

    def norms(step: int) -> dict[str, float]:
        found = {"grad_norm_head": job.model.head.weight.grad.norm().item()}
        return found | {"grad_norm_cell": 0.0, "grad_norm_embedding": 0.0}

    job.extra = norms
    rows = []
    for row in job.run():
        rows.append(row)
        if row["step"] % 150 == 0:
            checkpoints.safetensors(out / f"step_{row['step']:06d}" / "model.safetensors", job.model)
    files.config_yaml(out, config)
    layers = {f"grad_norm_{part}": f"grad_norm/{part}" for part in ("head", "cell", "embedding")}
    files.jsonl(out / "metrics.jsonl", every(rows, 3), files.NAMES | layers)
    return Expect(
        top="frozen_parameters",
        acceptable=["lr_too_low"],
        findings=["frozen_weights"],
        clear=["loss_spike", "nonfinite", "restart", "divergence"],
        first_bad_step=1,
    )


def bit_flip_tensorboard(out: Path) -> Expect:
    """At step 262 a bit of one weight flips (an exponent bit in the embedding of the space): the loss jumps from one
    step to the next with no warning, and the checkpoints after it hold one weight of a size that no training reaches.
    TensorBoard."""
    config = settings(max_steps=480, lr=5e-3, seed=65, eval_every=60)
    job = Job(language(45), lambda: Recurrent(width=32, embedding=16), config, Clock("2026-04-10T09:00:00", 0.2))
    started = job.clock.now
    rows = []
    for row in job.run():
        rows.append(row)
        if row["step"] == 261:
            letter = job.model.embedding.weight.data[0]
            letter.view(torch.int32)[int(letter.abs().argmin())] ^= 1 << 30
        if row["step"] % 160 == 0:
            checkpoints.safetensors(out / "checkpoints" / f"step_{row['step']:06d}" / "model.safetensors", job.model)
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", rows, started)
    return Expect(
        top="silent_data_corruption",
        acceptable=["bad_data_batch", "nan_from_layer"],
        findings=["checkpoint_damage"],
        clear=["restart", "lr_schedule"],
        first_bad_step=262,
        spikes=[spike(rows, 262)],
        emulated="the bit flip and the clock",
    )
