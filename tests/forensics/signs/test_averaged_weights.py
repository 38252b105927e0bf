"""Evaluations that do not move: of averaged weights they accuse no labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.forensics.small_runs import analyzed, curve, kinds, probability


@pytest.mark.parametrize(("tag", "labels"), [("val_loss", True), ("val_loss_ema", False)])
def test_an_average_longer_than_the_run_accuses_no_labels(tag: str, labels: bool, tmp_path: Path) -> None:
    x = curve(200)
    rows: list[dict[str, Any]] = [{"step": i, "loss": x[i]} for i in range(200)]
    rows += [{"step": i, tag: 4.0 - i / 4000} for i in range(20, 200, 20)]
    case = analyzed(tmp_path / "a", rows)
    assert "eval_never_better" in kinds(case)
    assert (probability(case, "labels_wrong") > 0) == labels
