"""Checkpoints as transformers, Lightning, accelerate and torch write them agree with what their own loaders give."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_checkpoints_torch import agree, flat, whole

from parsers import checkpoints, read

torch = pytest.importorskip("torch")


def by_file(folder: Path) -> int:
    """Every file that torch or safetensors can load, against it, value by value; the number of tensors compared."""
    compared = 0
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.suffix == ".safetensors":
            compared += agree(checkpoints.read(path), pytest.importorskip("safetensors.torch").load_file(path))
        elif path.suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl"):
            compared += agree(checkpoints.read(path), loaded(path))
    return compared


def loaded(path: Path) -> Any:
    """torch.load(weights_only=True); classes that it wants named are the libraries' own, and named."""
    try:
        return torch.load(path, weights_only=True)
    except pickle.UnpicklingError:  # training_args.bin, states of generators: trusted, the test wrote them
        found = torch.load(path, weights_only=False)
        return found if isinstance(found, dict) else {}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of a Trainer's checkpoint, and the model."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    rows = [{"input_ids": torch.randint(0, 64, (8,)), "labels": torch.randint(0, 64, (8,))} for _ in range(16)]
    folder = tmp_path_factory.mktemp("trainer")
    settings = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=4, save_steps=4, per_device_train_batch_size=4, report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    before = dict(os.environ)
    transformers.Trainer(model=model, args=settings, train_dataset=rows).train()
    os.environ.clear()
    os.environ.update(before)
    return folder / "checkpoint-4", model


def test_a_folder_of_the_trainer(trainer: tuple[Path, Any]) -> None:
    folder, model = trainer
    names = {p.name for p in folder.iterdir()}
    assert {"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"} <= names
    assert by_file(folder) > 80
    found = checkpoints.read(folder)
    assert found.complete and not found.refused and not found.gaps
    ours = {t.name: t for t in found.tensors}
    for name, value in model.state_dict().items():
        if name != "lm_head.weight":  # tied: written once
            np.testing.assert_array_equal(whole(ours[name]), value.numpy(), err_msg=name)
    assert found.values["scheduler.pt:last_epoch"] == 4
    assert sum(t.role == "exp_avg_sq" for t in found.tensors) == len(list(model.parameters()))


def test_the_arguments_of_a_trainer_are_settings(trainer: tuple[Path, Any]) -> None:
    run = read(trainer[0].parent)
    config = {r["key"]: (r["value"], r["source"]) for r in run.tables["config"].to_pylist()}
    source = "checkpoint-4/training_args.bin"
    for key, value in {
        "learning_rate": "5e-05",
        "per_device_train_batch_size": "4",
        "max_steps": "4",
        "lr_scheduler_type": '"linear"',
    }.items():
        assert config[key] == (value, source)
    ours = {key for key, (_, where) in config.items() if where == source}
    assert not {"output_dir", "hub_token"} & ours and not any(key.startswith("_") for key in ours)


def test_what_holds_no_arguments_is_said(tmp_path: Path) -> None:
    torch.save({"learning_rate": 1.0}, tmp_path / "training_args.bin")
    run = read(tmp_path)
    assert not run.tables["config"].num_rows and [g.what for g in run.gaps] == ["its settings could not be read: no arguments of a trainer"]


def test_sharded_models_of_transformers(trainer: tuple[Path, Any], tmp_path: Path) -> None:
    _, model = trainer
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    found = checkpoints.read(tmp_path)
    assert found.complete and not found.gaps
    ours = {t.name: t for t in found.tensors}
    for name, value in model.state_dict().items():
        if name != "lm_head.weight":
            np.testing.assert_array_equal(whole(ours[name]), value.numpy(), err_msg=name)


def test_a_checkpoint_of_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.save_hyperparameters({"width": 8})
            self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))

        def training_step(self, batch: Any, _: int) -> Any:
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 10)]

    torch.manual_seed(0)
    module = Module()
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4)), batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=str(tmp_path),
    )  # fmt: skip
    trainer.fit(module, data)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    found = checkpoints.read(tmp_path / "last.ckpt")
    assert not found.refused and not found.gaps and found.complete
    assert agree(found, loaded(tmp_path / "last.ckpt")) > 15
    assert found.values["global_step"] == 8
    roles = {t.name: t.role for t in found.tensors}
    assert roles["state_dict.net.0.weight"] == "weight" and roles["optimizer_states.0.state.0.exp_avg"] == "exp_avg"


def test_a_state_of_accelerate(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=10)
    engine = accelerate.Accelerator(cpu=True)
    model, optimizer, schedule = engine.prepare(model, optimizer, schedule)
    for _ in range(3):
        engine.backward(model(torch.randn(8, 4)).square().mean())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    folder = tmp_path / "checkpoint_3"
    engine.save_state(str(folder))
    assert by_file(folder) > 15
    found = checkpoints.read(folder)
    assert found.complete and not found.refused
    assert {"weight", "exp_avg", "exp_avg_sq"} <= {t.role for t in found.tensors}


def test_bfloat16_and_float8_of_torch_distributed(tmp_path: Path) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    g = torch.Generator().manual_seed(0)
    saved = {str(d): torch.randn(40, 7, generator=g).to(d) for d in (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float64)}
    dcp.save({"model": saved}, checkpoint_id=tmp_path / "step_1")
    again = {k: torch.empty_like(v) for k, v in saved.items()}
    dcp.load({"model": again}, checkpoint_id=tmp_path / "step_1")
    found = {t.name: t for t in checkpoints.read(tmp_path / "step_1").tensors}
    assert len(found) == len(flat({"model": again})) == 4
    for name, value in flat({"model": again}).items():
        np.testing.assert_array_equal(whole(found[name]), value.double().numpy())
