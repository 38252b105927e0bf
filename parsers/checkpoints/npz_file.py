"""numpy's .npz (a zip of .npy members) and .npy: each member a magic, a header in Python literals, the values.

The header is read with ``ast.literal_eval`` on at most 64 KiB (format: numpy/lib/format.py, versions 1 to 3). Arrays of
objects are pickles inside; they are named and never opened. Packed members are streamed, and never give more bytes than
their shape asks for.
"""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from parsers.checkpoints import nested, zips
from parsers.checkpoints.contents import CHUNK, SIZES, Contents, File, Piece, Tensor, raw_type
from parsers.checkpoints.unreadable import Unreadable

MAX_HEADER = 65536
MAX_OBJECTS = 64 << 20  # bytes of an array of objects, looked through for the names that its pickle reaches for
_MAGIC = b"\x93NUMPY"
# what a damaged header raises where it is read as Python's literals, and what it claims is taken for a type
_DAMAGE = (ValueError, TypeError, LookupError, SyntaxError, RecursionError, MemoryError, OverflowError, struct.error)


def read(path: Path) -> Contents:
    file = File(path)
    found = Contents(path, "npz", files=[path], bytes=file.size)
    if bytes(file.bytes[:6]) == _MAGIC:
        try:
            found.tensors.append(_tensor(path.stem, file, zips.Member(path.name, 0, file.size, file.size, 0), found))
        except _DAMAGE as e:
            raise Unreadable(f"{path.name} is no array that can be read: {e}"[:300]) from None
        return found
    parts, whole = found.open_zip(file, 0, file.bytes)
    if not whole:
        found.cut_off("the zip ends before its directory: the save was cut off", file.size)
    for name, member in parts.items():
        try:
            found.tensors.append(_tensor(name.removesuffix(".npy"), file, member, found))
        except (Unreadable, *_DAMAGE) as e:
            found.gap(f"{name[:80]} is not read: {e}"[:300], member.offset)
    return found


def _tensor(name: str, file: File, member: zips.Member, found: Contents) -> Tensor:
    packed = file.bytes[member.offset : member.offset + member.packed]
    if member.stored:
        head = bytes(packed[: MAX_HEADER + 12])
    elif member.method == 8:
        head = next(zips.inflate(packed, min(member.size, MAX_HEADER + 12), MAX_HEADER + 12), b"")
    else:
        raise Unreadable(f"compressed with method {member.method}")
    begin, code, fortran, shape = _header(head)
    at, source = member.offset, found.path.name
    if "O" in code:
        found.refused.append({"what": f"an array of objects ({name[:100]}): a pickle", "at": f"byte {at}"})
        pickled = memoryview(zips.content(file.bytes, member, MAX_OBJECTS))[begin:]
        nested.look(nested.Search(found.refuse), pickled, f"byte {at + begin}")
        return Tensor(name, "object", shape, source, at, why="an array of objects: not read")
    raw = np.dtype(code)
    dtype = raw.newbyteorder("=").name
    if dtype not in SIZES:
        return Tensor(name, dtype[:40], shape, source, at, why=f"values of type {dtype[:40]} are not read")
    count = math.prod(shape)
    size = begin + count * raw.itemsize
    if size > member.size:
        found.cut_off(f"{name[:80]} has {member.size - begin} of the {size - begin} bytes of its values: cut off", at + member.size)
        return Tensor(name, dtype, shape, source, at, why=f"a part of its {count} values is missing")
    swapped = raw.byteorder == ">"
    layout = shape[::-1] if fortran and len(shape) > 1 else ()
    if member.stored:
        return Tensor(name, dtype, shape, source, at, (Piece(file, at + begin, count),), swapped=swapped, layout=layout)
    return Tensor(name, dtype, shape, source, at, inline=lambda: _unpacked(packed, size, begin, dtype, swapped), layout=layout)


def _header(head: bytes) -> tuple[int, str, bool, tuple[int, ...]]:
    """(bytes before the values, dtype string, column order, shape)."""
    if head[:6] != _MAGIC:
        raise Unreadable("not an .npy member")
    wide = head[6] >= 2
    length = struct.unpack_from("<I" if wide else "<H", head, 8)[0]
    start = 12 if wide else 10
    if length > MAX_HEADER or start + length > len(head):
        raise Unreadable(f"its header claims {length} bytes")
    code, fortran, shape = _literal(head[start : start + length])
    return start + length, code, fortran, shape


@lru_cache(1024)
def _literal(header: bytes) -> tuple[str, bool, tuple[int, ...]]:
    """(dtype string, column order, shape); thousands of arrays have a few kinds of headers."""
    facts = ast.literal_eval(header.decode("latin-1"))
    code, shape = facts["descr"], facts["shape"]
    if not isinstance(code, str):
        code = "V" if "O" not in repr(code) else "O"
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 64:
        raise ValueError("its shape is no shape")
    return code, bool(facts["fortran_order"]), shape


def _unpacked(packed: memoryview, size: int, begin: int, dtype: str, swapped: bool) -> Iterator[Any]:
    raw = raw_type(dtype)
    rest, skip = b"", begin
    for block in zips.inflate(packed, size, CHUNK):
        if skip:
            cut = min(skip, len(block))
            block, skip = block[cut:], skip - cut
        rest += block
        whole = len(rest) // raw.itemsize * raw.itemsize
        if whole:
            values = np.frombuffer(rest[:whole], raw)
            yield values.byteswap() if swapped else values
            rest = rest[whole:]
