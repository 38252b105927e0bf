"""The order of samples where files list them: in order, in blocks, shuffled, and the same in every pass."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from runs import loss, make, read

from forensics.run import facts

ROWS, BATCH = 480, 8


def orders(kind: str) -> list[int]:
    rng = random.Random(3)
    rows = list(range(ROWS))
    if kind == "blocks":
        blocks = [rows[i : i + 60] for i in range(0, ROWS, 60)]
        rng.shuffle(blocks)
        for b in blocks:
            rng.shuffle(b)
        return [x for b in blocks for x in b]
    if kind != "in order":
        rng.shuffle(rows)
    return rows if kind != "twice" else rows + rows


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("in order", "as they lie in the data"),
        ("blocks", "shuffled in blocks"),
        ("shuffled", "well shuffled"),
        ("twice", "the same batches in the same order"),
    ],
)
def test_order(kind: str, says: str, tmp_path: Path) -> None:
    ids = orders(kind)
    n = len(ids) // BATCH
    folder = make(tmp_path, [{"step": i, "loss": loss(i)} for i in range(1, n + 1)])
    rows = [{"step": i + 1, "sample_ids": ids[i * BATCH : (i + 1) * BATCH]} for i in range(n)]
    (folder / "batches.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    told = [f["value"] for f in facts.facts(read(folder)) if f["what"] == "order of the samples"]
    assert len(told) == 1 and says in told[0], told
