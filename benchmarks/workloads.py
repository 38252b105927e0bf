"""Seeded workloads for the benchmarks, written with the writers' own protobuf classes and with ``json``.

Each function fills a folder and returns what every reader has to find in it: how many numbers, and their sum (None: the
reader of the file itself says it). ``scale`` 1 is the size the targets are stated for; the tests take a thousandth.
Run as a program (``python workloads.py NAME FOLDER SCALE``) it prints that as JSON: the benchmark never holds a
workload in its own memory, because a child inherits the peak.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Truth = tuple[int, float]

TAGS = ["train/loss", "train/grad_norm", "train/lr", "train/tokens_per_sec", "eval/loss", "eval/accuracy",
        *(f"layers/{i}/activation_rms" for i in range(14))]  # fmt: skip
_START = 1_700_000_000.0


# ------------------------------------------------------------------------------------------------ TensorBoard event files


def scalars(folder: Path, steps: int, tags: list[str] = TAGS, seed: int = 0) -> Truth:
    """``simple_value``, one to a record, as torch and tensorboardX write it."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    def event(wall: float, step: int, tag: str, value: float) -> Any:
        return Event(wall_time=wall, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))

    return _events(folder, event, steps, tags, seed)


def shuffled(folder: Path, steps: int) -> Truth:
    """The same records, those of each step in another order."""
    truth = scalars(folder, steps)
    (file,) = folder.iterdir()
    data, records, at = file.read_bytes(), [], 0
    while at < len(data):
        end = at + int.from_bytes(data[at : at + 8], "little") + 16
        records.append(data[at:end])
        at = end
    rng = random.Random(4)
    turns = [records[i : i + len(TAGS)] for i in range(1, len(records), len(TAGS))]
    file.write_bytes(records[0] + b"".join(b"".join(rng.sample(turn, len(turn))) for turn in turns))
    return truth


def tensors(folder: Path, steps: int) -> Truth:
    """TF2: a tensor without dimensions, and the plugin's name in every record."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"), data_class=1)

    def event(wall: float, step: int, tag: str, value: float) -> Any:
        tensor = TensorProto(dtype=1, tensor_shape={}, tensor_content=struct.pack("<f", value))
        return Event(wall_time=wall, step=step, summary={"value": [Summary.Value(tag=tag, tensor=tensor, metadata=metadata)]})

    return _events(folder, event, steps, TAGS, 1)


def _events(folder: Path, event: Callable[..., Any], steps: int, tags: list[str], seed: int) -> Truth:
    from tensorboard.compat.proto.event_pb2 import Event

    rng, total = random.Random(seed), 0.0
    with event_file(folder).open("wb") as f:
        f.write(tfrecord(Event(wall_time=_START, file_version="brain.Event:2").SerializeToString()))
        for step in range(steps):
            for k, tag in enumerate(tags):
                value = float32(1e-3 * (1 - step / steps) if k == 2 else rng.random() + 100 * k / (step + 1))
                total += value
                f.write(tfrecord(event(_START + step + k * 1e-3, step, tag, value).SerializeToString()))
    return steps * len(tags), total


def mixed(folder: Path, steps: int) -> Truth:
    """Scalars between histograms, images and texts: the bytes are in what is not a scalar."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.histogram_pb2 import HistogramProto
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    rng, total, count = random.Random(3), 0.0, 0
    text = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    edges = [-(1.1 ** (60 - i)) * 1e-3 for i in range(60)] + [1.1**i * 1e-3 for i in range(60)]
    with event_file(folder).open("wb") as f:

        def put(step: int, value: Any) -> None:
            f.write(tfrecord(Event(wall_time=_START + step, step=step, summary={"value": [value]}).SerializeToString()))

        for step in range(steps):
            for tag in TAGS[:5]:
                number = float32(rng.random())
                total, count = total + number, count + 1
                put(step, Summary.Value(tag=tag, simple_value=number))
            buckets = [float(rng.randrange(1, 50)) for _ in edges]
            held = HistogramProto(min=edges[0], max=edges[-1], num=sum(buckets), sum=1.0, sum_squares=sum(buckets),
                                  bucket_limit=edges, bucket=buckets)  # fmt: skip
            put(step, Summary.Value(tag=f"weights/{step % 10}", histo=held))
            if step % 5 == 0:
                png = rng.randbytes(28_000)
                put(step, Summary.Value(tag="samples", image=Summary.Image(height=64, width=64, colorspace=3, encoded_image_string=png)))
            if step % 8 == 0:
                said = TensorProto(dtype=7, string_val=[b"a sample of what the model says " * 8])
                put(step, Summary.Value(tag="says", tensor=said, metadata=text if step == 0 else None))
    return count, total


def runs(folder: Path, count: int, steps: int) -> Truth:
    """Many small runs, a folder each."""
    found = [scalars(folder / f"run{i:03d}", steps, TAGS, seed=100 + i) for i in range(count)]
    return sum(n for n, _ in found), sum(s for _, s in found)


def flipped(folder: Path, steps: int, flips: int) -> None:
    """The file of :func:`scalars` with so many random bits the other way round: readers agree on nothing here."""
    scalars(folder, steps)
    path, rng = event_file(folder), random.Random(4)
    data = bytearray(path.read_bytes())
    for _ in range(flips):
        bit = rng.randrange(8 * len(data))
        data[bit >> 3] ^= 1 << (bit & 7)
    path.write_bytes(data)


def event_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "events.out.tfevents.1700000000.host.1.0"


def tfrecord(payload: bytes) -> bytes:
    """TensorFlow's framing; TensorBoard's own writer takes a minute for a million checksums in Python."""
    from google_crc32c import value

    def masked(data: bytes) -> bytes:
        crc = value(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return b"".join((length, masked(length), payload, masked(payload)))


def float32(value: float) -> float:
    """As the file will hold it, so that sums agree."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


# ------------------------------------------------------------------------------------------------------------------- W&B


def wandb(folder: Path, steps: int) -> Truth:
    """A ``.wandb`` file as the SDK writes it: each step a history record and its repetition as a summary."""
    from wandb.proto.wandb_internal_pb2 import Record

    rng, total = random.Random(5), 0.0
    names = [t.split("/") for t in TAGS]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run-benchmark.wandb").open("wb") as f:

        def framed() -> Iterator[bytes]:
            nonlocal total
            for step in range(steps):
                values = [rng.random() * 10 ** rng.randrange(-5, 5) for _ in names]
                total += sum(values)
                texts = [json.dumps(v) for v in values]
                history, summary = Record(num=2 * step + 1), Record(num=2 * step + 2)
                history.history.step.num = step
                for name, text in zip(names, texts, strict=True):
                    history.history.item.add(nested_key=["/".join(name)], value_json=text)
                    summary.summary.update.add(nested_key=["/".join(name)], value_json=text)
                for key, text in (("_step", str(step)), ("_timestamp", repr(_START + step)), ("_runtime", str(step))):
                    history.history.item.add(nested_key=[key], value_json=text)
                yield history.SerializeToString()
                yield summary.SerializeToString()

        f.writelines(leveldb_log(framed()))
    return steps * (len(names) + 1), total + sum(range(steps))  # _runtime is a metric too


def leveldb_log(records: Iterable[bytes]) -> Iterator[bytes]:
    """The file's header and its blocks of 32 KiB."""
    size = 32768
    yield b":W&B\xe1\xbe\x00"
    used = 7
    for record in records:
        rest, kind = memoryview(record), 0
        while rest or not kind:
            room = size - used
            if room < 7:
                yield bytes(room)
                used, room = 0, size
            part, rest = rest[: room - 7], rest[room - 7 :]
            kind = (1 if not rest else 2) if not kind else (4 if not rest else 3)
            yield struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind)
            yield bytes(part)
            used += 7 + len(part)


# -------------------------------------------------------------------------------------------------------- JSON and console


def trainer_state(folder: Path, entries: int, nan: bool = False, torn: bool = False) -> Truth:
    """Hugging Face's ``trainer_state.json``, as ``TrainerState.save_to_json`` dumps it."""
    rng, total, count = random.Random(6), 0.0, 0
    history = []
    for i in range(entries):
        row = {"epoch": round(i / 1000, 4), "grad_norm": rng.random() * 3, "learning_rate": 1e-4 * (1 - i / entries),
               "loss": float("nan") if nan and i % 997 == 0 else round(rng.random() * 5, 4), "step": (i + 1) * 10}  # fmt: skip
        numbers = [v for k, v in row.items() if k != "step" and v == v]
        total, count = total + sum(numbers), count + len(row) - 1
        history.append(row)
    state = {"best_metric": None, "epoch": 1.0, "global_step": entries * 10, "log_history": history, "max_steps": entries * 10}
    text = json.dumps(state, indent=2, sort_keys=True) + "\n"
    if torn:  # in the last entry
        text = text[: text.rindex('"loss"')]
        last = history[-1]
        total, count = total - sum(v for k, v in last.items() if k != "step" and v == v), count - len(last) + 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(text)
    return count, total


def jsonl(folder: Path, rows: int, nan: bool = False, torn: bool = False) -> Truth:
    """15 keys a line; ``torn``: the last line breaks off."""
    rng, total, count = random.Random(7), 0.0, 0
    keys = ["loss", "grad_norm", "lr", "tokens_per_sec", *(f"layer{i}/rms" for i in range(9))]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.jsonl").open("w") as f:
        for step in range(rows):
            values = [rng.random() * 10 for _ in keys]
            if nan and step % 997 == 0:
                values[1] = float("nan")
            total, count = total + sum(v for v in values if v == v), count + len(values)
            f.write(json.dumps({"step": step, "time": _START + step, **dict(zip(keys, values, strict=True))}) + "\n")
        if torn:
            f.write('{"step": 1000000, "time": 17000')
    return count, total


MEGATRON = (" [2024-01-01 {h:02d}:{m:02d}:{s:02d}] iteration {i:8d}/{n:8d} | consumed samples: {c:12d} | elapsed time per "
            "iteration (ms): {ms:.1f} | learning rate: {lr:.6E} | global batch size: {b:5d} | lm loss: {loss:.6E} | loss "
            "scale: {scale:.1f} | grad norm: {norm:.3f} | number of skipped iterations: {skip:3d} | number of nan "
            "iterations: {bad:3d} |\n")  # fmt: skip


def megatron(folder: Path, lines: int) -> Truth:
    """Megatron-LM's training log; the loss is what readers have to agree on."""
    rng, total = random.Random(8), 0.0
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "train.log").open("w") as f:
        for i in range(1, lines + 1):
            second = i % 86400
            line = MEGATRON.format(h=second // 3600, m=second // 60 % 60, s=second % 60, i=i, n=lines, c=512 * i, ms=700 + 100 * rng.random(),
                                   lr=1e-4 * rng.random(), b=512, loss=2 + rng.random(), scale=65536.0, norm=rng.random(), skip=0, bad=0)  # fmt: skip
            total += float(line.partition("lm loss: ")[2].split()[0])
            f.write(line)
    return lines, total


WORKLOADS: dict[str, Callable[[Path, float], Truth | None]] = {
    "scalars 1M": lambda p, x: scalars(p, _n(50_000, x)),
    "scalars 5M": lambda p, x: scalars(p, _n(250_000, x)),
    "shuffled 1M": lambda p, x: shuffled(p, _n(50_000, x)),
    "tensors 1M": lambda p, x: tensors(p, _n(50_000, x)),
    "mixed": lambda p, x: mixed(p, _n(20_000, x)),
    "300 runs": lambda p, x: runs(p, _n(300, x), 250),
    "flipped 1M": lambda p, x: flipped(p, _n(50_000, x), _n(1000, x)),
    "wandb": lambda p, x: wandb(p, _n(50_000, x)),
    "trainer_state": lambda p, x: trainer_state(p, _n(200_000, x)),
    "trainer_state NaN": lambda p, x: trainer_state(p, _n(200_000, x), nan=True),
    "trainer_state NaN, torn": lambda p, x: trainer_state(p, _n(200_000, x), nan=True, torn=True),
    "jsonl": lambda p, x: jsonl(p, _n(1_000_000, x)),
    "jsonl NaN, torn": lambda p, x: jsonl(p, _n(1_000_000, x), nan=True, torn=True),
    "megatron": lambda p, x: megatron(p, _n(1_000_000, x)),
}


def _n(full: int, scale: float) -> int:
    return max(int(full * scale), 4)


def main(name: str, folder: str, scale: str) -> None:
    print(json.dumps(WORKLOADS[name](Path(folder), float(scale))))


if __name__ == "__main__":
    main(*sys.argv[1:])
