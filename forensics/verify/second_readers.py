"""Other software's reading of an event file and of a ``.wandb`` file: tbparse, and wandb's own protobuf schema.

They share no code with our parsers. Neither needs the network or an account, and neither runs anything that a file holds.
Both stop at the first damaged record, where our parsers go on behind it.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Values = dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]  # by tag: keys (steps or bytes) and values, in one order

_BLOCK, _HEADER = 32768, Struct("<IHB")  # LevelDB's log format, with zlib's CRC-32 over kind and data
_FULL, _FIRST, _LAST = 1, 2, 4
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def event_file(path: Path) -> tuple[Values, str]:
    """Scalars by tag and step as tbparse reads them, TF2's (tensors of one number) included; and why it stopped, if it did.

    TensorBoard drops what stands before a restart of the same file, and stops at the first damaged record without a word.
    Raises ImportError without tbparse.
    """
    from tbparse import SummaryReader

    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    rows: dict[str, list[tuple[int, float]]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
            link = Path(folder, "tfevents")  # tbparse finds nothing in a file of another name
            link.symlink_to(path.absolute())
            reader = SummaryReader(str(link), event_types={"scalars", "tensors"})
            tables = [reader.scalars, reader.tensors]
        for table in tables:
            for tag, step, value in zip(*(table[name] for name in ("tag", "step", "value")), strict=True) if len(table) else ():
                number = np.asarray(value)
                if number.size == 1 and number.dtype.kind in "biuf":
                    rows.setdefault(tag, []).append((int(step), float(number.reshape(-1)[0])))
    except Exception as e:  # a damaged file may break tbparse anywhere
        return _columns(rows), f"tbparse broke off: {type(e).__name__}: {e}"
    return _columns(rows), ""


def wandb_file(path: Path) -> tuple[Values, str]:
    """Numbers by tag and place: the history, ``system.`` metrics, and summary values that the history lacks.

    The wandb package has had no reader of its own files since 0.30: LevelDB's framing is undone here, and wandb's protobuf
    classes read the records. Raises ImportError without wandb.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # else its import may call home
    schema: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")

    rows: dict[str, list[tuple[int, float]]] = {}
    summary: dict[str, tuple[int, Any]] = {}
    names: set[str] = set()
    stopped = ""
    try:
        for at, data in _framed(path):
            record = schema.Record.FromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "history":
                row = {".".join(i.nested_key) or i.key: _value(i) for i in record.history.item}
                names |= row.keys()
                _keep(rows, at, {k: v for k, v in row.items() if k not in ("_step", "_timestamp")})
            elif kind == "stats":
                _keep(rows, at, {f"system.{i.key}": _value(i) for i in record.stats.item})
            elif kind == "summary":  # items with nested keys repeat the history
                summary |= {i.key: (at, _value(i)) for i in record.summary.update if not i.nested_key and not i.key.startswith("_")}
    except Exception as e:
        stopped = f"reading with wandb broke off: {type(e).__name__}: {e}"
    for name, (at, value) in summary.items():
        if name not in names:
            _keep(rows, at, {name: value})
    return _columns(rows), stopped


def _framed(path: Path) -> Iterator[tuple[int, bytes]]:
    """The records of a log and the bytes where they begin. Raises ValueError at the first damage."""
    start, parts = 0, list[bytes]()
    with path.open("rb") as file:
        for base, block in enumerate(iter(lambda: file.read(_BLOCK), b"")):
            place = 0 if base else 7  # behind the file's own header
            while place + 7 <= len(block):
                checksum, length, kind = _HEADER.unpack_from(block, place)
                if not (checksum or length or kind):
                    break  # padding
                data = block[place + 7 : place + 7 + length]
                if crc32(data, crc32(bytes([kind]))) != checksum:
                    raise ValueError(f"damaged at byte {base * _BLOCK + place}")
                if kind in (_FULL, _FIRST):
                    start, parts = base * _BLOCK + place, []
                parts.append(data)
                if kind in (_FULL, _LAST):
                    yield start, b"".join(parts)
                place += 7 + length


def _value(item: Any) -> Any:
    try:
        return json.loads(item.value_json)
    except ValueError:
        return None


def _keep(rows: dict[str, list[tuple[int, float]]], at: int, values: dict[str, Any]) -> None:
    """The numbers of a record; dicts are opened, histograms are left out."""
    flat = dict(_leaves(values))
    histograms = tuple(name.removesuffix("_type") for name, value in flat.items() if value == "histogram" and name.endswith("._type"))
    for name, value in flat.items():
        number = _WORDS.get(value) if isinstance(value, str) else value
        if number is not None and not name.startswith(histograms):
            rows.setdefault(name, []).append((at, number))


def _leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        elif isinstance(value, (int, float)):
            try:
                yield prefix + key, float(value)
            except OverflowError:
                yield prefix + key, math.inf if value > 0 else -math.inf
        elif isinstance(value, str):
            yield prefix + key, value


def _columns(rows: dict[str, list[tuple[int, float]]]) -> Values:
    return {tag: (np.array([k for k, _ in found], np.int64), np.array([v for _, v in found])) for tag, found in rows.items()}
