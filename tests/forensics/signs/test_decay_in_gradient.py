"""A large decay beside what it does, and the same decay where it does nothing, is decoupled, or is not large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.signs.configured import init_std_large
from forensics.signs.decay_in_gradient import decay_outweighs_gradient
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms

STANDS, FITS = np.linspace(1.75, 1.65, 30), 1.75 * np.exp(-np.arange(30) / 10)
WD = {"wd": 0.15, "lr": 0.01, "hidden": 32}
ADAM = {"optimizer": "Adam", "weight_decay": 0.3, "lr": 0.001}


def saved(folder: Path, loss: Any, norm: Any, config: dict[str, Any], tag: str = "loss", **beside: float) -> Symptoms:
    """A log with the norm of the weights, beside a table of 900 rows and two layers: 120 in all where usual, 3.5 of them in the layers."""
    safetensors = pytest.importorskip("safetensors.numpy")
    folder.mkdir()
    rows = [{"step": 10 * i, tag: float(x), "weight_norm": float(n), **beside} for i, (x, n) in enumerate(zip(loss, norm, strict=True))]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"emb.weight": (900, 16), "w.0.weight": (32, 56), "w.1.weight": (6, 32)}
    safetensors.save_file({k: np.ones(v, np.float32) for k, v in shapes.items()}, str(folder / "model.safetensors"))
    return Symptoms(forensics.read(str(folder)), ())


SMALL, LARGE = np.linspace(1.5, 1.8, 30), np.linspace(5.8, 14.0, 30)


@pytest.mark.parametrize(
    ("loss", "norm", "config", "state"),
    [
        (STANDS, SMALL, WD, SEEN),
        (FITS, SMALL, WD, ABSENT),  # small weights are enough for some data
        (STANDS, LARGE, WD, ABSENT),  # the decay does not hold them
        (STANDS, SMALL, WD | {"wd": 0.01}, ABSENT),
        (STANDS, SMALL, WD | {"optimizer": "AdamW"}, CANNOT_TELL),
        (STANDS, SMALL, WD | {"optimizer": "sgd"}, CANNOT_TELL),
    ],
)
def test_a_decay_that_holds_the_weights_small(tmp_path: Path, loss: Any, norm: Any, config: dict[str, Any], state: str) -> None:
    assert decay_outweighs_gradient(saved(tmp_path / "run", loss, norm, config)).state == state


@pytest.mark.parametrize(
    ("level", "config", "state"),
    [
        (0.355, ADAM, SEEN),
        (0.28, ADAM, ABSENT),  # better than a constant answer
        (0.355, ADAM | {"pos_weight": 4.0}, ABSENT),  # of weighted answers
        (0.355, ADAM | {"weight_decay": 0.01}, ABSENT),
        (0.355, {"weight_decay": 0.3}, ABSENT),  # of an optimizer that nobody names
    ],
)
def test_a_fit_worse_than_a_constant_answer(tmp_path: Path, level: float, config: dict[str, Any], state: str) -> None:
    s = saved(tmp_path / "run", np.full(30, level) + 0.001 * (np.arange(30) % 3), LARGE, config, "train_bce", base_rate=0.085)
    assert decay_outweighs_gradient(s).state == state


@pytest.mark.parametrize(
    ("norm", "state"),
    [
        (np.linspace(134, 100, 30), SEEN),
        (np.linspace(119, 100, 30), CANNOT_TELL),  # a table as PyTorch makes it
        (np.linspace(134, 180, 30), CANNOT_TELL),  # training makes them larger
    ],
)
def test_weights_larger_than_their_shapes_begin_with(tmp_path: Path, norm: Any, state: str) -> None:
    assert init_std_large(saved(tmp_path / "run", STANDS, norm, {"lr": 0.01})).state == state
