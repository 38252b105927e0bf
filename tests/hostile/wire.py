"""Writes event files and W&B files byte by byte, so that a case can break any of them. Independent of our readers."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import google_crc32c

from hostile.case import Points

WANDB_HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32768


def varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def field(number: int, value: bytes | int | float) -> bytes:
    """A protobuf field: bytes with their length, int as a varint, float as a double."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 1) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


# ---------------------------------------------------------------------------------------------------- event files


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    """A TFRecord."""
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def claim(length: int) -> bytes:
    """The header of a record that says it is so long, its checksum right."""
    head = struct.pack("<Q", length)
    return head + masked(head)


def scalar(step: int, value: float, tag: bytes = b"loss", wall: float = 0.0) -> bytes:
    """The payload of an event as torch and TF1 write it."""
    summary = field(1, field(1, tag) + single(2, value))
    return field(1, wall or 1.7e9 + step) + field(2, step) + field(5, summary)


def summary(step: int, *values: bytes, wall: float = 1.7e9) -> bytes:
    return field(1, wall + step) + field(2, step) + field(5, b"".join(field(1, v) for v in values))


def version() -> bytes:
    return frame(field(1, 1.7e9) + field(3, b"brain.Event:2"))


def events(points: Points, tag: bytes = b"loss") -> list[bytes]:
    """Records, whole and in order."""
    return [frame(scalar(s or 0, v, tag)) for s, v in points]


# ------------------------------------------------------------------------------------------------------ W&B files


def chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + data), len(data), kind) + data


def framed(records: list[bytes], header: bytes = WANDB_HEADER) -> tuple[bytes, list[int]]:
    """A whole ``.wandb`` file, and where each record begins in it."""
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


def item(key: str, value: Any) -> bytes:
    return field(2, key.encode()) + field(16, value if isinstance(value, bytes) else json.dumps(value).encode())


def history(step: int, values: dict[str, Any]) -> bytes:
    """A record with a history row."""
    items = b"".join(field(1, item(k, v)) for k, v in (values | {"_step": step, "_timestamp": 1.7e9 + step}).items())
    return field(2, items + field(2, field(1, step)))


def config(values: dict[str, Any]) -> bytes:
    return field(5, b"".join(field(1, item(k, v)) for k, v in values.items()))


def output(text: str) -> bytes:
    """A record with a line of the console."""
    return field(13, field(1, 1) + field(3, text.encode()))
