"""safetensors: eight bytes of header length, a JSON header with the type, shape and byte range of each tensor, the bytes.

Format: the safetensors README. Its own reader demands that the ranges fill the file without holes or overlaps; here a file
that breaks this is still read, and says so, because the tensors that lie whole in it are good. Types of less than a byte
(F4, F6) are listed without statistics.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

from parsers import secrets
from parsers.checkpoints.contents import SIZES, Contents, File, Piece, Tensor
from parsers.checkpoints.unreadable import Unreadable, reason

MAX_HEADER = 100_000_000  # the library's own limit
MAX_DOUBLE = 100  # tensors over the bytes of others that are listed one by one
DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
          "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool", "C64": "complex64",
          "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
          "F8_E8M0": "float8_e8m0fnu"}  # fmt: skip


def read(path: Path) -> Contents:
    """Raises Unreadable where the header cannot be used, OSError where the file cannot be opened."""
    file = File(path)
    found = Contents(path, "safetensors", files=[path], bytes=file.size)
    start, header = _header(file)
    end = start
    for name, entry in header.items():
        if name == "__metadata__":
            if isinstance(entry, dict):
                found.values |= {f"metadata.{k}"[:200]: secrets.mask_text(str(v)[:200]) for k, v in list(entry.items())[:1000]}
            continue
        try:
            tensor, last = _tensor(name, entry, file, start)
        except (ValueError, KeyError, TypeError, IndexError) as e:
            found.gap(f"the header's entry for {name[:80]!r} is damaged: {e}")
            continue
        end = max(end, last)
        if last > file.size:
            found.complete = False
            tensor = Tensor(name, tensor.dtype, tensor.shape, path.name, tensor.at, why="its bytes are missing")
        found.tensors.append(tensor)
    if end > file.size:
        found.cut_off(f"{end - file.size} bytes are missing at the end", file.size)
    elif end < file.size:
        found.gap(f"{file.size - end} bytes after the last tensor belong to none", end)
    _overlaps(found)
    return found


def _header(file: File) -> tuple[int, dict[str, Any]]:
    if file.size < 8:
        raise Unreadable("the file is empty" if not file.size else "the file is shorter than its header's length field")
    (length,) = struct.unpack("<Q", file.bytes[:8])
    if length > MAX_HEADER or length > file.size - 8:
        raise Unreadable(f"the header claims {length} bytes in a file of {file.size}")
    try:
        header = json.loads(bytes(file.bytes[8 : 8 + length]), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as e:
        raise Unreadable(f"the header is not the JSON it should be: {reason(e)}"[:200]) from None
    if not isinstance(header, dict):
        raise Unreadable("the header is not a JSON object")
    return 8 + length, header


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _tensor(name: str, entry: Any, file: File, start: int) -> tuple[Tensor, int]:
    first, last = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if not all(type(n) is int and n >= 0 for n in (first, last, *shape)) or last < first or len(shape) > 64:
        raise ValueError("offsets or shape are no sizes")
    code = str(entry["dtype"])[:20]
    dtype = DTYPES.get(code)
    if dtype is None:
        return Tensor(name, code, shape, file.path.name, start + first, why=f"values of type {code} are not read"), start + last
    count = math.prod(shape)
    if count * SIZES[dtype] != last - first:
        raise ValueError(f"{last - first} bytes for {count} values of {code}")
    return Tensor(name, dtype, shape, file.path.name, start + first, (Piece(file, start + first, count),)), start + last


def _overlaps(found: Contents) -> None:
    """Many names for the same bytes would make a small file claim to be a large one: only the first is read, and of the others few are listed."""
    end, last, double = 0, "", 0
    dropped: set[int] = set()
    for i, t in sorted(enumerate(found.tensors), key=lambda x: x[1].at):
        size = t.count * SIZES.get(t.dtype, 0)
        if size and t.at < end:
            double += 1
            if double > MAX_DOUBLE:
                dropped.add(i)
            else:
                found.tensors[i] = replace(t, pieces=(), why=f"its bytes belong to {last[:80]!r}, too")
                found.gap(f"the bytes of {t.name[:80]!r} belong to {last[:80]!r}, too", t.at)
        elif size:
            end, last = t.at + size, t.name
    if dropped:
        found.tensors = [t for i, t in enumerate(found.tensors) if i not in dropped]
        found.gap(f"{double} tensors claim bytes of others, which the format forbids: {MAX_DOUBLE} of them are listed")
