"""The adapter of Lightning runs beside a Trainer that was run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("lightning")

from forensics.cli import main

SCRIPT = """
import os, sys
import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

CLIP = 1.0


class Net(L.LightningModule):
    def __init__(self, width, rate):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = ((self.net(x)[:, 0] - y) ** 2).mean()
        self.log("train_loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", ((self.net(batch[0])[:, 0] - batch[1]) ** 2).mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.7), "interval": "INTERVAL"}}


class Data(L.LightningDataModule):
    def __init__(self, size, bad):
        super().__init__()
        self.save_hyperparameters()

    def rows(self, seed):
        x = torch.randn(self.hparams.size, 8, generator=torch.Generator().manual_seed(seed))
        y = 0.4 * x.sum(1) + 0.3 * torch.randn(len(x), generator=torch.Generator().manual_seed(seed + 9))
        return x, y

    def setup(self, stage):
        x, y = self.rows(0)
        if self.hparams.bad >= 0:
            y[self.hparams.bad] = 300.0
        self.train = torch.utils.data.TensorDataset(x, y)

    def train_dataloader(self):
        return torch.utils.data.DataLoader(self.train, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*self.rows(5)), batch_size=32)


def run(folder, bad):
    SEED
    model, data = Net(16, 3e-3), Data(40 * 32 * ACCUMULATE, bad)
    trainer = L.Trainer(
        max_epochs=4, accelerator="cpu", gradient_clip_val=CLIP, accumulate_grad_batches=ACCUMULATE, log_every_n_steps=1, default_root_dir=folder,
        logger=CSVLogger(folder, name="", version=""), enable_progress_bar=False, enable_model_summary=False,
        callbacks=[ModelCheckpoint(os.path.join(folder, "checkpoints"), save_top_k=-1, every_n_train_steps=15)],
    )
    trainer.fit(model, data)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
"""


def trained(tmp_path: Path, *, bad: int = -1, accumulate: int = 1, interval: str = "epoch", seed: str = "L.seed_everything(11)") -> Path:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("ACCUMULATE", str(accumulate)).replace("INTERVAL", interval).replace("SEED", seed))
    told = subprocess.run([sys.executable, str(script), str(tmp_path / "run"), str(bad)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-2000:]
    return tmp_path / "run"


def replayed(run: Path, *more: str) -> tuple[int, str]:
    environment = {**os.environ, "FORENSICS_MODULE": str(run.parent / "train.py")}
    result = CliRunner().invoke(main, ["replay", str(run), "--adapter", "lightning", "--device", "cpu", *more], env=environment)
    return result.exit_code, result.output


@pytest.mark.parametrize(("accumulate", "interval"), [(1, "epoch"), (2, "epoch"), (1, "step")])
def test_a_lightning_run_is_met_without_a_line(accumulate: int, interval: str, tmp_path: Path) -> None:
    run = trained(tmp_path, accumulate=accumulate, interval=interval)
    code, said = replayed(run, "--check")
    assert code == 0, said
    assert "agrees with 24 of 24 logged values" in said
    assert "Loaded from checkpoints/" in said
    assert "optimizer, scheduler" in said


def test_a_bad_sample_is_named_with_its_step(tmp_path: Path) -> None:
    run = trained(tmp_path, bad=123)
    replayed(run, "--out", str(tmp_path / "page.html"), "--json", str(tmp_path / "case.json"))
    case = json.loads((tmp_path / "case.json").read_text())
    assert case["replay"]["verdict"] in ("data", "state x data"), case["replay"]
    assert [c["samples"] for c in case["culprits"]] == [[123]] * len(case["culprits"]) != []


def test_a_seed_that_nothing_says_is_told_in_a_sentence(tmp_path: Path) -> None:
    code, said = replayed(trained(tmp_path, seed="torch.manual_seed(3)"), "--check")
    assert code == 1
    assert "its order is not known" in said
    assert "Traceback" not in said


def test_a_file_that_is_not_named_or_would_train_is_refused(tmp_path: Path) -> None:
    run = trained(tmp_path)
    (tmp_path / "train.py").write_text((tmp_path / "train.py").read_text() + "\nL.Trainer().fit(Net(16, 1e-3))\n")
    code, said = replayed(run, "--check")
    assert code == 1
    assert "calls fit() when it is imported" in said
    (tmp_path / "train.py").unlink()
    assert "which is no file" in replayed(run, "--check")[1]
