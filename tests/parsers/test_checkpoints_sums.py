"""Bytes of a zip that are not those that were saved: told with file and byte, and the rest is read."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from forensics.checkpoints import sick_document


def _flip(path: Path, needle: bytes) -> int:
    raw = bytearray(path.read_bytes())
    at = raw.index(needle)
    raw[at] ^= 8
    path.write_bytes(raw)
    return at


def _values() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {n: random.normal(size=(40, 30)).astype("f4") for n in ("a", "b", "c")}


def _told(path: Path, member: str) -> dict[str, object]:
    document = sick_document.report(path)
    (gap,) = document["gaps"]
    assert member in gap["what"] and "checksum" in gap["what"] and gap["at"].startswith("byte ") and gap["path"] == path.name
    assert [f["id"] for f in document["findings"]][:1] == ["checksum"]
    assert len(document["tensors"]) == 3 and all(t["norm"] for t in document["tensors"])
    return document


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays(tmp_path: Path, save: object) -> None:
    assert callable(save)
    path = tmp_path / "model.npz"
    save(path, **_values())
    assert not sick_document.report(path)["gaps"]
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as z:
        crc = z.getinfo("b.npy").CRC.to_bytes(4, "little")
    path.write_bytes(raw.replace(crc, b"\x01\x02\x03\x04"))  # the directory's checksum: what is packed still unpacks
    assert [t["name"] for t in _told(path, "b.npy")["tensors"]] == ["a", "b", "c"]  # type: ignore[attr-defined]


def test_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path, values = tmp_path / "ckpt_5.pt", {k: torch.tensor(v) for k, v in _values().items()}
    torch.save(values, path)
    assert not sick_document.report(path)["gaps"]
    at = _flip(path, values["b"].numpy().tobytes()[400:440])
    document = _told(path, "data/1")
    assert document["findings"][0]["tensors"] == ["b"] and 0 < at - int(document["gaps"][0]["at"].split()[1]) <= 440  # type: ignore[index]


def test_torch_without_checksums(tmp_path: Path) -> None:
    """``torch.serialization.set_crc32_options(False)`` writes zeros for all of them."""
    torch = pytest.importorskip("torch")
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"a": torch.ones(5)}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert not sick_document.report(tmp_path / "a.pt")["gaps"]


def test_keras(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    weights = io.BytesIO()
    with h5py.File(weights, "w") as f:
        for name, value in _values().items():
            f[f"layers/{name}/vars/0"] = value
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("config.json", "{}")
        z.writestr("model.weights.h5", weights.getvalue())
    assert not sick_document.report(path)["gaps"]
    _flip(path, _values()["b"].tobytes()[400:440])
    _told(path, "model.weights.h5")
