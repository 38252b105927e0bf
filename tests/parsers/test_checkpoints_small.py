"""Many small tensors read as one table have the statistics that each has when it is read alone."""

import dataclasses
import json
import math
import struct

import numpy as np
import pytest

from parsers import checkpoints
from parsers.checkpoints.small import FEW, together
from parsers.checkpoints.units import streamed


def write(path, arrays, code):
    header, data = {}, b""
    for name, x in arrays.items():
        header[name] = {"dtype": code, "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return checkpoints.read(path).tensors


def odd_arrays(dtype):
    rng = np.random.default_rng(5)
    row = rng.normal(size=9)
    kinds = {
        "plain": rng.normal(size=(12, 9)),
        "zeros": np.zeros((12, 9)),
        "minus_zeros": -np.zeros((12, 9)),
        "constant": np.full((12, 9), 0.5),
        "rank_one": np.outer(rng.normal(size=12), row),
        "dead_row": rng.normal(size=(12, 9)) * (np.arange(12) != 3)[:, None],
        "dead_column": rng.normal(size=(12, 9)) * (np.arange(9) != 4),
        "shifted": rng.normal(size=(12, 9)) * 1e-3 + 100,
        "nan": np.where(np.arange(9) == 2, np.nan, rng.normal(size=(12, 9))),
        "infinite": np.where(np.arange(9) == 2, -np.inf, rng.normal(size=(12, 9))),
        "tiny": rng.normal(size=(12, 9)) * float(np.finfo(dtype).tiny),
    }
    return {f"layers.{i}.{what}.weight": x.astype(dtype) for i, (what, x) in enumerate(kinds.items())}


@pytest.mark.parametrize(("code", "dtype"), [("F32", np.float32), ("F64", np.float64), ("F16", np.float16)])
def test_a_table_says_what_each_says_alone(tmp_path, code, dtype):
    tensors = write(tmp_path / "model.safetensors", odd_arrays(dtype), code)
    found = together(tensors)
    assert len(found) >= 8
    for t in tensors:
        if id(t) in found:
            one, alone = dataclasses.asdict(found[id(t)]), dataclasses.asdict(streamed(t))
            for name, value in one.items():
                same = value == alone[name] or math.isclose(value, alone[name], rel_tol=2e-4, abs_tol=1e-7)
                assert same, (t.name, name, value, alone[name])


def test_what_is_not_finite_or_alone_is_left_to_the_stream(tmp_path):
    arrays = odd_arrays(np.float32)
    arrays["single.weight"] = np.ones((7, 7), np.float32)
    tensors = write(tmp_path / "model.safetensors", arrays, "F32")
    found = together(tensors)
    left = {t.name.split(".")[-2] for t in tensors if id(t) not in found}
    assert left == {"nan", "infinite", "single"}
    assert not together(tensors[: FEW - 1])


def test_a_model_of_nothing_but_nan_is_left_to_the_stream(tmp_path):
    arrays = {f"layers.{i}.weight": np.full((6, 4), np.nan, np.float32) for i in range(2 * FEW)}
    assert together(write(tmp_path / "model.safetensors", arrays, "F32")) == {}


def test_squares_below_zero_are_counted(tmp_path):
    arrays = {f"state.{i}.exp_avg_sq": np.full(5, -1.0 if i == 2 else 1.0, np.float32) for i in range(6)}
    tensors = write(tmp_path / "optimizer.safetensors", arrays, "F32")
    assert [together(tensors)[id(t)].negative for t in tensors] == [0, 0, 5, 0, 0, 0]


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a": ' + b"9" * 100_000 + b"}", b"{" + b"\xff" * 20, b'{"a": 1, "a": 2}'])
def test_a_header_that_is_no_json_is_told_in_plain_words(tmp_path, text):
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(checkpoints.Unreadable, match="header is not the JSON it should be") as told:
        checkpoints.read(path)
    assert "Error" not in str(told.value) and "set_int_max" not in str(told.value)
