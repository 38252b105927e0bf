"""The readers that are measured, ours and the peers': each takes a path and gives how many numbers it found, and their sum.

A reader is a function that imports what it needs and returns the reading itself, so that imports are not timed. Every
reader ends with all numbers in arrays or lists in memory; none may leave a part unread.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Found = tuple[int, float]  # numbers and their sum, NaN left out
Reading = Callable[[Path], Found]


# ----------------------------------------------------------------------------------------------------------------- ours


def ours() -> Reading:
    """``forensics.read``: Arrow tables, named, merged, with their attempts. Every run below the path is counted."""
    import parsers
    from forensics.at_path import read_runs

    parsers.modules()

    def read(path: Path) -> Found:
        count, total = 0, 0.0
        for run in read_runs(str(path)):
            metrics = run.tables["metrics"]
            count += metrics.num_rows
            total += _sum(_column(metrics["value"]))
        return count, total

    return read


def ours_megatron() -> Reading:
    """The same; the loss is counted, as by the loop over lines."""
    import parsers
    from forensics.at_path import read_runs

    parsers.modules()

    def read(path: Path) -> Found:
        metrics = read_runs(str(path))[-1].tables["metrics"]
        tags = metrics["tag"].chunk(0)
        loss = _column(metrics["value"])[_column(tags.indices) == tags.dictionary.to_pylist().index("lm loss")]
        return len(loss), _sum(loss)

    return read


def ours_analyze() -> Reading:
    """``forensics analyze``: read, all detectors and causes, and the page."""
    import parsers
    from forensics import at_path, pipeline, rules
    from forensics.causes.files import causes
    from forensics.causes.weigh import weights
    from forensics.signs.sign import looks
    from reports import html

    parsers.modules()
    rules.detectors(), rules.further_causes(), looks(), causes(), weights()

    def read(path: Path) -> Found:
        run = at_path.read_runs(str(path))[-1]
        metrics = run.tables["metrics"]
        html.render(pipeline.analyze_run(run).to_json())
        return metrics.num_rows, _sum(_column(metrics["value"]))

    return read


# ------------------------------------------------------------------------------------------------------- TensorBoard's own


def tbparse() -> Reading:
    from tbparse import SummaryReader

    def read(path: Path) -> Found:
        found = SummaryReader(str(path), event_types={"scalars"}).scalars
        return len(found), _sum(found["value"].to_numpy())

    return read


def tbparse_tensors() -> Reading:
    from tbparse import SummaryReader

    def read(path: Path) -> Found:
        found = SummaryReader(str(path), event_types={"tensors"}).tensors
        return len(found), float(sum(map(float, found["value"])))

    return read


def event_accumulator() -> Reading:
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, TENSORS, EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    def read(path: Path) -> Found:
        count, total = 0, 0.0
        for folder in sorted({p.parent for p in path.rglob("*tfevents*")}):
            found = EventAccumulator(str(folder), size_guidance={SCALARS: 0, TENSORS: 0}).Reload()
            for tag in found.Tags()["scalars"]:
                values = [e.value for e in found.Scalars(tag)]
                count, total = count + len(values), total + sum(values)
            for tag in found.Tags()["tensors"]:
                if found.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                    values = [float(make_ndarray(e.tensor_proto)) for e in found.Tensors(tag)]
                    count, total = count + len(values), total + sum(values)
        return count, total

    return read


def data_server() -> Reading:
    """TensorBoard's native reader: load everything, then one call that reads all scalars out into arrays.

    Every scalar is kept (``scalars=all``); payload checksums are not verified, which is its default.
    """
    import grpc
    import numpy as np
    import tensorboard_data_server
    from tensorboard.data.proto import data_provider_pb2 as messages
    from tensorboard.data.proto.data_provider_pb2_grpc import TensorBoardDataProviderStub

    def read(path: Path) -> Found:
        command = [tensorboard_data_server.server_binary(), "--logdir", str(path), "--port", "0", "--reload", "once",
                   "--samples-per-plugin", "scalars=all", "-v"]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            port = 0
            for line in server.stderr:
                if found := re.search(r"listening on .*:(\d+)", line):
                    port = int(found[1])
                if "Finished load cycle" in line:
                    break
            options = [("grpc.max_receive_message_length", -1)]
            with grpc.insecure_channel(f"localhost:{port}", options=options) as channel:
                request = messages.ReadScalarsRequest(
                    experiment_id="", plugin_filter={"plugin_name": "scalars"}, downsample={"num_points": 1 << 30}
                )
                answer = TensorBoardDataProviderStub(channel).ReadScalars(request)
            server.kill()
        count, total = 0, 0.0
        for run in answer.runs:
            for tag in run.tags:
                steps, times, values = (np.array(c) for c in (tag.data.step, tag.data.wall_time, tag.data.value))
                assert len(steps) == len(times) == len(values)
                count, total = count + len(values), total + _sum(values)
        return count, total

    return read


# ------------------------------------------------------------------------------------------------------------------- W&B


def wandb_rows() -> Reading:
    """What a script on wandb 0.29 does: its ``DataStore`` (gone since 0.30, so re-stated), ``ParseFromString``, ``json.loads``."""
    from wandb.proto.wandb_internal_pb2 import Record

    def scan(path: Path) -> Any:
        size, header = 32768, 7
        with path.open("rb") as f:
            f.read(header)
            index = header
            while True:
                parts = b""
                while True:
                    room = size - index % size
                    if room < header:
                        f.read(room)
                        index += room
                    head = f.read(header)
                    if len(head) < header:
                        return
                    checksum, length, kind = struct.unpack("<IHB", head)
                    data = f.read(length)
                    assert zlib.crc32(data, zlib.crc32(bytes([kind]))) == checksum
                    index += header + length
                    parts += data
                    if kind in (1, 4):
                        break
                yield parts

    def read(path: Path) -> Found:
        rows: dict[str, list[Any]] = {}
        for data in scan(next(path.glob("*.wandb"))):
            record = Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                for item in record.history.item:
                    rows.setdefault(item.key or "/".join(item.nested_key), []).append(json.loads(item.value_json))
        kept = [v for k, values in rows.items() if k not in ("_step", "_timestamp") for v in values]
        return len(kept), float(sum(kept))

    return read


def wandb_leet() -> Reading:
    """The only reader that wandb 0.31 ships, ``wandb leet inspect --json`` (a Go program), and ``json.loads`` of what it prints."""

    def read(path: Path) -> Found:
        file = next(path.glob("*.wandb"))
        command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(file)]
        count, total = 0, 0.0
        with subprocess.Popen(command, stdout=subprocess.PIPE) as leet:
            assert leet.stdout is not None
            for line in leet.stdout:
                row = json.loads(line)
                if row.get("type") == "history":
                    for name, value in row["history"]["item"].items():
                        if name not in ("_step", "_timestamp"):
                            count, total = count + 1, total + float(value)
        return count, total

    return read


# -------------------------------------------------------------------------------------------------------- JSON and console


def json_loads() -> Reading:
    """Bare ``json.loads`` of the whole file: no table, no steps. A torn file it cannot read; its whole entries are given to it."""

    def read(path: Path) -> Found:
        text = (path / "trainer_state.json").read_text("utf-8")
        try:
            state = json.loads(text)
        except json.JSONDecodeError:
            state = json.loads(text[: text.rindex("}") + 1] + "]}")
        return _rows(state["log_history"])

    return read


def json_lines() -> Reading:
    """Bare ``json.loads`` of every line; a line that is none is passed over."""

    def read(path: Path) -> Found:
        rows = []
        with (path / "log.jsonl").open("rb") as f:
            for line in f:
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    continue
                rows.append(len(row))
        return sum(rows), float("nan")  # what it would take to sum them is not part of the bare loop

    return read


def arrow_json() -> Reading:
    """pyarrow's reader of JSON lines, for what it takes; it refuses a torn line."""
    import pyarrow.json

    def read(path: Path) -> Found:
        table = pyarrow.json.read_json(path / "log.jsonl")
        columns = [c for c in table.column_names if c not in ("step", "time")]
        return len(columns) * table.num_rows, sum(_sum(table[c].to_numpy()) for c in columns)

    return read


def regex_lines() -> Reading:
    """One compiled regex a line of Megatron's log, all its fields in groups; only the loss is made a number."""
    number = r"([-+.\deEnaif]+)"
    line_of = re.compile(
        r" \[(.{19})\] iteration +(\d+)/ *(\d+) \| consumed samples: +(\d+) \| elapsed time per iteration \(ms\): " + number
        + r" \| learning rate: " + number + r" \| global batch size: +(\d+) \| lm loss: " + number + r" \| loss scale: " + number
        + r" \| grad norm: " + number + r" \| number of skipped iterations: +(\d+) \| number of nan iterations: +(\d+) \|"
    )  # fmt: skip

    def read(path: Path) -> Found:
        losses = []
        with (path / "train.log").open() as f:
            for line in f:
                if found := line_of.match(line):
                    losses.append(float(found[8]))
        return len(losses), sum(losses)

    return read


def _rows(rows: list[dict[str, Any]]) -> Found:
    return sum(len(row) - 1 for row in rows), float("nan")


def _column(column: Any) -> Any:
    """An Arrow column as numpy. Its own ``to_numpy`` imports pandas, which has no place in a measurement."""
    from parsers import arrow

    return arrow.values(column)


def _sum(values: Any) -> float:
    import numpy as np

    return float(np.nansum(values.astype(np.float64)))
