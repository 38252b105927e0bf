"""Writes ``.wandb`` files for tests: LevelDB's log framing in plain Python around wandb's own protobuf classes."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from wandb.proto import wandb_internal_pb2 as pb

BLOCK = 32768
HEADER = b":W&B\xe1\xbe\x00"


def chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + data), len(data), kind) + data


def framed(records: list[bytes], header: bytes = HEADER) -> tuple[bytes, list[int]]:
    """A whole file, and where each record begins in it."""
    out, places = bytearray(header), []
    for record in records:
        room = BLOCK - len(out) % BLOCK
        if room < 7:
            out += bytes(room)
            room = BLOCK
        places.append(len(out))
        if len(record) + 7 <= room:
            out += chunk(1, record)
            continue
        out += chunk(2, record[: room - 7])
        rest = record[room - 7 :]
        while len(rest) > BLOCK - 7:
            out += chunk(3, rest[: BLOCK - 7])
            rest = rest[BLOCK - 7 :]
        out += chunk(4, rest)
    return bytes(out), places


def record(kind: str, message: Any) -> bytes:
    return pb.Record(**{kind: message}).SerializeToString()


def history(step: int | None, values: dict[str, Any], *, time: float | None = None, nested: bool = True) -> bytes:
    """A history row as wandb >= 0.17 writes it (``nested_key``), or, ``nested=False``, as the versions before."""
    row = pb.HistoryRecord()
    if step is not None:
        row.step.num = step
        values = values | {"_step": step}
    if time is not None:
        values = values | {"_timestamp": time}
    for name, value in values.items():
        if nested:
            row.item.add(nested_key=name.split("|"), value_json=json.dumps(value))
        else:
            row.item.add(key=name, value_json=json.dumps(value))
    return record("history", row)
