"""Writes ``.wandb`` files for tests: LevelDB's log framing in plain Python around wandb's own protobuf classes."""

from __future__ import annotations

import json
from typing import Any

from hostile.wire import BLOCK, chunk, framed
from hostile.wire import WANDB_HEADER as HEADER
from wandb.proto import wandb_internal_pb2 as pb

__all__ = ["BLOCK", "HEADER", "chunk", "framed", "history", "record"]


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
