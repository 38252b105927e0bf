"""One metric in two files under two names, of which one is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import parsers

LOSS = 3 / (1 + np.arange(300) / 40) + 0.1 * np.random.default_rng(2).standard_normal(300)


def named(folder: Path, fine: np.ndarray, tag: str = "contrastive", every: int = 50) -> dict[str, int]:
    """How many rows have each name, of the finer file's."""
    (folder / "out.log").write_text("".join(f"Train step {i} Loss: {LOSS[i]:.4f} LR: 0.0006\n" for i in range(0, 300, every)))
    rows = [{"step": i, tag: round(float(v), 5), "sps": 15000.0 + i % 7} for i, v in enumerate(fine)]
    (folder / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    table = parsers.read(folder).tables["metrics"].to_pylist()
    of_file = [r["name"] for r in table if r["source"] == "results.jsonl" and r["tag"] == tag]
    return {name: of_file.count(name) for name in {*of_file}}


def test_the_finer_file_has_the_known_name(tmp_path: Path) -> None:
    assert named(tmp_path, LOSS, every=20) == {"loss.train": 300}


@pytest.mark.parametrize("other", [LOSS * 1.1, np.full(300, 3.0)], ids=["other values", "a constant"])
def test_what_only_stands_beside_it_keeps_its_own(other: np.ndarray, tmp_path: Path) -> None:
    assert named(tmp_path, other, every=20) == {"other/contrastive": 300}


def test_few_values_agree_by_chance(tmp_path: Path) -> None:
    assert named(tmp_path, LOSS, every=50) == {"other/contrastive": 300}
