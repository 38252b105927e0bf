"""An adapter that gives its data set and no batches: the order comes from what the run recorded, or is told to be unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.errors import ForensicsError

torch = pytest.importorskip("torch")

from replays import PLAIN, direct, replayed  # noqa: E402 - needs torch

DATA = """
def rows(i):
    g = torch.Generator().manual_seed(i)
    x = torch.randn(6, generator=g)
    return {"x": x, "y": torch.tensor(9.0) if i in (482, 485) else torch.tanh(x.sum())}

class Data(torch.utils.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i): return rows(i)

def dataset(): return Data()
"""


@pytest.fixture
def here() -> Iterator[None]:
    with direct():
        yield


def train(folder: Path, steps: int = 90) -> Path:
    """Trains for real on shuffled rows of a data set, and records their ids; the adapter has no batch()."""
    text = PLAIN[: PLAIN.index("def batch(")] + PLAIN[PLAIN.index("def loss(") :] + DATA
    path = folder / "train.py"
    path.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), space)
    model, optimizer, scheduler = space["build"]()
    order = np.random.default_rng(5).permutation(1000)
    order = np.array([i for i in order if i not in (482, 485)])
    order[60 * 8 + 1], order[60 * 8 + 6] = 482, 485
    with (folder / "metrics.jsonl").open("w") as f:
        for step in range(steps):
            ids = order[step * 8 : step * 8 + 8]
            each = [space["rows"](int(i)) for i in ids]
            batch = {k: torch.stack([r[k] for r in each]) for k in ("x", "y")}
            optimizer.zero_grad()
            loss = space["loss"](model, batch)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            forensics.record(step, torch.tensor(ids), folder=str(folder))
            f.write(json.dumps({"step": step, "loss": float(loss.detach()), "grad_norm": float(norm)}) + "\n")
    return path


@pytest.mark.usefixtures("here")
def test_what_was_recorded_is_the_order(tmp_path: Path) -> None:
    case, result = replayed(tmp_path, train(tmp_path))
    assert result.document["check"]["met"] is True
    assert result.document["verdict"] == "data"
    assert [(c["step"], sorted(c["samples"]), c["rows"]) for c in case.culprits] == [(60, [482, 485], [1, 6])]


@pytest.mark.usefixtures("here")
def test_without_a_record_the_order_is_told_to_be_unknown(tmp_path: Path) -> None:
    adapter = train(tmp_path)
    (tmp_path / "batches.jsonl").unlink()
    with pytest.raises(ForensicsError, match="the order of the data is not known") as e:
        replayed(tmp_path, adapter)
    assert "--batches" in (e.value.hint or "")


def test_the_record_is_a_manifest_of_exact_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forensics.record(3, [4, 5], folder=str(tmp_path), loss=0.1 + 0.2)
    forensics.record(4, ["a", "b"], folder=str(tmp_path))
    rows = [json.loads(x) for x in (tmp_path / "batches.jsonl").read_text().splitlines()]
    assert rows == [{"step": 3, "sample_ids": [4, 5], "loss": 0.1 + 0.2}, {"step": 4, "sample_ids": ["a", "b"]}]
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    forensics.record(3, np.array([[6], [7]]), folder=str(tmp_path))
    assert json.loads((tmp_path / "batches_rank1.jsonl").read_text()) == {"step": 3, "sample_ids": [6, 7]}
