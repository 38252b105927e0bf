"""A run of the real wandb package in offline mode, whose clock, ids and order of keys are then put right.

wandb takes the time from the machine, draws random mailbox ids and writes keys in the order of a Go map. Its file is
``:W&B``, a magic number and a version, then LevelDB log records (crc32 of type and data, length, type) in blocks of
32 KiB.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from making.clock import stamp
from making.files import NAMES, short
from making.training import Config, Row

BLOCK = 32768
HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)


def read(data: bytes) -> Iterator[bytes]:
    place, parts = 7, b""
    while place < len(data):
        room = BLOCK - place % BLOCK
        if room < 7:
            place += room
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole record, last part
            yield parts
            parts = b""


def framed(header: bytes, messages: list[bytes]) -> bytes:
    out = bytearray(header)
    for message in messages:
        first = True
        while first or message:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                room = BLOCK
            part, message = message[: room - 7], message[room - 7 :]
            kind = (1 if first else 4) if not message else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
    return bytes(out)


def settle(record: Any, times: dict[int, float], started: float) -> Any:
    """Puts the emulated clock into one record; None for one that only repeats what was said."""
    if record.WhichOneof("record_type") in ("telemetry", "summary", "files"):
        return None
    if record.HasField("control"):
        record.ClearField("control")
    if record.HasField("run"):
        record.run.start_time.FromMilliseconds(int(started * 1000))
        record.run.config.update.sort(key=lambda update: update.key)
    if record.HasField("exit"):
        record.exit.runtime = int(max(times.values()) - started)
    if record.HasField("history"):
        items = {item.nested_key[0]: item.value_json for item in record.history.item}
        now = times[record.history.step.num]
        items |= {"_timestamp": repr(round(now, 3)), "_runtime": repr(round(now - started, 3))}
        del record.history.item[:]
        for key in sorted(items):
            record.history.item.add(nested_key=[key], value_json=items[key])
    return record


def _whole(folder: Path, patience: float = 60.0) -> list[bytes]:
    """The records of a finished run; on a busy machine ``finish`` returns before the last of them are on disk."""
    from wandb.proto import wandb_internal_pb2

    until = time.monotonic() + patience
    while time.monotonic() < until:
        messages = list(read(next(folder.rglob("*.wandb")).read_bytes()))
        if any(wandb_internal_pb2.Record.FromString(m).HasField("exit") for m in messages[-9:]):  # type: ignore[attr-defined]
            return messages
        time.sleep(0.2)
    raise TimeoutError("wandb did not write the end of its file")


def offline_run(folder: Path, rows: list[Row], config: Config, project: str, run_id: str, names: dict[str, str] = NAMES) -> None:
    """Writes ``wandb/offline-run-<time>-<id>/run-<id>.wandb`` below ``folder``."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    os.environ["WANDB_SILENT"] = "true"
    quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, disable_git=True, console="off", host="trainer-0")
    with tempfile.TemporaryDirectory() as scratch:
        run = wandb.init(mode="offline", project=project, id=run_id, config=config, dir=scratch, settings=quiet)
        for row in rows:
            run.log({tag: short(row[key]) for key, tag in names.items() if key in row}, step=row["step"])
        run.finish()
        records = [wandb_internal_pb2.Record.FromString(message) for message in _whole(Path(scratch))]  # type: ignore[attr-defined]
    started = rows[0]["time"] - rows[0]["step_time"]
    times = {row["step"]: row["time"] for row in rows}
    kept = [record for record in records if settle(record, times, started) is not None]
    for number, record in enumerate(kept):
        record.num = number + 1
    place = folder / "wandb" / f"offline-run-{stamp(started, '%Y%m%d_%H%M%S')}-{run_id}"
    place.mkdir(parents=True)
    content = framed(HEADER, [record.SerializeToString(deterministic=True) for record in kept])
    (place / f"run-{run_id}.wandb").write_bytes(content)
