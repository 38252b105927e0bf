"""Settings in the forms in which people print them before training, and lines like them that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics
from forensics.run import settings
from forensics.run.series import series

TRAINING = "".join(f"step {i} loss {3 - 0.01 * i:.4f}\n" for i in range(1, 40))


def told(tmp_path: Path, head: str, training: str = TRAINING) -> dict[str, object]:
    (tmp_path / "train.log").write_text(head + "\n" + training)
    return {s.key: s.value for s in settings.every(forensics.read(str(tmp_path)))}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("config: lr=0.15 warmup=20 betas=(0.9, 0.99) eps=1e-08", {"lr": 0.15, "warmup": 20, "betas": "(0.9, 0.99)", "eps": 1e-8}),
        ("trainer:fit - hyperparameters: optimizer=sgd, lr=0.1, accum=2", {"optimizer": "sgd", "lr": 0.1, "accum": 2}),
        (">>>>> lr: 0.002, batch_size: 32, scaler: standard", {"lr": 0.002, "batch_size": 32, "scaler": "standard"}),
        ("--lr=0.004 --clip=5.0 --layers=6", {"lr": 0.004, "clip": 5.0, "layers": 6}),
        ("# asr: sgd lr=0.05 clip=0.0 reduction=sum", {"lr": 0.05, "clip": 0.0, "reduction": "sum"}),
        ("CartPole, 8 envs, lr 0.015, gamma 0.98, entropy bonus 0.01", {"lr": 0.015, "gamma": 0.98, "entropy bonus": 0.01}),
        (
            "| batch_size B          | 12      |\n| learning rate (LR)    | 3.0e-04 |\n| num_parameters | 174144 |",
            {"batch_size": 12, "learning_rate": 3e-4, "num_parameters": 174144},
        ),
        (
            "stream training: SGDClassifier(eta0=200.0, learning_rate='invscaling',\n      alpha=5.0, hidden=(32, 8)), 150 chunks",
            {"estimator": "SGDClassifier", "eta0": 200.0, "learning_rate": "invscaling", "alpha": 5.0, "hidden": "(32, 8)"},
        ),
    ],
)
def test_settings_are_read_in_the_forms_people_print(tmp_path: Path, line: str, found: dict[str, object]) -> None:
    assert found.items() <= told(tmp_path, line).items()


@pytest.mark.parametrize(
    "line",
    [
        "Found 3 workers, using 2, kept 4",
        "best so far: loss=2.1, lr=0.1, seed=3",
        "{'loss': '2.45', 'grad_norm': '0.45', 'learning_rate': '0.1195', 'epoch': '0.05'}",
        "| loss | 0.3 |",
        "| lr | unknown |",
        "loaded Regressor( of 3 files, lr unknown",
    ],
)
def test_lines_like_them_are_no_settings(tmp_path: Path, line: str) -> None:
    assert not {"lr", "seed", "loss", "learning_rate", "using"} & told(tmp_path, line).keys()


def test_an_estimator_that_never_closes_costs_nothing_else(tmp_path: Path) -> None:
    assert "alpha" not in told(tmp_path, "MLPRegressor(alpha=0.1,")
    loss = series(forensics.read(str(tmp_path)), "loss.train")
    assert loss is not None and len(loss.value) == 39
