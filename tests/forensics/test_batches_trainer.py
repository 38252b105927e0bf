"""Hugging Face's Trainer with a tiny model and a data set that says which samples were taken: every step rebuilt, from its own log."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.batches import hf_trainer, step_to_samples
from forensics.batches.accelerate_loaders import Sharing
from forensics.batches.loader import step_of

Seen = dict[int, list[int]]


def train(folder: Path, n: int, seen: Seen, *, resume: str | None = None, lengths: list[int] | None = None, **options: Any) -> Any:
    """A real run; fills `seen` with optimizer step (as the Trainer counts them, from 1) -> samples."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")

    class Data(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
        def __len__(self) -> int:
            return n

        def __getitem__(self, i: int) -> dict[str, Any]:
            return {"input_ids": torch.full((lengths[i] if lengths else 1,), float(i) / n), "labels": torch.ones(1), "row": i}

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids: Any = None, labels: Any = None) -> dict[str, Any]:
            return {"loss": ((self.w + input_ids.mean() - labels) ** 2).mean()}

    class Recording(transformers.Trainer):  # type: ignore[misc,name-defined]
        def training_step(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
            seen.setdefault(self.state.global_step + 1, []).extend(inputs.pop("row").tolist())
            return super().training_step(model, inputs, *rest, **more)

    def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
        longest = max(len(r["input_ids"]) for r in rows)
        padded = [torch.nn.functional.pad(r["input_ids"], (0, longest - len(r["input_ids"]))) for r in rows]
        labels, ids = torch.stack([r["labels"] for r in rows]), torch.tensor([r["row"] for r in rows])
        return {"input_ids": torch.stack(padded), "labels": labels, "row": ids}

    arguments = transformers.TrainingArguments(
        str(folder), use_cpu=True, report_to=[], disable_tqdm=True, logging_steps=1, remove_unused_columns=False,
        save_strategy=options.pop("save_strategy", "no"), **options,
    )  # fmt: skip
    trainer = Recording(Model(), arguments, train_dataset=Data(), data_collator=collate)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def rebuilt(n: int, size: int, seed: int, step: int, accumulation: int, *, drop_last: bool = False) -> list[int]:
    length = hf_trainer.steps_per_epoch(n, size, accumulation=accumulation, drop_last=drop_last)
    epoch, within = divmod(step - 1, length)
    found = step_of(hf_trainer.epoch(n, size, seed=seed, epoch=epoch, rules=Sharing(drop_last)), accumulation, within)
    assert found
    return np.concatenate(found).tolist()


@pytest.mark.parametrize(
    ("n", "size", "accumulation", "drop_last", "seed", "data_seed"),
    [
        (50, 4, 1, False, 42, None),
        (50, 4, 1, True, 7, None),
        (37, 4, 3, False, 3, 11),
        (24, 8, 2, False, 2**31, None),
        (10, 16, 1, False, 0, 5),
    ],
)
def test_every_step_of_three_epochs(
    tmp_path: Path, n: int, size: int, accumulation: int, drop_last: bool, seed: int, data_seed: int | None
) -> None:
    seen: Seen = {}
    train(
        tmp_path, n, seen, num_train_epochs=3, per_device_train_batch_size=size, gradient_accumulation_steps=accumulation,
        dataloader_drop_last=drop_last, seed=seed, data_seed=data_seed,
    )  # fmt: skip
    used = seed if data_seed is None else data_seed
    assert len(seen) == 3 * hf_trainer.steps_per_epoch(n, size, accumulation=accumulation, drop_last=drop_last)
    for step, samples in seen.items():
        assert rebuilt(n, size, used, step, accumulation, drop_last=drop_last) == samples


def test_a_run_resumed_in_mid_epoch(tmp_path: Path) -> None:
    first: Seen = {}
    options: dict[str, Any] = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "seed": 9, "num_train_epochs": 4}
    train(tmp_path, 45, first, save_strategy="steps", save_steps=8, max_steps=10, **options)
    second: Seen = {}
    train(tmp_path, 45, second, resume=str(tmp_path / "checkpoint-8"), **options)
    assert min(second) == 9 and max(second) == 24
    for step, samples in (first | second).items():
        assert rebuilt(45, 4, 9, step, 2) == samples
    again: Seen = {}
    train(tmp_path / "again", 45, again, resume=str(tmp_path / "checkpoint-8"), ignore_data_skip=True, **options)
    for step in range(9, 13):  # six steps an epoch: the second one, which step 9 is in, begins again
        assert rebuilt(45, 4, 9, step - 2, 2) == again[step]


def as_logged(folder: Path, trainer: Any, n: int, *, examples: bool = True) -> Path:
    """What such a run leaves behind: trainer_state.json, its arguments, and the lines that the Trainer prints."""
    run = folder / "run"
    run.mkdir()
    trainer.state.save_to_json(str(run / "trainer_state.json"))
    kept = ("seed", "data_seed", "per_device_train_batch_size", "gradient_accumulation_steps", "dataloader_drop_last",
            "num_train_epochs", "group_by_length", "train_sampling_strategy", "ignore_data_skip")  # fmt: skip
    arguments = {k: v for k, v in trainer.args.to_dict().items() if k in kept}
    (run / "training_args.json").write_text(json.dumps(arguments))
    if examples:
        (run / "train.log").write_text(f"***** Running training *****\n  Num examples = {n:,}\n")
    return run


@pytest.mark.parametrize(("n", "accumulation", "data_seed"), [(50, 1, None), (45, 2, 77)])
def test_from_the_files_of_the_run_alone(tmp_path: Path, n: int, accumulation: int, data_seed: int | None) -> None:
    seen: Seen = {}
    trainer = train(
        tmp_path / "out", n, seen, num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=accumulation,
        seed=5, data_seed=data_seed,
    )  # fmt: skip
    run = forensics.read(str(as_logged(tmp_path, trainer, n)))
    assert run.framework == "hf-trainer"
    for step, samples in seen.items():
        found = step_to_samples.answer(run, step)
        assert (found["how"], found["samples"]) == ("rebuilt", samples), found["why"]
        assert 0.5 < found["confidence"] < 1 and "epoch" in found["why"]
        assert any("Num examples" in x for x in found["rests_on"])
    beyond = step_to_samples.answer(run, max(seen) + 1)
    assert beyond["how"] == "unknown" and f"{max(seen)}" in beyond["why"]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    seen: Seen = {}
    trainer = train(tmp_path / "out", 50, seen, num_train_epochs=1, per_device_train_batch_size=4, seed=5)
    run = as_logged(tmp_path, trainer, 50, examples=False)
    found = step_to_samples.answer(forensics.read(str(run)), 3)
    assert found["how"] == "unknown" and found["samples"] == [] and "number of training samples" in found["why"]
    length = math.ceil(50 / 4)
    assert f"between {(length - 1) * 4 + 1} and {length * 4}" in found["why"]
    (run / "train.log").write_text("***** Running training *****\n  Num examples = 50\n")
    arguments = json.loads((run / "training_args.json").read_text())
    (run / "training_args.json").write_text(json.dumps(arguments | {"group_by_length": True}))
    assert "grouped by length" in step_to_samples.answer(forensics.read(str(run)), 3)["why"]
    (run / "training_args.json").write_text(json.dumps(arguments | {"transformers_version": "4.36.2"}))
    assert "4.36.2" in step_to_samples.answer(forensics.read(str(run)), 3)["why"]
    (run / "training_args.json").write_text(json.dumps(arguments | {"transformers_version": "5.23.0"}))
    assert step_to_samples.answer(forensics.read(str(run)), 3)["samples"] == seen[3]
