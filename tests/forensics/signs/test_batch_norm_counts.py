"""Batch norm counts forwards in training mode: evaluations among them, and what else may be counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forensics.signs.batch_norm_counts import batch_norm_counts_evaluations
from forensics.signs.sign import Symptoms
from tests.forensics.runs import make, read

torch = pytest.importorskip("torch")

EPOCHS, LENGTH = 6, 20


def state(count: int, trained: int | None = None, by_hand: int = 0, batches: int = 15) -> dict[str, Any]:
    saved: dict[str, Any] = {"state_dict": {"bn.weight": torch.ones(4), "bn.num_batches_tracked": torch.tensor(count)}}
    if trained is not None:
        loop = {
            "epoch_loop.batch_progress": {"total": {"completed": trained}},
            "epoch_loop.manual_optimization.optim_step_progress": {"total": {"completed": by_hand}},
            "epoch_loop.val_loop.batch_progress": {"current": {"completed": batches}},
            "epoch_progress": {"total": {"ready": EPOCHS}},
        }
        saved |= {"global_step": trained, "loops": {"fit_loop": loop}}
    return saved


def look(folder: Path, saved: dict[str, Any], config: dict[str, Any] | None = None) -> str:
    steps = EPOCHS * LENGTH
    rows = [{"step": i, "loss": 2 - i / 100} | ({"val_loss": 2.0} if i % LENGTH == 0 else {}) for i in range(1, steps + 1)]
    make(folder, rows, {"max_steps": steps, **(config or {})})
    torch.save(saved, folder / "last.pt")
    sign = batch_norm_counts_evaluations(Symptoms(read(folder), ()))
    assert sign.text.endswith(".")
    return sign.state


@pytest.mark.parametrize(
    ("saved", "config", "told"),
    [
        (state(120 + 6 * 15, trained=120), {}, "seen"),
        (state(120 + 6 * 15 + 2, trained=120), {}, "seen"),  # and the check before training
        (state(120, trained=120), {}, "absent"),
        (state(240, trained=120), {}, "cannot tell"),  # two forwards for each batch
        (state(120 + 6 * 15, trained=120, by_hand=120), {}, "cannot tell"),  # two players
        (state(120 + 7 * 15, trained=120), {}, "cannot tell"),
        (state(120 + 6 * 3), {}, "seen"),
        (state(120), {}, "absent"),
        (state(80), {}, "absent"),  # the best one, of the fourth epoch
        (state(120 + 7), {}, "cannot tell"),
        (state(120 + 6), {}, "cannot tell"),  # a picture an epoch
        (state(240), {}, "cannot tell"),  # accumulation
        (state(120 + 6 * 3), {"precise_bn": 3}, "cannot tell"),
    ],
)
def test_what_is_counted(saved: dict[str, Any], config: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert look(tmp_path, saved, config) == told


def test_layers_that_disagree_tell_nothing(tmp_path: Path) -> None:
    saved = state(120 + 6 * 3)
    saved["state_dict"]["frozen.num_batches_tracked"] = torch.tensor(0)
    assert look(tmp_path, saved) == "cannot tell"


@pytest.mark.parametrize(("surplus", "told"), [(1, "seen"), (3, "seen"), (0, "cannot tell"), (LENGTH, "cannot tell")])
def test_a_surplus_that_grows_with_the_evaluations_is_theirs(surplus: int, told: str, tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2 - i / 100} | ({"val_loss": 2.0} if i % LENGTH == 0 else {}) for i in range(1, EPOCHS * LENGTH + 1)]
    make(tmp_path, rows, {"max_epochs": EPOCHS})
    for k in range(1, EPOCHS + 1):
        torch.save(state(k * (LENGTH + surplus)) | {"global_step": k * LENGTH}, tmp_path / f"epoch={k - 1}-step={k * LENGTH}.ckpt")
    found = batch_norm_counts_evaluations(Symptoms(read(tmp_path), ()))
    assert found.state == told, found.text
