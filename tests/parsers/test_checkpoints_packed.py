"""Pickles compressed as a whole are looked into, and give no more than a budget; meta tensors are listed without values."""

import bz2
import gzip
import lzma
import pickle
import zlib

import pytest

from parsers import checkpoints
from parsers.checkpoints import packed


class Runs:
    def __reduce__(self):
        return eval, ("1",)


PACKERS = {
    "zlib": zlib.compress,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda x: lzma.compress(x, lzma.FORMAT_ALONE),
}


@pytest.mark.parametrize("how", PACKERS)
def test_names_and_values_of_a_compressed_pickle(tmp_path, how):
    path = tmp_path / "model.joblib"
    path.write_bytes(PACKERS[how](pickle.dumps({"step": 7, "x": Runs(), "after": 1.5})))
    found = checkpoints.read(path)
    assert [r["what"] for r in found.refused] == ["builtins.eval"]
    assert (found.values["step"], found.values["after"]) == (7, 1.5)


@pytest.mark.parametrize("how", PACKERS)
def test_a_cut_or_damaged_one_keeps_what_was_there(tmp_path, how):
    whole = PACKERS[how](pickle.dumps({"step": 7, "x": Runs(), "noise": [bytes(i * k % 256 for i in range(9000)) for k in range(1, 40)]}))
    for name, data in {"cut": whole[:-9], "none": whole[:3]}.items():
        path = tmp_path / f"{name}.pkl"
        path.write_bytes(data)
        try:
            found = checkpoints.read(path)
        except checkpoints.Unreadable as e:
            assert "Error" not in str(e)
            assert name == "none" or how == "bz2"  # which comes in blocks of 900 kB
        else:
            assert found.complete is False
            assert found.gaps


def test_a_bomb_costs_the_budget_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MOST", 1 << 16)
    path = tmp_path / "model.pkl"
    path.write_bytes(gzip.compress(pickle.dumps({"x": Runs(), "zeros": [bytes(1 << 20)] * 2})))
    found = checkpoints.read(path)
    assert [r["what"] for r in found.refused] == ["builtins.eval"]
    assert "more than" in found.gaps[0].what


def test_meta_tensors_are_listed(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"model": torch.nn.Linear(3, 2, device="meta").state_dict()}, tmp_path / "a.pt")
    found = checkpoints.read(tmp_path / "a.pt")
    assert {t.name: (t.dtype, t.shape, "without values" in t.why) for t in found.tensors} == {
        "model.weight": ("float32", (2, 3), True),
        "model.bias": ("float32", (2,), True),
    }
    assert not found.refused


def test_a_format_that_is_not_read_says_what_lies_there_and_what_to_do(tmp_path):
    (tmp_path / "model.msgpack").write_bytes(b"\x81\xa1a\x01" * 9)
    (tmp_path / "orbax").mkdir()
    for name in ("_METADATA", "manifest.ocdbt"):
        (tmp_path / "orbax" / name).write_text("{}")
    with pytest.raises(checkpoints.Unreadable, match=r"Flax.*numpy\.savez"):
        checkpoints.read(tmp_path / "model.msgpack")
    with pytest.raises(checkpoints.Unreadable, match=r"it holds _METADATA, manifest\.ocdbt; .*numpy\.savez"):
        checkpoints.read(tmp_path / "orbax")
