"""Several datasets in one run: what becomes of each."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from making import files, tensorboard
from making.clock import Clock
from making.data import language
from making.expect import Expect
from making.models import Recurrent
from making.training import Job, Row, every, settings


def forgets_old_data_jsonl(out: Path) -> Expect:
    """Three of four samples come from one language and the fourth from another, noisier one; from step 400 on the loader
    reads the noisier one alone: the training loss steps up, the evaluation on the first language becomes worse with every
    step, that on the other improves. JSONL with an evaluation of each."""
    config = settings(max_steps=800, lr=3e-3, seed=88, schedule="constant", eval_every=0)
    old, new = language(67, samples=13000), language(98, samples=13000, noise=0.12)
    job = Job(old, Recurrent, config, Clock("2026-05-11T08:00:00", 0.27))
    job.ids = lambda step: list(range((step - 1) * 16, step * 16))

    def mixed(step: int, ids: list[int]) -> tuple[Tensor, Tensor]:
        kept = 12 if step < 400 else 0  # samples of the old language in a batch of sixteen
        pairs = [(old if n < kept else new, i) for n, i in enumerate(ids)]
        return torch.stack([task.inputs[i] for task, i in pairs]), torch.stack([task.targets[i] for task, i in pairs])

    job.fetch = mixed
    rows: list[Row] = []
    for row in job.run():
        if row["step"] % 50 == 0:
            for name, task in (("old", old), ("new", new)):
                job.task = task
                row[name] = job.evaluate()
            job.task = old
        rows.append(row)
    files.config_yaml(out, config | {"shuffle": False})
    names = {"loss": "train/loss", "grad_norm": "train/grad_norm", "lr": "train/lr"}
    files.jsonl(out / "metrics.jsonl", rows, names | {"old": "eval/wiki/loss", "new": "eval/web/loss"})
    return Expect(
        top="data_distribution_shift",
        acceptable=["bad_data_pocket", "forgetting"],
        findings=["dataset_loss"],
        clear=["nonfinite", "restart", "lr_schedule", "stall"],
        first_bad_step=400,
    )


def fine_tuned_tensorboard(out: Path) -> Expect:
    """A model that has learnt one language is trained on another one alone: the training loss and the evaluation on the new
    language fall, the evaluation on the old one rises from its first step. TensorBoard; the first training left no log."""
    config = settings(max_steps=400, lr=3e-3, seed=89, schedule="linear", min_lr=0.0, eval_every=0, warmup_steps=20)
    old, new = language(87), language(98)
    job = Job(old, Recurrent, config, Clock("2026-06-09T08:00:00", 0.27))
    for _ in job.run(1, 350):
        pass
    job.task = new
    job.fetch = lambda _, ids: (new.inputs[ids], new.targets[ids])
    job.clock = Clock("2026-06-10T08:00:00", 0.27)
    started = job.clock.now
    rows: list[Row] = []
    for row in job.run():
        if row["step"] % 25 == 0:
            for name, task in (("val_loss", old), ("new", new)):
                job.task = task
                row[name] = job.evaluate()
        rows.append(row)
    files.config_yaml(out, config | {"init_from": "runs/base/last.pt"})
    names = {
        "loss": "train/loss",
        "grad_norm": "train/grad_norm",
        "lr": "train/lr",
        "val_loss": "eval/base/loss",
        "new": "eval/target/loss",
    }
    tensorboard.event_file(out / "tb", every(rows, 2), started, names)
    return Expect(
        top="forgetting",
        acceptable=["data_distribution_shift"],
        findings=["dataset_loss"],
        clear=["nonfinite", "restart", "loss_spike", "divergence", "lr_schedule"],
        first_bad_step=1,
    )
