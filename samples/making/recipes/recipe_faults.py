"""Faults of the recipe and of the loop: decay, a loss summed for a mean, gradients kept, smoothing, classes, another vocabulary."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from making import console, files, tensorboard
from making.clock import Clock
from making.data import LETTERS, Task, clusters, language
from making.expect import Expect
from making.models import Perceptron, Transformer
from making.training import Config, Job, Row, every, settings

NAMES = {"loss": "train_loss", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val_loss", "val_acc": "val_acc"}


def _unclipped(config: Config) -> Config:
    """As a script writes it that knows no clipping."""
    return {key: value for key, value in config.items() if key != "grad_clip"}


@torch.no_grad()
def _accuracy(job: Job) -> float:
    points, labels = job.task.held_out
    return float((job.model(points).argmax(-1) == labels).float().mean())


def weight_decay_tensorboard(out: Path) -> Expect:
    """AdamW with a weight decay of 10 instead of 0.01: at a rate of 0.004 each step takes 4 % of every weight, and the
    transformer never gets further than the frequencies of letters. TensorBoard with the norm of the weights."""
    config = settings(max_steps=400, lr=4e-3, weight_decay=10.0, seed=101, grad_clip=0.0, schedule="linear", min_lr=0.0)
    job = Job(language(81), lambda: Transformer(width=32), config, Clock("2026-06-01T08:00:00", 0.2))
    started = job.clock.now
    job.extra = lambda step: {"norm": float(sum(p.detach().square().sum() for p in job.model.parameters()) ** 0.5)}
    rows = every(list(job.run()), 3)
    files.config_yaml(out, _unclipped(config) | {"vocab_size": len(LETTERS)})
    tensorboard.event_file(out / "tb", rows, started, files.NAMES | {"norm": "train/param_norm"})
    return Expect(
        top="weight_decay_too_strong", acceptable=["lr_too_high"], clear=["nonfinite", "restart", "lr_schedule"], first_bad_step=1
    )


def loss_summed_csv(out: Path) -> Expect:
    """The loss is summed over the 32 samples of a batch (reduction "sum") where the rate was chosen for their mean: it
    begins at 32 times ln 10, and every gradient is clipped. The evaluation takes the mean. CSV."""
    config = settings(max_steps=500, lr=0.02, optimizer="sgd", momentum=0.9, batch_size=32, seed=102, eval_every=20, num_classes=10)
    task = clusters(82)
    mean = task.loss
    job = Job(task, Perceptron, config, Clock("2026-06-02T08:00:00", 0.02))
    job.extra = lambda step: {"val_acc": _accuracy(job)} if step % config["eval_every"] == 0 else {}

    def summed(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return mean(model, inputs, targets) * (len(targets) if model.training else 1)

    task.loss = summed
    rows = every(list(job.run()), 2)
    adam = ("beta1", "beta2", "eps", "weight_decay")
    files.config_yaml(out, {key: value for key, value in config.items() if key not in adam})
    files.table(out / "log.csv", rows, NAMES)
    return Expect(top="loss_scaled_wrong", acceptable=["logger_artefact"], clear=["nonfinite", "restart", "lr_schedule"], first_bad_step=1)


def gradients_kept_jsonl(out: Path) -> Expect:
    """The loop never calls zero_grad, so each step follows the sum of all gradients so far: the norm grows without end and
    the loss swings. JSONL."""
    config = settings(
        max_steps=500, lr=1e-3, optimizer="sgd", momentum=0.9, batch_size=32, seed=103, schedule="constant", grad_clip=0.0, warmup_steps=20
    )
    job = Job(clusters(83), Perceptron, config, Clock("2026-06-03T08:00:00", 0.02))

    def update(loss: Tensor) -> tuple[float, bool]:
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(job.model.parameters(), float("inf"))
        job.optimizer.step()
        return norm.item(), False

    job.update = update  # type: ignore[method-assign]
    rows = every(list(job.run()), 3)
    adam = ("beta1", "beta2", "eps", "weight_decay")
    files.config_json(out, {key: value for key, value in _unclipped(config).items() if key not in adam})
    files.jsonl(out / "metrics.jsonl", rows)
    return Expect(
        top="gradients_not_cleared",
        acceptable=["lr_too_high"],
        clear=["nonfinite", "restart", "lr_schedule"],
        findings=["divergence"],
        first_bad_step=1,
    )


def other_vocabulary_nanogpt(out: Path) -> Expect:
    """The validation text was encoded with another table of characters than the training text: its loss begins at chance,
    ln 30 = 3.40, and rises while the training loss falls. nanoGPT's console."""
    config = settings(max_steps=501, lr=4e-3, seed=104, eval_every=0, vocab_size=len(LETTERS))
    task = language(84)
    table = torch.randperm(len(LETTERS), generator=torch.Generator().manual_seed(3))
    task.held_out = (table[task.held_out[0]], table[task.held_out[1]])
    job = Job(task, lambda: Transformer(width=32), config, Clock("2026-06-04T08:00:00", 0.12))
    rows: list[Row] = []
    for row in job.run():
        if row["step"] % 50 == 1:
            with torch.no_grad():
                row["train_loss"] = task.loss(job.model, task.inputs[:128], task.targets[:128]).item()
            row["val_loss"] = job.evaluate()
        rows.append(row | {"tokens": config["batch_size"] * task.unit})
    files.config_json(out, config)
    files.lines(out / "train.log", console.nanogpt(rows, config, 2))
    return Expect(
        top="tokenizer_mismatch",
        acceptable=["labels_wrong", "eval_changed", "overfitting"],
        clear=["nonfinite", "restart", "loss_spike", "divergence"],
        first_bad_step=0,
        emulated="nanoGPT's console lines and the step times",
    )


def majority_class_keras(out: Path) -> Expect:
    """Nine of ten samples belong to one class, and the loss weighs all alike: the model names that class whatever it sees.
    The accuracy stands at its share while the loss falls. Keras' log, one line an epoch."""
    config = settings(
        max_steps=1200, lr=1e-3, batch_size=64, seed=105, eval_every=30, schedule="constant", weight_decay=0.0, num_classes=2, grad_clip=0.0
    )
    plain = clusters(85, spread=4.0, held_out=2000)
    keep = torch.Generator().manual_seed(4)

    def skewed(points: Tensor, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
        rare = labels == 0
        rows = torch.nonzero(~rare | (torch.rand(len(labels), generator=keep) < 0.8)).flatten()[:size]
        return points[rows] / 4, rare[rows].long()

    inputs, targets = skewed(plain.inputs, plain.targets, 1920)
    task = Task(inputs, targets, skewed(*plain.held_out, 800), plain.loss, 500)
    job = Job(task, lambda: Perceptron(width=8, classes=2, layers=1), config, Clock("2026-06-05T08:00:00", 0.02))
    job.extra = lambda step: {"val_acc": _accuracy(job)} if step % config["eval_every"] == 0 else {}
    rows = list(job.run())
    means = files.interval_means(rows, 30)
    epochs = [{**row, "step": i, "loss": means[i]} for i, row in enumerate(rows[29::30])]
    files.config_json(out, _unclipped(config))
    names = {"lr": "learning_rate", "loss": "loss", "val_acc": "val_accuracy", "val_loss": "val_loss"}
    files.table(out / "training.csv", epochs, names, "epoch")
    return Expect(
        top="class_collapse",
        clear=["nonfinite", "restart", "divergence", "loss_spike"],
        emulated="Keras (its log's layout is followed) and the clock",
    )


def smoothing_jsonl(out: Path) -> Expect:
    """Label smoothing of 0.9 where the share of the right class was meant: the lowest training loss that there is lies 2 %
    below chance, ln 10 = 2.303, and the gradients are faint. The evaluation has no smoothing. JSONL."""
    config = settings(max_steps=600, lr=2e-3, batch_size=32, seed=106, eval_every=30, label_smoothing=0.9, num_classes=10)
    task = clusters(86)
    plain = task.loss

    def smoothed(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        if not model.training:
            return plain(model, inputs, targets)
        return nn.functional.cross_entropy(model(inputs), targets, label_smoothing=config["label_smoothing"])

    task.loss = smoothed
    job = Job(task, Perceptron, config, Clock("2026-06-08T08:00:00", 0.02))
    job.extra = lambda step: {"val_acc": _accuracy(job)} if step % config["eval_every"] == 0 else {}
    rows = every(list(job.run()), 3)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows, files.NAMES | {"val_acc": "val/accuracy"})
    return Expect(
        top="regularization_floor",
        acceptable=["labels_wrong", "lr_too_low"],
        findings=["plateau"],
        clear=["nonfinite", "restart", "divergence", "loss_spike"],
        first_bad_step=1,
    )
