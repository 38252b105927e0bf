"""Batches that batch norms have counted, against the steps of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forensics.signs.saved_buffers import batchnorm_counted_more_than_steps
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.runs import make, read

torch = pytest.importorskip("torch")
STEPS, EPOCH = 100, 10


@pytest.mark.parametrize(
    ("batches", "config", "state"),
    [
        (STEPS + 7 * 10, {}, SEEN),  # seven evaluation batches after each epoch
        (5 * (EPOCH + 7) + 120, {}, SEEN),
        (STEPS, {}, ABSENT),
        (STEPS // 2, {}, ABSENT),
        (2 * STEPS, {}, CANNOT_TELL),  # two passes a step
        (3 * 7 * EPOCH, {}, CANNOT_TELL),  # three, after seven epochs
        (1_000_000, {}, CANNOT_TELL),  # of another training
        (STEPS + 70, {"pretrained": True}, CANNOT_TELL),
        (STEPS + 70, {"gradient_accumulation_steps": 2}, CANNOT_TELL),
    ],
)
def test_evaluations_that_batch_norms_count(tmp_path: Path, batches: int, config: dict[str, Any], state: str) -> None:
    rows = [{"step": i, "epoch": i // EPOCH, "loss": 2.0 / (1 + i)} for i in range(STEPS)]
    make(tmp_path, rows, config)
    norm = torch.nn.BatchNorm1d(3)
    norm.num_batches_tracked += batches
    torch.save({"state_dict": {f"layer.{k}": v for k, v in norm.state_dict().items()}}, tmp_path / "model_best.pth.tar")
    sign = batchnorm_counted_more_than_steps(Symptoms(read(tmp_path), ()))
    assert sign.state == state, sign.text


@pytest.mark.parametrize(("step", "state"), [(33, CANNOT_TELL), (31, SEEN), (None, CANNOT_TELL)])
def test_two_views_of_each_sample_are_two_passes_a_step(tmp_path: Path, step: int | None, state: str) -> None:
    """A checkpoint from the middle of a run without epochs: only its own step tells."""
    make(tmp_path, [{"step": i, "loss": 2.0 / (1 + i)} for i in range(40)])
    told = {"step": step} if step else {}
    torch.save(
        {"state_dict": {"bn.num_batches_tracked": torch.tensor(66), "bn.running_var": torch.ones(3)}, **told}, tmp_path / "last.ckpt"
    )
    sign = batchnorm_counted_more_than_steps(Symptoms(read(tmp_path), ()))
    assert sign.state == state, sign.text


def test_steps_that_are_not_logged_are_steps(tmp_path: Path) -> None:
    """A generator that runs twice a step, logged every tenth step: the last nine of 100 are not in the log."""
    make(tmp_path, [{"step": i, "epoch": i // 50, "Loss_D": 1.3} for i in range(0, 100, 10)])
    torch.save({"main.bn.num_batches_tracked": torch.tensor(200), "main.bn.running_var": torch.ones(3)}, tmp_path / "netG.pt")
    sign = batchnorm_counted_more_than_steps(Symptoms(read(tmp_path), ()))
    assert sign.state == CANNOT_TELL, sign.text
