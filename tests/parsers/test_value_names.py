"""Names that stand for two things: their values say which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forensics


@pytest.mark.parametrize(
    ("tag", "values", "name"),
    [
        ("eta", [0.001, 0.004, 0.002, 0.0], "lr"),
        ("train/eta", [1e-4, 3e-4, 2e-4, 1e-4], "lr"),
        ("eta", [310.5, 205.2, 100.9, 0.4], "axis/eta"),  # seconds that are left
        ("eta", [1, 1, 0, 0], "axis/eta"),
        ("rate", [2e-5, 2e-4, 3e-3, 2e-3, 1e-3, 0.0], "lr"),
        ("rate", [0.02, 0.05, 0.03, 0.06, 0.02, 0.07], "other/rate"),  # of successes
        ("rate", [0.9, 0.7, 0.5, 0.4, 0.3, 0.2], "other/rate"),
        ("scale", [65536.0, 32768.0, 32768.0, 65536.0], "loss_scale"),
        ("scale", [0.9, 1.1, 1.2, 1.3], "other/scale"),  # a parameter of the model
        ("scale", [2.0, 4.0, 8.0, 8.0], "other/scale"),  # too small for a scaler's
    ],
)
def test_values_tell_what_a_name_means(tag: str, values: list[float], name: str, tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2.0 - i / 10, tag: v} for i, v in enumerate(values)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = forensics.read(str(tmp_path))
    assert name in set(run.tables["metrics"]["name"].to_pylist())


@pytest.mark.parametrize(("values", "name"), [((0.29, 0.1, 0.038, 0.22), "lr"), ((31.5, 20.25, 9.5, 0.29), "axis/eta")])
def test_the_whole_log_tells_whether_an_eta_is_a_rate(values: tuple[float, ...], name: str, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("".join(f"it={20 * i}; loss={2 - i / 10}; eta={v}\n" for i, v in enumerate(values, 1)))
    metrics = forensics.read(str(tmp_path)).tables["metrics"].to_pylist()
    assert [(row["name"], row["value"]) for row in metrics if row["tag"] == "eta"] == [(name, v) for v in values]
