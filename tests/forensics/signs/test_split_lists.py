"""Lists of samples that lie with the run: what is evaluated on and trained on, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import forensics
from forensics.signs.sign import Symptoms
from forensics.signs.split_lists import evaluation_ids_in_training as look
from tests.forensics.runs import read, write

IDS = [f"patient_{i:04d}" for i in range(80)]
APART = {"train": IDS[:60], "val": IDS[60:]}
SHARED = {"train": IDS[:60], "val": IDS[50:70]}


def split(folder: Path, lists: Any) -> Path:
    write(folder, 100)
    (folder / "split.json").write_text(json.dumps(lists))
    return folder


@pytest.mark.parametrize(
    ("lists", "state"),
    [
        (SHARED, "seen"),
        (APART, "absent"),
        ({"folds": {"0": SHARED}}, "seen"),
        ({"train_ids": SHARED["train"], "test_ids": SHARED["val"]}, "seen"),
        ({"train": [3 * i for i in range(60)], "val": [6 * i for i in range(20)]}, "seen"),
        ({"train": list(range(60)), "val": list(range(20))}, "cannot tell"),  # each set is counted by itself
        ({"train": [f"lang-{c}" for c in "abcdefghijkl"], "val": [f"lang-{c}" for c in "abcdefghijkl"]}, "cannot tell"),  # no samples
        ({"train": IDS[:5], "val": IDS[:5]}, "cannot tell"),
        ({"train_ids": IDS, "val_files": IDS}, "cannot tell"),
    ],
)
def test_what_both_lists_hold(lists: Any, state: str, tmp_path: Path) -> None:
    assert look(Symptoms(read(split(tmp_path / "r", lists)), ())).state == state


@pytest.mark.parametrize(("lists", "verdict"), [(SHARED, "unhealthy"), (APART, "healthy")])
def test_it_is_a_symptom_of_leakage(lists: Any, verdict: str, tmp_path: Path) -> None:
    case = forensics.analyze(str(split(tmp_path / "r", lists))).to_json()
    assert case["verdict"] == verdict
    assert (case["hypotheses"][0]["id"] == "train_eval_leakage") is (verdict == "unhealthy")
