"""Saves in parts: an index against its shards, a copied shard, metadata that are missing or cut; arrays that are cut."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from forensics.checkpoints import describe
from forensics.checkpoints.sick_values import incomplete
from parsers import checkpoints

SHARDS = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]


def write_shard(path: Path, names: list[str]) -> None:
    header = {n: {"dtype": "F32", "shape": [4], "data_offsets": [16 * i, 16 * i + 16]} for i, n in enumerate(names)}
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + np.ones(4 * len(names), "f4").tobytes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    where = {}
    for k, shard in enumerate(SHARDS):
        names = [f"layers.{k}.{part}" for part in ("q", "k", "v")]
        write_shard(tmp_path / shard, names)
        where |= dict.fromkeys(names, shard)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return tmp_path


def said(folder: Path) -> str:
    return " | ".join(g.what for g in checkpoints.read(folder).gaps)


def test_a_whole_folder_has_nothing_to_say(folder: Path) -> None:
    assert said(folder) == "" and checkpoints.read(folder).complete


def test_a_shard_copied_over_another(folder: Path) -> None:
    shutil.copy(folder / SHARDS[0], folder / SHARDS[1])
    text = said(folder)
    assert "3 tensors that the index names are in no shard, layers.1.q" in text  # and not those of the doubled shard
    assert f"{SHARDS[1]} holds 3 tensors that {SHARDS[0]} holds, too" in text
    assert checkpoints.read(folder).complete is False


def test_a_tensor_that_the_index_does_not_name(folder: Path) -> None:
    write_shard(folder / SHARDS[2], ["layers.2.q", "layers.2.k", "layers.2.v", "extra.bias"])
    assert f"{SHARDS[2]} holds 1 tensors that the index does not name, extra.bias" in said(folder)


@pytest.mark.parametrize("shape", [(100, 10), (33,)])
def test_an_array_that_is_cut(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "w.npy"
    np.save(path, np.ones(shape))
    os.truncate(path, path.stat().st_size // 2 + 60)
    found = describe.read(path)
    assert found.contents.complete is False and "cut off" in found.contents.gaps[0].what
    assert incomplete(found)[0]["severity"] == "critical"


def test_distributed_shards_without_metadata_and_cut(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import torch.distributed.checkpoint as dcp

    for name in ("bare", "cut"):
        dcp.save({"w": torch.randn(64, 64)}, checkpoint_id=tmp_path / name, no_dist=True)
    (tmp_path / "bare" / ".metadata").unlink()
    found = checkpoints.read(tmp_path / "bare")
    assert found.complete is False and "no .metadata" in found.gaps[0].what
    os.truncate(next((tmp_path / "cut").glob("*.distcp")), 900)
    assert "__0_0.distcp ends at byte 900" in said(tmp_path / "cut")
