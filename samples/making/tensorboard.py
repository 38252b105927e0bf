"""TensorBoard event files with the bytes that ``torch.utils.tensorboard`` writes, but wall time and name as told.

A record is ``length u64, masked crc32c(length), Event protobuf, masked crc32c(event)`` (TensorFlow's TFRecord format);
an Event has wall_time (1), step (2), file_version (3), summary (5) and source_metadata (10).
"""

from __future__ import annotations

import struct
from pathlib import Path

from making.files import NAMES
from making.training import Row

HOST = "trainer-0"


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def masked_crc32c(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked_crc32c(length) + data + masked_crc32c(data)


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, data: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def scalar(time: float, step: int, tag: str, value: float) -> bytes:
    content = field(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)
    where = varint(1 << 3 | 1) + struct.pack("<d", time) + (varint(2 << 3) + varint(step) if step else b"")
    return record(where + field(5, field(1, content)))


def event_file(
    folder: Path, rows: list[Row], started: float, names: dict[str, str] = NAMES, torn: int = 0, pid: int = 4711, number: int = 0
) -> Path:
    """Writes ``events.out.tfevents.<started>.<host>.<pid>.<number>``; ``torn`` bytes are missing at its end."""
    folder.mkdir(parents=True, exist_ok=True)
    head = varint(1 << 3 | 1) + struct.pack("<d", started) + field(3, b"brain.Event:2")
    data = record(head + field(10, field(1, b"tensorboard.summary.writer.event_file_writer")))
    for row in rows:
        for key, tag in names.items():
            if key in row:
                data += scalar(row["time"], row["step"], tag, row[key])
    path = folder / f"events.out.tfevents.{int(started)}.{HOST}.{pid}.{number}"
    path.write_bytes(data[: len(data) - torn])
    return path
