"""TensorBoard event files against TensorBoard's own readers, torch's writer and protobuf."""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parsers
from parsers.formats import tensorboard
from parsers.tables import Gap, Note, table_of
from tests.parsers.test_tfrecord import frame

tb = pytest.importorskip("tensorboard")
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2  # noqa: E402
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # noqa: E402

SHARED = Path(__file__).parents[2].parent / "shared"


class Read:
    """Everything a file gives, as plain rows."""

    def __init__(self, path: Path) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {"metrics": [], "histograms": [], "events": [], "config": []}
        self.gaps: list[Gap] = []
        self.notes: list[str] = []
        for piece in tensorboard.parse(path):
            if isinstance(piece, Gap):
                self.gaps.append(piece)
            elif isinstance(piece, Note):
                self.notes.append(piece.text)
            else:
                assert isinstance(piece, pa.RecordBatch)
                piece.validate(full=True)
                self.rows[table_of(piece)] += piece.to_pylist()

    def scalars(self) -> list[tuple[str, int, float, float]]:
        return [(row["tag"], row["step"], row["value"], row["time"]) for row in self.rows["metrics"]]


def same(a: Any, b: Any) -> bool:
    """Equal, and NaN equals NaN."""
    return len(a) == len(b) and all(
        x == y or (isinstance(x, float) and isinstance(y, float) and math.isnan(x) and math.isnan(y))
        for left, right in zip(a, b, strict=True)
        for x, y in zip(left, right, strict=True)
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.out.tfevents.1700000000.host"


def write(path: Path, *events: event_pb2.Event) -> None:
    path.write_bytes(b"".join(frame(e.SerializeToString()) for e in events))


def value(tag: str, plugin: str = "", **body: Any) -> summary_pb2.Summary.Value:
    out = summary_pb2.Summary.Value(tag=tag, **body)
    if plugin:
        out.metadata.plugin_data.plugin_name = plugin
    return out


def event(*values: summary_pb2.Summary.Value, step: int = 0, wall: float = 1.5) -> event_pb2.Event:
    return event_pb2.Event(step=step, wall_time=wall, summary=summary_pb2.Summary(value=values))


# ------------------------------------------------------------------------------------------------ the real readers


def accumulated(path: Path) -> dict[str, list[tuple[int, float, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    reader = EventAccumulator(str(path), {"scalars": 0, "tensors": 0}, purge_orphaned_data=False)
    reader.Reload()
    tags = reader.Tags()
    out = {tag: [(e.step, e.value, e.wall_time) for e in reader.Scalars(tag)] for tag in tags["scalars"]}
    for tag in tags["tensors"]:
        if reader.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            out[tag] = [(e.step, make_ndarray(e.tensor_proto).item(), e.wall_time) for e in reader.Tensors(tag)]
    return out


def by_tag(read: Read) -> dict[str, list[tuple[int, float, float]]]:
    out: dict[str, list[tuple[int, float, float]]] = {}
    for tag, step, number, time in read.scalars():
        out.setdefault(tag, []).append((step, number, time))
    return out


@pytest.fixture
def torch_file(tmp_path: Path) -> Callable[..., Path]:
    def written(fill: Callable[[Any], None]) -> Path:
        writers = pytest.importorskip("torch.utils.tensorboard")
        with writers.SummaryWriter(str(tmp_path / "run")) as writer:
            fill(writer)
        return max((tmp_path / "run").glob("*tfevents*"))

    return written


@pytest.mark.parametrize("style", ["simple_value", "float tensor", "double tensor"])
def test_torch_scalars_equal_the_accumulator(torch_file: Callable[..., Path], style: str) -> None:
    rng = random.Random(1)

    def fill(writer: Any) -> None:
        options = {"new_style": style != "simple_value", "double_precision": style == "double tensor"}
        for step in [*range(300), *range(250, 400), 2**40, -5]:
            writer.add_scalar("train/loss", rng.gauss(0, 1), step, **options)
            if step % 3 == 0:
                writer.add_scalar("Verlust/größe\nzwei", rng.choice([math.nan, math.inf, -math.inf, 1e-40]), step, **options)
        writer.add_scalar("t" * 5000, 1.0, 7, **options)

    path = torch_file(fill)
    read, oracle = Read(path), accumulated(path)
    mine = by_tag(read)
    assert mine.keys() == oracle.keys() and len(mine) == 3
    for tag in oracle:
        assert same(mine[tag], oracle[tag])
    assert read.gaps == [] and read.notes == []
    steps = [row["step"] for row in read.rows["metrics"] if row["tag"] == "train/loss"]
    assert steps == [*range(300), *range(250, 400), 2**40, -5]  # nothing is purged


def test_torch_equals_tbparse(torch_file: Callable[..., Path]) -> None:
    tbparse = pytest.importorskip("tbparse")
    path = torch_file(lambda writer: [writer.add_scalar(f"m{i % 4}", i / 7, i) for i in range(200)])
    frame_ = tbparse.SummaryReader(str(path), extra_columns={"wall_time"}).scalars
    expected = sorted(frame_[["tag", "step", "value", "wall_time"]].itertuples(index=False, name=None))
    assert sorted(Read(path).scalars()) == expected


def test_arguments_written_as_a_text_are_config(torch_file: Callable[..., Path]) -> None:
    def fill(writer: Any) -> None:
        writer.add_text("args", '{"lr": 0.1, "optim": {"name": "adamw"}, "hub_token": "abcdefgh12345678"}')
        writer.add_text("samples", '{"lr": "an answer"}', 4)
        writer.add_text("config", '{"cut', 5)

    read = Read(torch_file(fill))
    found = {row["key"]: row["value"] for row in read.rows["config"]}
    assert found.keys() == {"lr", "optim.name", "hub_token"} and found["lr"] == "0.1" and "abcdefgh" not in found["hub_token"]
    assert len(read.rows["events"]) == 3


def test_torch_text_histograms_images_and_graphs(torch_file: Callable[..., Path]) -> None:
    samples = np.random.default_rng(0).normal(3, 2, 5000)

    def fill(writer: Any) -> None:
        writer.add_text("config", "lr: 0.1 and HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", 4)
        writer.add_histogram("weights", samples, 9)
        for step in range(3):
            writer.add_image("picture", np.zeros((3, 4, 4), np.uint8), step)
        writer.add_audio("sound", np.zeros((1, 100), np.float32), 1, sample_rate=8000)

    pytest.importorskip("PIL")
    read = Read(torch_file(fill))
    (text,) = read.rows["events"]
    assert (text["kind"], text["step"]) == ("text", 4)
    assert text["text"].startswith("config") and ": lr: 0.1 and HF_TOKEN" in text["text"] and "hf_abc" not in text["text"]
    (row,) = read.rows["histograms"]
    assert (row["tag"], row["step"], row["count"]) == ("weights", 9, 5000)
    assert row["min"] == pytest.approx(samples.min()) and row["max"] == pytest.approx(samples.max())
    assert row["mean"] == pytest.approx(samples.mean()) and row["std"] == pytest.approx(samples.std())
    for name, q in (("p05", 5), ("p25", 25), ("p50", 50), ("p75", 75), ("p95", 95)):
        assert row[name] == pytest.approx(np.percentile(samples, q), abs=0.2)
    assert read.notes == ["1 audio clip and 3 images, counted, not decoded"]


def test_torch_hparams(tmp_path: Path) -> None:
    writers = pytest.importorskip("torch.utils.tensorboard")
    with writers.SummaryWriter(str(tmp_path)) as writer:
        settings_ = {"lr": 0.1, "batch": 16, "amp": True, "name": "adam", "api_key": "secret-value"}
        writer.add_hparams(settings_, {"hparam/acc": 0.5}, run_name="hp")
    (path,) = (tmp_path / "hp").glob("*tfevents*")
    read = Read(path)
    config = {row["key"]: json.loads(row["value"]) for row in read.rows["config"]}
    assert {key: config[key] for key in ("lr", "batch", "amp", "name")} == {"lr": 0.1, "batch": 16, "amp": True, "name": "adam"}
    assert config["api_key"] == "***" and config["hparams.metrics"] == ["hparam/acc"]
    assert not [k for k in config if k.startswith("hparams.domain")]  # torch names the settings once more, without a value
    assert [row["text"] for row in read.rows["events"]] == ["hparams session: success"]
    assert [(tag, v) for tag, _, v, _ in read.scalars()] == [("hparam/acc", 0.5)]
    assert read.notes == []


# ------------------------------------------------------------------------------------------------- hand-made events

NUMPY = {
    1: np.float32,
    2: np.float64,
    3: np.int32,
    4: np.uint8,
    5: np.int16,
    6: np.int8,
    9: np.int64,
    10: np.bool_,
    17: np.uint16,
    19: np.float16,
    22: np.uint32,
    23: np.uint64,
}
LISTS = {
    1: "float_val",
    2: "double_val",
    3: "int_val",
    4: "int_val",
    5: "int_val",
    6: "int_val",
    9: "int64_val",
    10: "bool_val",
    17: "int_val",
    22: "uint32_val",
    23: "uint64_val",
}
BF16, HALF = 14, 19


def tensor(dtype: int, number: Any, listed: bool, shape: list[int] | None = None) -> tensor_pb2.TensorProto:
    out = tensor_pb2.TensorProto(dtype=dtype, tensor_shape=TensorShapeProto())
    for size in shape or []:
        out.tensor_shape.dim.add(size=size)
    if dtype == BF16:
        bits = np.float32(number).view(np.uint32) >> 16
        content = np.uint16(bits).tobytes()
    else:
        content = NUMPY[dtype](number).tobytes()
    if not listed:
        out.tensor_content = content
    elif dtype in (BF16, HALF):
        out.half_val.append(int.from_bytes(content, "little"))
    else:
        getattr(out, LISTS[dtype]).append(NUMPY[dtype](number).item())
    return out


def extremes(dtype: int) -> list[Any]:
    if dtype == 10:
        return [True, False]
    if dtype in (1, 2, BF16, HALF):
        return [0.0, -1.5, math.nan, math.inf, -math.inf, 3.0]
    limits = np.iinfo(NUMPY[dtype])
    return [0, 1, limits.max, limits.min]


@pytest.mark.parametrize("shape", [None, [1], [1, 1]])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("dtype", [*NUMPY, BF16])
def test_tensor_scalar_of_every_type(file: Path, dtype: int, listed: bool, shape: list[int] | None) -> None:
    numbers = extremes(dtype)
    write(file, *(event(value("x", "scalars", tensor=tensor(dtype, n, listed, shape)), step=i) for i, n in enumerate(numbers)))
    read = Read(file)
    assert same([(v,) for _, _, v, _ in read.scalars()], [(float(n),) for n in numbers])
    assert read.gaps == [] and read.notes == []


def test_what_is_no_scalar_is_counted(file: Path) -> None:
    vector = tensor_pb2.TensorProto(dtype=1, float_val=[1, 2, 3])
    vector.tensor_shape.dim.add(size=3)
    empty = tensor_pb2.TensorProto(dtype=1)
    empty.tensor_shape.dim.add(size=0)
    write(
        file,
        event(value("v", "scalars", tensor=vector), value("w", tensor=vector)),
        event(value("pr", "pr_curves", tensor=vector)),
        event(value("e", "scalars", tensor=empty)),
        event(value("i", "images", tensor=tensor_pb2.TensorProto(dtype=7, string_val=[b"4", b"4", b"png"]))),
        event(value("none")),
        event_pb2.Event(graph_def=b"graph"),
        event(value("good", simple_value=2.0)),
    )
    read = Read(file)
    assert [(tag, v) for tag, _, v, _ in read.scalars()] == [("good", 2.0)]
    assert read.gaps == []
    counts = "1 graph, 1 image, 1 record of plugin pr_curves, 3 tensors and 1 value without content"
    assert read.notes == [f"{counts}, counted, not decoded"]


def test_metadata_only_in_the_first_record(file: Path) -> None:
    """Later records of a tag may leave it out: a text stays a text, a number of another plugin is no scalar."""
    words = tensor_pb2.TensorProto(dtype=7, string_val=[b"second"])
    one = tensor(1, 4.0, False)
    write(
        file,
        event(value("t", "text", tensor=tensor_pb2.TensorProto(dtype=7, string_val=[b"first"])), step=1),
        event(value("t", tensor=words), step=2),
        event(value("a", "audio", tensor=one)),
        event(value("a", tensor=one)),
        event(value("s", "scalars", tensor=one)),
        event(value("s", tensor=one)),
        event(value("nobody", tensor=one)),
    )
    read = Read(file)
    assert [(row["text"], row["step"]) for row in read.rows["events"]] == [("t: first", 1), ("t: second", 2)]
    assert [tag for tag, *_ in read.scalars()] == ["s", "s", "nobody"]
    assert read.notes == ["2 audio clips, counted, not decoded"]


def test_sessions_logs_and_versions_are_no_metrics(file: Path) -> None:
    write(
        file,
        event_pb2.Event(wall_time=1.0, file_version="brain.Event:2"),
        event(value("x", simple_value=1.0), step=5),
        event_pb2.Event(session_log=event_pb2.SessionLog(status=1), step=3),
        event_pb2.Event(log_message=event_pb2.LogMessage(level=40, message="out of memory")),
        event(value("x", simple_value=2.0), step=3),
    )
    read = Read(file)
    assert [(step, v) for _, step, v, _ in read.scalars()] == [(5, 1.0), (3, 2.0)]
    assert [(e["kind"], e["level"], e["text"]) for e in read.rows["events"]] == [
        ("session", "info", "session start"),
        ("log", "error", "out of memory"),
    ]


@pytest.mark.parametrize("style", ["tensor", "proto", "proto with unpacked buckets"])
def test_histogram_quantiles(file: Path, style: str) -> None:
    samples = np.random.default_rng(1).uniform(0, 10, 20_000)
    counts, edges = np.histogram(samples, 50)
    if style == "tensor":
        content = np.stack([edges[:-1], edges[1:], counts], 1).astype("<f8")
        proto = tensor_pb2.TensorProto(dtype=2, tensor_content=content.tobytes())
        proto.tensor_shape.dim.add(size=50)
        proto.tensor_shape.dim.add(size=3)
        write(file, event(value("h", "histograms", tensor=proto), step=3))
    else:
        proto = summary_pb2.HistogramProto(
            min=samples.min(),
            max=samples.max(),
            num=20_000,
            sum=samples.sum(),
            sum_squares=(samples**2).sum(),
            bucket_limit=edges[1:],
            bucket=counts,
        )
        data = event(value("h", histo=proto), step=3).SerializeToString()
        if style != "proto":
            body = proto.SerializeToString()[: 5 * 9]
            for number, numbers in ((6, edges[1:]), (7, counts)):
                body += b"".join(bytes([number << 3 | 1]) + struct.pack("<d", x) for x in numbers)
            data = b"\x10\x03" + field(5, field(1, field(1, b"h") + field(5, body)))
        file.write_bytes(frame(data))
    (row,) = Read(file).rows["histograms"]
    assert (row["tag"], row["step"], row["count"]) == ("h", 3, 20_000)
    for name, q in (("min", 0), ("p05", 5), ("p25", 25), ("p50", 50), ("p75", 75), ("p95", 95), ("max", 100)):
        assert row[name] == pytest.approx(np.percentile(samples, q), abs=0.1)
    assert row["mean"] == pytest.approx(samples.mean(), rel=0.01) and row["std"] == pytest.approx(samples.std(), rel=0.01)


def test_strange_histograms_do_not_disturb_others(file: Path) -> None:
    plain = {"min": 1, "max": 3, "num": 4, "sum": 8, "sum_squares": 18, "bucket_limit": [1, 2, 1e308], "bucket": [0, 2, 2]}
    strange = [
        {},
        {"num": math.nan, "bucket_limit": [1, 2], "bucket": [math.nan, math.inf]},
        {"bucket_limit": [1.0], "bucket": [1, 2, 3]},
        {"min": math.nan, "max": math.nan, "bucket_limit": [1], "bucket": [1e308]},
    ]
    protos = [summary_pb2.HistogramProto(**(plain if i % 2 else strange[i // 2 % 4])) for i in range(40)]
    write(file, *(event(value("h", histo=p), step=i) for i, p in enumerate(protos)))
    rows = Read(file).rows["histograms"]
    assert [row["step"] for row in rows] == list(range(40))
    for row in rows[1::2]:
        assert (row["count"], row["min"], row["max"], row["mean"]) == (4, 1, 3, 2)
        assert (row["p25"], row["p50"], row["p75"]) == (1.5, 2, 2.5)


# ---------------------------------------------------------------------------------------- wire format, written by hand


def varint(n: int, longer: int = 0) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    if longer and len(out) + longer < 10:  # the same number in more bytes than it needs
        return bytes(out) + bytes([n | 0x80]) + b"\x80" * (longer - 1) + b"\0"
    return bytes(out) + bytes([n])


def field(number: int, content: bytes | int, wire: int = 2) -> bytes:
    key = varint(number << 3 | wire)
    if wire == 2:
        assert isinstance(content, bytes)
        return key + varint(len(content)) + content
    assert isinstance(content, int)
    return key + (varint(content) if wire == 0 else content.to_bytes(8 if wire == 1 else 4, "little"))


def float_field(number: int, x: float) -> bytes:
    return field(number, struct.unpack("<I", struct.pack("<f", x))[0], 5)


class Wire:
    """Random messages of the event grammar: any order, fields twice, unknown fields, packed or not."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rare = self.rng.choice([0.0, 0.02, 0.3])

    def shuffled(self, parts: list[bytes]) -> bytes:
        if self.rng.random() < self.rare:
            self.rng.shuffle(parts)
        if self.rng.random() < self.rare:
            parts.insert(self.rng.randrange(len(parts) + 1), self.unknown())
        return b"".join(parts)

    def unknown(self) -> bytes:
        number = self.rng.choice([20, 100, 3000, 100_000])
        group = varint(number << 3 | 3) + field(5, 7, 0) + varint(number << 3 | 4)
        return self.rng.choice([field(number, b"\x08\x01"), field(number, 1 << 40, 0), field(number, 9, 1), field(number, 9, 5), group])

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def number(self) -> float:
        return self.rng.choice([0.0, -0.0, 1.5, -2.25, math.inf, math.nan, self.rng.gauss(0, 1)])

    def tensor(self, dtype: int = 0) -> bytes:
        rng = self.rng
        dtype = dtype or rng.choice([1, 1, 1, 2, 3, 4, 5, 6, 9, 10, 14, 17, 19, 22, 23, 7, 8])
        parts = [field(1, dtype, 0)]
        if not self.maybe(self.rare):
            dims = rng.choice([[], [], [], [1], [2]]) if self.maybe(self.rare) else []
            parts.append(field(2, b"".join(field(2, field(1, d, 0)) for d in dims)))
        if self.maybe(0.3):
            parts.append(field(3, 1, 0))
        small = rng.randrange(0, 100)
        if dtype == 7:
            count = rng.choice([1, 1, 0, 2]) if self.maybe(self.rare) else 1
            parts += [field(8, rng.choice([b"words", b"", "größer".encode(), b"\xff"])) for _ in range(count)]
        elif dtype != 8 and self.maybe(0.5):
            content = np.array([small], np.uint16 if dtype == BF16 else NUMPY[dtype]).tobytes()
            parts.append(field(4, content))
        elif dtype != 8:
            count = rng.choice([1, 1, 1, 0, 2]) if self.maybe(self.rare) else 1
            many = [small] * count
            listed = {1: 5, 2: 6, 9: 10, 10: 11, 14: 13, 19: 13, 22: 16, 23: 17}.get(dtype, 7)
            if dtype in (1, 2):
                form, wire = ("<f", 5) if dtype == 1 else ("<d", 1)
                items = [struct.pack(form, self.number()) for _ in many]
            else:
                sign = -1 if dtype in (3, 5, 6, 9) and self.maybe(0.3) else 1
                items, wire = [varint(sign * n, rng.choice([0, 0, 0, 2])) for n in many], 0
            packed = self.maybe(0.5)
            parts += [field(listed, b"".join(items))] if packed else [varint(listed << 3 | wire) + item for item in items]
        return self.shuffled(parts)

    def value(self) -> bytes:
        rng = self.rng
        tag = rng.choice(["loss", "train/acc", "größe", "", "a" * 40, "x\ny", "L" * 300, "words", "shots"]).encode()
        parts = [field(1, tag)] if tag else []
        words = tag == b"words" and self.maybe(0.8)
        bodies = [field(8, self.tensor(7))] if words else [float_field(2, self.number()), field(8, self.tensor())]
        parts.append(rng.choice(bodies))
        if self.maybe(self.rare):
            parts += rng.sample([*bodies, field(4, b"\x08\x02"), field(7, b"node")], 2)
        if tag in (b"words", b"shots"):  # a tag's plugin does not change in a log
            parts.append(field(9, self.shuffled([field(1, field(1, b"text" if tag == b"words" else b"images"))])))
        elif self.maybe(self.rare):
            parts.append(field(1, b"other"))
        elif self.maybe(0.4):
            parts.append(field(9, self.shuffled([field(1, field(1, b"scalars") + self.maybe(0.3) * field(2, b"data"))])))
        return self.shuffled(parts)

    def event(self) -> bytes:
        rng = self.rng
        parts = [field(1, struct.unpack("<Q", struct.pack("<d", rng.choice([1.7e9 + rng.random(), math.nan])))[0], 1)]
        if self.maybe(0.9):
            step = rng.choice([0, 1, rng.randrange(1 << 20), -1, (1 << 63) - 1, -(1 << 63), 1 << 31])
            parts.append(varint(2 << 3) + varint(step, rng.choice([0, 0, 0, 1, 3])))
        count = rng.choice([1, 1, 1, 0, 3])
        parts.append(field(5, self.shuffled([field(1, self.value()) for _ in range(count)])))
        if self.maybe(self.rare):
            parts.append(rng.choice([field(5, field(1, self.value())), field(4, b"graph"), field(3, b"brain.Event:2"), field(2, 9, 0)]))
        return self.shuffled(parts)


class Oracle:
    """What protobuf and numpy make of an event; independent of the parser."""

    def __init__(self) -> None:
        self.plugin: dict[str, str] = {}

    def scalars(self, data: bytes) -> list[tuple[str, int, float, float]]:
        parsed = event_pb2.Event.FromString(data)
        out = []
        for v in parsed.summary.value:
            name = v.metadata.plugin_data.plugin_name
            if name:
                self.plugin.setdefault(v.tag, name)
            number = None
            if v.WhichOneof("value") == "simple_value":
                number = v.simple_value
            elif v.WhichOneof("value") == "tensor" and self.plugin.get(v.tag) not in ("text", "images"):
                number = self.element(v.tensor)
            if number is not None:
                out.append((v.tag, parsed.step, number, parsed.wall_time))
        return out

    def texts(self, data: bytes) -> list[tuple[int, str]]:
        """Once the scalars have been asked for, which learns the plugins."""
        parsed = event_pb2.Event.FromString(data)
        held = [v for v in parsed.summary.value if v.WhichOneof("value") == "tensor" and v.tensor.dtype == 7]
        held = [v for v in held if self.plugin.get(v.tag) == "text"]
        joined = [(v.tag, "\n".join(t.decode("utf-8", "backslashreplace") for t in v.tensor.string_val)) for v in held]
        return [(parsed.step, f"{tag}: {text}") for tag, text in joined]

    @staticmethod
    def element(t: tensor_pb2.TensorProto) -> float | None:
        if t.dtype not in (*NUMPY, BF16) or any(d.size != 1 for d in t.tensor_shape.dim):
            return None
        kind = np.uint16 if t.dtype == BF16 else NUMPY[t.dtype]
        if t.tensor_content:
            array = np.frombuffer(t.tensor_content, kind)
        elif t.dtype in (BF16, HALF):
            array = np.array(t.half_val, np.uint16).view(kind)
        else:
            array = np.array(getattr(t, LISTS[t.dtype]), kind)
        if t.dtype == BF16:
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return float(array[0]) if len(array) == 1 else None


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 1 << 48), count=st.integers(1, 60))
def test_random_events_equal_protobuf(tmp_path_factory: pytest.TempPathFactory, seed: int, count: int) -> None:
    wire, oracle = Wire(seed), Oracle()
    path = tmp_path_factory.mktemp("wire") / "x.tfevents"
    events = [wire.event() for _ in range(count)]
    path.write_bytes(b"".join(map(frame, events)))
    read = Read(path)
    assert read.gaps == []
    expected = [row for e in events for row in oracle.scalars(e)]
    assert same(read.scalars(), expected)
    said = [row for e in events for row in oracle.texts(e)]
    told = sorted((row for row in read.rows["events"] if row["kind"] == "text"), key=lambda row: row["at"])
    assert [(row["step"], row["text"]) for row in told] == said
    starts = np.cumsum([0] + [len(e) + 16 for e in events]).tolist()
    assert {row["at"] for row in read.rows["metrics"]} <= set(starts)


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 1 << 48), count=st.integers(1, 40))
def test_broken_messages_in_sound_frames(tmp_path_factory: pytest.TempPathFactory, seed: int, count: int) -> None:
    """Bytes changed before the checksums were made: what protobuf reads is read alike, nothing crashes, others stay."""
    wire, rng = Wire(seed), random.Random(seed)
    path = tmp_path_factory.mktemp("broken") / "x.tfevents"
    events = []
    for i in range(count):
        broken = bytearray(wire.event())
        for _ in range(rng.choice([0, 1, 1, 5])):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.2:
            del broken[rng.randrange(len(broken)) :]
        events += [bytes(broken), event(value("mark", simple_value=float(i)), step=i).SerializeToString()]
    path.write_bytes(b"".join(map(frame, events)))
    read = Read(path)
    assert all(gap.lost == 1 for gap in read.gaps)
    mine: dict[int, list[Any]] = {}
    for row in read.rows["metrics"]:
        mine.setdefault(row["at"], []).append((row["step"], row["value"], row["time"]))
    at = 0
    for data in events:
        try:
            parsed = event_pb2.Event.FromString(data)
        except Exception:  # protobuf's own error type differs between its implementations
            parsed = None
        if parsed is not None:
            simple = [(parsed.step, v.simple_value, parsed.wall_time) for v in parsed.summary.value if v.HasField("simple_value")]
            tensors = sum(v.HasField("tensor") for v in parsed.summary.value)
            assert tensors or same(mine.get(at, []), simple)  # the sound events between them included
        at += len(data) + 16


def test_tag_that_is_not_utf8(file: Path) -> None:
    good = event(value("ok", simple_value=1.0)).SerializeToString()
    file.write_bytes(frame(field(5, field(1, field(1, b"a\xff") + float_field(2, 3.0)))) + frame(good))
    assert [(tag, v) for tag, _, v, _ in Read(file).scalars()] == [("a\\xff", 3.0), ("ok", 1.0)]


def test_many_tags_over_several_windows(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from parsers.tensorboard_format import tfrecord

    monkeypatch.setattr(tfrecord.read, "__defaults__", (1 << 14,))
    rows = [(f"layer/{i % 1700}/norm", i, i / 8, float(i)) for i in range(9000)]
    write(file, *(event(value(tag, simple_value=v), step=step, wall=wall) for tag, step, v, wall in rows))
    assert Read(file).scalars() == rows


def test_damage_reaches_no_other_record(file: Path) -> None:
    rows = [(f"m{i % 5}", i, i / 8, float(i)) for i in range(400)]
    framed = [frame(event(value(tag, simple_value=v), step=s, wall=w).SerializeToString()) for tag, s, v, w in rows]
    whole = b"".join(framed)
    ends = np.cumsum([len(f) for f in framed])
    rng = random.Random(5)
    for _ in range(150):
        place = rng.randrange(len(whole))
        broken = bytearray(whole)
        broken[place] ^= 1 << rng.randrange(8)
        file.write_bytes(broken)
        hit = int(np.searchsorted(ends, place, side="right"))
        read = Read(file)
        assert read.scalars() == rows[:hit] + rows[hit + 1 :]
        assert [gap.lost for gap in read.gaps] == [1]


# ------------------------------------------------------------------------------------------------ claims and the rest


def test_claims(file: Path) -> None:
    head = frame(event(value("x", simple_value=1.0)).SerializeToString())
    assert tensorboard.claims(Path("renamed.bin"), head)
    assert tensorboard.claims(file, b"") and tensorboard.claims(file, bytes(64)) and tensorboard.claims(file, head[:5])
    assert not tensorboard.claims(Path("empty"), b"") and not tensorboard.claims(Path("zeros"), bytes(64))
    example = frame(field(1, field(1, b"feature")))  # a tf.train.Example in the same framing
    assert not tensorboard.claims(Path("train.tfrecord"), example)
    assert not tensorboard.claims(Path("events.out.tfevents.csv"), b"step,loss\n1,2\n" * 9)
    broken = bytearray(head)
    broken[3] ^= 1
    assert tensorboard.claims(file, bytes(broken))


def test_files_with_nothing_in_them(file: Path, tmp_path: Path) -> None:
    write(file, event_pb2.Event(wall_time=1.0, file_version="brain.Event:2"))
    read = Read(file)
    assert read.gaps == [] and not any(read.rows.values())
    file.write_bytes(b"")
    assert list(tensorboard.parse(file)) == []
    (gap,) = tensorboard.parse(tmp_path / "missing.tfevents")
    assert isinstance(gap, Gap) and gap.lost is None


def test_helpers_are_imported_only_to_parse() -> None:
    import subprocess

    code = "import sys, parsers.formats.tensorboard as t; print([m for m in sys.modules if m in sys.argv[1:]])"
    names = ["parsers.tensorboard_format.tfrecord", "parsers.tensorboard_format.vectorized", "google_crc32c", "tensorboard", "pandas"]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not (SHARED / "open" / "runs_scalars.parquet").exists(), reason="the open runs are not here")
def test_real_runs_equal_the_independent_readers() -> None:
    import polars as pl

    table = pl.read_parquet(SHARED / "open" / "runs_scalars.parquet").filter(pl.col("format") == "tfevents")
    checked = 0
    for (run, name), rows in table.group_by("run", "file"):
        read = Read(SHARED / "open" / "runs" / str(run) / str(name))
        mine = {(tag, step, np.float64(v).tobytes()) for tag, step, v, _ in read.scalars()}
        expected = {(t, s, np.float64(v).tobytes()) for t, s, v in rows.select("tag", "step", "value").iter_rows()}
        assert expected <= mine, (run, name, list(expected - mine)[:3])
        checked += len(expected)
    assert checked > 10_000


def test_what_a_resumed_launch_logs_at_step_0_is_no_step_of_its_training(tmp_path: Path) -> None:
    """Lightning writes a metric of its hyperparameters there, wherever the training goes on from."""
    for launch, first in enumerate((0, 300)):
        begun = 1_700_000_000.0 + 1000 * launch
        steps = [event(value("loss", simple_value=3 / (1 + s / 50)), step=s, wall=begun + s / 10) for s in range(first, first + 300, 5)]
        write(tmp_path / f"events.out.tfevents.{begun:.0f}.host", event(value("hp_metric", simple_value=-1.0), wall=begun), *steps)
    (run,) = parsers.read_all(tmp_path)
    assert [a["steps"] for a in run.attempts] == [[0, 295], [300, 595]]
