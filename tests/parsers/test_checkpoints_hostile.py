"""Names behind the first pickle and in metadata are told; bytes that claim to be many more are not gone through."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

from parsers import checkpoints
from parsers.checkpoints.contents import check_sums
from parsers.checkpoints.safetensors_file import MAX_DOUBLE


class Call:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


EVIL, INNOCENT = pickle.dumps(Call()), pickle.dumps({"a": 1})


def archive(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("archive/data.pkl", content)


@pytest.mark.parametrize(
    "content",
    [INNOCENT + EVIL, INNOCENT * 3 + EVIL, INNOCENT + EVIL[:-1], INNOCENT + pickle.dumps({"x": EVIL}), pickle.dumps([INNOCENT + EVIL])],
)
def test_pickles_behind_the_first_are_looked_at(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plain.pkl").write_bytes(content)
    archive(tmp_path / "torch.pt", content)
    for name in ("plain.pkl", "torch.pt"):
        assert [r["what"].rpartition(".")[2] for r in checkpoints.read(tmp_path / name).refused] == ["system"]


def test_what_follows_and_is_no_pickle_is_not_accused(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(INNOCENT * 2 + bytes(range(256)) * 9)
    assert checkpoints.read(tmp_path / "a.pkl").refused == []


def test_metadata_that_call_something(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(EVIL)
    (tmp_path / "__0_0.distcp").write_bytes(b"x")
    found = checkpoints.read(tmp_path)
    assert [r["what"] for r in found.refused] == [f"{os.system.__module__}.system"] and found.complete is False


def test_names_for_the_same_bytes_are_not_listed_by_the_hundred_thousand(tmp_path: Path) -> None:
    entries = {f"w{i}": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]} for i in range(5000)}
    header = json.dumps(entries).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    found = checkpoints.read(tmp_path / "a.safetensors")
    assert len(found.tensors) == MAX_DOUBLE + 1 and "4999 tensors claim bytes of others" in found.gaps[-1].what


def test_a_member_that_claims_gigabytes_is_not_unpacked_for_its_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(3):
            z.writestr(f"{i}.npy", bytes(1 << 20))
    found, seen = checkpoints.read(tmp_path / "a.npz"), []
    monkeypatch.setattr("parsers.checkpoints.contents.UNPACKED", 2 << 20)
    monkeypatch.setattr("parsers.checkpoints.contents.intact", lambda data, member: seen.append(member.name) or True)
    check_sums(found)
    assert seen == ["0.npy", "1.npy"]
