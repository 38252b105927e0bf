"""`replay --show-data`: the culprits' samples as the adapter's batches hold them, beside ordinary ones; nothing of it in the case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from replays import direct, replayed, train

from forensics import at_path
from forensics.replays import samples_shown
from forensics.replays.training.row_content import content
from reports import html


def test_samples_of_a_culprit_come_from_the_adapter(tmp_path: Path) -> None:
    adapter = train(tmp_path)
    with direct():
        case, result = replayed(tmp_path, adapter, show=True)
    assert [c["step"] for c in case.culprits] == [60]
    found = samples_shown.shown(at_path.read(str(tmp_path)), result, adapter)
    suspect, ordinary = found["suspects"], found["ordinary"]
    assert [b["step"] for b in suspect] == [60] and len(ordinary) == 2
    assert [s["id"] for s in suspect[0]["samples"]] == list(case.culprits[0]["samples"]) == [482, 485]
    assert suspect[0]["samples"][0]["cells"][-1] == ["y", 9.0]
    assert {c["name"]: c["outside"] for c in suspect[0]["columns"]}["y"] is True
    document = case.to_json()
    assert "tensors" not in json.dumps(document)
    page = html.render(document, found)
    assert "This section holds training data" in page and ">482<" in page
    assert "This section holds" not in html.render(document)


def test_nothing_is_kept_unless_asked_for(tmp_path: Path) -> None:
    adapter = train(tmp_path)
    with direct():
        case, result = replayed(tmp_path, adapter)
    assert case.culprits and result.content == []


def test_a_replay_that_blames_no_batch_says_so(tmp_path: Path) -> None:
    adapter = train(tmp_path, "BAD = set()")
    with direct():
        _, result = replayed(tmp_path, adapter, show=True)
    found = samples_shown.shown(at_path.read(str(tmp_path)), result, adapter)
    assert found["why"] == "The replay blames no batch: nothing to show." and not found["suspects"]


class Fake:
    def __init__(self, batch: object) -> None:
        self.given, self.adapter = batch, self

    def batch(self, _: int) -> object:
        return self.given

    def ids(self, _: int) -> None:
        return None

    def select(self, batch: object, rows: list[int]) -> object:
        from forensics.replays.training.adapter import take

        return take(batch, rows, 4)


@pytest.mark.parametrize(
    ("batch", "names"),
    [
        (torch.zeros(4, 3), {"x"}),
        ((torch.zeros(4, 3), torch.zeros(4)), {"x", "y"}),
        ({"a": torch.zeros(4), "b": {"c": torch.zeros(4, 2)}, "n": torch.tensor(1.0)}, {"a", "b.c"}),
        ([torch.zeros(4), torch.zeros(4), torch.zeros(7)], {"part 0", "part 1"}),
    ],
)
def test_tensors_have_the_names_that_people_know(batch: object, names: set[str]) -> None:
    told = content(Fake(batch), None, 0, [1, 2], 1 << 16)
    assert told["of"] == 4 and told["ids"] == [1, 2] and set(told["tensors"][0]) == names


def test_large_tensors_are_thinned() -> None:
    told = content(Fake(torch.arange(4 * 3 * 500 * 500, dtype=torch.bfloat16).reshape(4, 3, 500, 500)), None, 0, [0], 1 << 16)
    small = told["tensors"][0]["x"]
    assert (
        small["of"] == [3, 500, 500] and small["shape"] == [3, 100, 100] and small["dtype"] == "float32" and len(small["values"]) == 30_000
    )
    flat = content(Fake(torch.zeros(4, 100_000)), None, 0, [0], 1 << 16)["tensors"][0]["x"]
    assert flat["shape"] == [1 << 16] == [len(flat["values"])]
