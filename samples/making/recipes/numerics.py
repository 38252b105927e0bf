"""Numbers that leave the range of their type, or a formula that has no value."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from making import console, files, tensorboard
from making.clock import Clock
from making.data import Task, clusters
from making.expect import Expect
from making.models import Perceptron, squared_relu
from making.training import Job, Row, every, settings


def _first(rows: list[Row], key: str = "loss") -> int:
    """The first logged step whose value is not finite."""
    return next(int(row["step"]) for row in rows if not torch.tensor(row[key]).isfinite())


def fp16_overflow_deepspeed(out: Path) -> Expect:
    """Half precision and squared activations before a layer norm, whose weights may grow for ever: when they pass
    65504 torch's dynamic scaler skips one step after the other, and the scale falls from 65536 to below 1, where the
    run gives up. Console in DeepSpeed's lines and a CSV."""
    config = settings(
        max_steps=600,
        lr=2.5e-3,
        precision="fp16",
        seed=51,
        batch_size=32,
        schedule="constant",
        eval_every=0,
        loss_scale_window=100,
        warmup_steps=60,
        weight_decay=0.0,
        min_loss_scale=1,
    )
    job = Job(
        clusters(31, samples=20000, spread=0.6),
        lambda: Perceptron(width=96, layers=4, act=squared_relu, norm=True),
        config,
        Clock("2026-04-01T09:30:00", 0.11),
    )
    rows: list[Row] = []
    for row in job.run():
        rows.append(row | {"samples_per_sec": 32 / row["step_time"]})
        if row["loss_scale"] <= 1 and row["skipped"]:
            break
    files.config_json(out, config, "ds_config.json")
    end = "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
    trace = ["Traceback (most recent call last):", '  File "train.py", line 118, in <module>', "    engine.step()", end]
    files.lines(out / "train.log", [*console.deepspeed(rows), *trace])
    names = {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm", "loss_scale": "loss_scale"}
    files.table(out / "log.csv", rows, names)
    skipped = [row["step"] for row in rows if row["skipped"]]
    lasting = next(a for a, b in zip(skipped, skipped[4:], strict=False) if b - a < 40)  # five skips in 40 steps
    return Expect(
        top="fp16_overflow",
        acceptable=["nan_from_layer"],
        findings=["loss_scale", "nonfinite"],
        clear=["restart"],
        status="crashed",
        first_bad_step=lasting,
        emulated="DeepSpeed's console lines, its exception and the clock",
    )


def nan_sample_csv(out: Path) -> Expect:
    """One sample of the batch of step 412 has a NaN among its features: the loss and then every weight is NaN; gradient
    norms before are quiet. CSV and a manifest."""
    config = settings(max_steps=520, lr=2e-3, seed=52, eval_every=100, batch_size=24)
    task = clusters(32, samples=14000)
    job = Job(task, Perceptron, config, Clock("2026-04-02T11:00:00", 0.03))
    culprit = job.ids(412)[9]
    task.inputs[culprit, 5] = torch.nan
    rows = list(job.run())
    files.config_yaml(out, config)
    names = {"loss": "loss", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val_loss"}
    files.table(out / "log.csv", rows, names)
    files.manifest_csv(out / "batches.csv", rows, task)
    return Expect(
        top="nan_from_sample",
        acceptable=["nan_from_layer"],
        findings=["nonfinite"],
        clear=["restart", "grad_spike", "divergence", "lr_schedule"],
        first_bad_step=_first(rows),
        culprits=[412],
        culprit_samples=[culprit],
    )


def _with_entropy(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """Logistic loss plus a little entropy, written with log(p) and log(1 - p): 0 times -inf once p rounds to 1."""
    scores = model(inputs)
    p = torch.sigmoid(scores)
    wanted = nn.functional.one_hot(targets, 10).float()
    entropy = -(p * p.log() + (1 - p) * (1 - p).log())
    return nn.functional.binary_cross_entropy_with_logits(scores, wanted) - 1e-3 * entropy.mean()


def nan_layer_tensorboard(out: Path) -> Expect:
    """An entropy term computes (1 - p) log(1 - p) in single precision: when the model is sure enough for some p to
    round to 1 the loss is NaN, whatever the batch; the data are finite and seen before. TensorBoard."""
    config = settings(max_steps=900, lr=4e-3, seed=53, schedule="constant", eval_every=0, batch_size=32, grad_clip=1.0)
    plain = clusters(33, samples=3200, spread=0.35)
    task = Task(plain.inputs, plain.targets, plain.held_out, _with_entropy, 500)
    job = Job(task, Perceptron, config, Clock("2026-04-03T15:45:00", 0.03))
    started = job.clock.now
    rows: list[Row] = []
    for row in job.run():
        rows.append(row)
        if len([r for r in rows if r["loss"] != r["loss"]]) > 60:
            break
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", rows, started)
    files.manifest_jsonl(out / "batches.jsonl", every(rows, 4), task)
    return Expect(
        top="nan_from_layer",
        acceptable=["nan_from_sample"],
        findings=["nonfinite"],
        clear=["restart", "lr_schedule"],
        status="unknown",
        first_bad_step=_first(rows),
    )
