"""What a loop logs turn by turn is read as a table: the same rows as one by one, whatever comes between and is damaged."""

from __future__ import annotations

import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.tensorboard_format import loop_tables, tfrecord_chain, vectorized
from tests.parsers.test_tfrecord import frame

pytest.importorskip("tensorboard")
from tensorboard.compat.proto import summary_pb2, tensor_pb2

from tests.parsers.test_tensorboard import Oracle, Read, Wire, event, same, value

LONG = "a_tag_of_a_layer/" * 3


class Loop:
    """A loop that logs scalars of any form, and what it may log beside them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.wire = Wire(seed)
        self.places = [self.place() for _ in range(self.rng.choice([1, 2, 5, 12]))]
        self.strange = self.rng.choice([0.0, 0.0, 0.01, 0.2])  # share of turns

    def place(self) -> tuple[str, list[str], str]:
        rng = self.rng
        form = rng.choice(["simple"] * 4 + ["float", "content", "double", "text", "image", "shaped", "histogram", "pair"])
        tags = ["loss"] if rng.random() < 0.7 else [f"{rng.choice(['', LONG])}{c}" for c in "abc"]  # of one length
        return form, tags, rng.choice(["", "", "scalars"]) if form != "text" else "text"

    def turn(self, i: int) -> list[bytes]:
        if self.rng.random() < self.strange:
            return [self.wire.event() for _ in self.places]
        step = self.rng.choice([100, 20_000, 0, 1 << 40]) + i if self.rng.random() < 0.1 else 1000 + i
        return [self.logged(k, *place, step).SerializeToString() for k, place in enumerate(self.places)]

    def logged(self, k: int, form: str, tags: list[str], plugin: str, step: int) -> Any:
        number = self.rng.choice([math.nan, math.inf, -0.0]) if self.rng.random() < 0.05 else self.rng.gauss(0, 1)
        tag = f"{k}/{form}/{tags[step % len(tags)]}"
        bodies: dict[str, Any] = {
            "simple": lambda: {"simple_value": number},
            "pair": lambda: {"simple_value": number},
            "float": lambda: {"tensor": tensor_pb2.TensorProto(dtype=1, float_val=[number])},
            "content": lambda: {"tensor": tensor_pb2.TensorProto(dtype=1, tensor_content=struct.pack("<f", number))},
            "double": lambda: {"tensor": tensor_pb2.TensorProto(dtype=2, double_val=[number])},
            "text": lambda: {"tensor": tensor_pb2.TensorProto(dtype=7, string_val=[b"said %04d" % (step % 10_000)])},
            "image": lambda: {"image": summary_pb2.Summary.Image(height=2, encoded_image_string=b"....")},
            "shaped": lambda: {"tensor": tensor_pb2.TensorProto(dtype=1, float_val=[1.0, number], tensor_shape={"dim": [{"size": 2}]})},
            "histogram": lambda: {"histo": summary_pb2.HistogramProto(num=2, bucket_limit=[1.0, 2.0], bucket=[1.0, 1.0])},
        }
        values = [value(tag, plugin, **bodies[form]()) for _ in range(2 if form == "pair" else 1)]
        return event(*values, step=step, wall=1.7e9 + step + self.rng.random())


def parted(path: Path, monkeypatch: pytest.MonkeyPatch, loops: bool = True) -> tuple[Read, int]:
    """What is read, and how many records the lockstep was given; without ``loops``, no loop is looked for."""
    given = 0
    decode = vectorized.decode

    def counted(data: Any, start: Any, *rest: Any) -> Any:
        nonlocal given
        given += len(start)
        return decode(data, start, *rest)

    with monkeypatch.context() as m:
        m.setattr(vectorized, "decode", counted)
        if not loops:
            m.setattr(loop_tables, "find", lambda *_: None)
        return Read(path), given


def rows(read: Read) -> list[Any]:
    """Every row but for its order: NaN equals NaN."""
    return sorted(repr(sorted(row.items())) for table in read.rows.values() for row in table)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 48), flips=st.sampled_from([0, 0, 1, 30]))
def test_a_loop_reads_as_its_records_do(tmp_path_factory: pytest.TempPathFactory, seed: int, flips: int) -> None:
    loop = Loop(seed)
    events = [e for i in range(loop.rng.choice([100, 400])) for e in loop.turn(i)]
    data = bytearray(b"".join(map(frame, events)))
    for _ in range(flips):
        data[loop.rng.randrange(len(data))] ^= 1 << loop.rng.randrange(8)
    path = tmp_path_factory.mktemp("loop") / "x.tfevents"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as monkeypatch:
        together, _ = parted(path, monkeypatch)
        alone, every = parted(path, monkeypatch, loops=False)
    assert rows(together) == rows(alone)
    assert sorted(map(repr, together.gaps)) == sorted(map(repr, alone.gaps)) and together.notes == alone.notes
    if not flips:
        assert every == len(events)
        oracle = Oracle()
        expected = [row for e in events for row in oracle.scalars(e)]
        found = [[r["tag"], r["step"], r["value"], r["time"]] for r in sorted(together.rows["metrics"], key=lambda r: r["at"])]
        assert same(found, expected)


@pytest.mark.parametrize("tags", [["loss"], ["loss", "lr"], [f"layer/{i:02d}" for i in range(40)]], ids=["one", "two", "many alike"])
@pytest.mark.parametrize("style", ["simple", "tensor"])
def test_hardly_a_record_of_a_loop_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: list[str], style: str) -> None:
    path, expected = tmp_path / "x.tfevents", []
    with path.open("wb") as out:
        for step in range(4000):
            for k, tag in enumerate(tags):
                number = float(np.float32(k + 1 / (step + 1)))
                expected.append((tag, step, number, 1.7e9 + step))
                body: dict[str, Any] = {"simple_value": number}
                if style == "tensor":
                    body = {"tensor": tensor_pb2.TensorProto(dtype=1, tensor_content=struct.pack("<f", number))}
                out.write(frame(event(value(tag, "scalars", **body), step=step, wall=1.7e9 + step).SerializeToString()))
    read, given = parted(path, monkeypatch)
    assert read.scalars() == expected and read.gaps == []
    assert given < 0.1 * len(expected)


def test_a_tag_that_is_no_scalar_stays_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is named once, before the loop; the loop's tensors look like scalars."""
    path = tmp_path / "x.tfevents"
    tensor = tensor_pb2.TensorProto(dtype=1, float_val=[2.0])
    events = [event(value("shot", "images", tensor=tensor)), *(event(value("shot", tensor=tensor), step=i) for i in range(1, 999))]
    path.write_bytes(b"".join(frame(e.SerializeToString()) for e in events))
    read, _ = parted(path, monkeypatch)
    assert read.scalars() == [] and read.notes == ["999 images, counted, not decoded"]


@pytest.mark.parametrize(("sizes", "period"), [
    ([30] * 400, 1), ([30, 31] * 200, 2), (list(range(20, 50)) * 15, 30), ([*range(20, 350), *[40, 50] * 40], 0),
    ([*range(20, 320), *[40, 50] * 150], 2), ([20, 20, 30] * 150 + [20], 3),
])  # fmt: skip
def test_the_period_is_that_of_the_last_half(sizes: list[int], period: int) -> None:
    assert tfrecord_chain.period_of(np.array(sizes)) == period
