"""What a checkpoint file holds, before any value is read: tensors with the places of their bytes, plain values, refusals.

``chunks`` streams the values of a tensor in the order in which they lie in the file, in blocks of at most CHUNK bytes,
from memory maps: private memory stays bounded whatever the size. The file's length is looked at again before each block,
because a map of a file that shrinks meanwhile would end the process.
"""

from __future__ import annotations

import math
import mmap
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.checkpoints.unreadable import Unreadable
from parsers.checkpoints.zips import Member, intact, members
from parsers.tables import Gap

CHUNK = 2 << 20  # bytes; larger blocks leave the cache, smaller ones cost calls
ROUND = 8192  # values; a block is a multiple of it
UNPACKED = 256 << 20  # bytes unpacked for checksums
UNPACKED_TIMES = 20  # and so many for each byte of the file; weights pack by less than 2
DROP = 64 << 20  # pages of a map are given back after so many bytes

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2,
         "uint32": 4, "uint64": 8, "bool": 1, "complex64": 8, "complex128": 16, "float8_e4m3fn": 1, "float8_e5m2": 1,
         "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1}  # fmt: skip
_NUMPY = {"bfloat16": "uint16"} | {d: "uint8" for d in SIZES if d.startswith("float8")}


def raw_type(dtype: str) -> np.dtype[Any]:
    """The numpy type that a dtype's bytes are handled in: bfloat16 as uint16, float8 as uint8, all others as themselves."""
    return np.dtype(_NUMPY.get(dtype, dtype))


class File:
    """A file mapped for reading. Only regular files are opened: a named pipe would wait for ever."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if "\0" in str(path):  # a name that came out of a file
            raise Unreadable("a name with a zero byte is no file's")
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise Unreadable(f"{path.name} is not a regular file: not opened")
            self.size = info.st_size
            self.map = mmap.mmap(fd, 0, access=mmap.ACCESS_READ) if self.size else None
            self.bytes = memoryview(self.map) if self.map is not None else memoryview(b"")
        finally:
            os.close(fd)

    def alive(self) -> bool:
        """False where the file was cut since it was mapped: its last pages must not be touched."""
        return self.map is None or self.map.size() >= self.size

    def give_back(self, first: int, last: int) -> None:
        """The pages that lie wholly within [first, last) need not stay in memory."""
        first = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        length = last // mmap.PAGESIZE * mmap.PAGESIZE - first
        if self.map is not None and length > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self.map.madvise(mmap.MADV_DONTNEED, first, length)


class Memory(File):
    """Bytes that are already there (a file inside a pickle), read like a file."""

    def __init__(self, path: Path, data: bytes | memoryview) -> None:
        self.path, self.size, self.map, self.bytes = path, len(data), None, memoryview(data)


@dataclass(eq=False, slots=True)
class Piece:
    """Values in one place: `count` of them at byte `offset` of a file, of which `shape` and `strides` pick some (None: all)."""

    file: File
    offset: int
    count: int
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None  # in values


@dataclass(eq=False, slots=True)
class Tensor:
    """`pieces` is empty where the values cannot be read (`why` says it)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: str  # the file's name
    at: int = 0
    pieces: tuple[Piece, ...] = ()
    inline: Callable[[], Iterator[NDArray[Any]]] | None = None  # values that are not simply there: compressed, or in HDF5
    swapped: bool = False
    layout: tuple[int, ...] = ()  # strides, or sizes of chunks, where values are not in the usual order of rows
    role: str = "other"
    why: str = ""
    count: int = field(init=False)  # of the values; kept, for a dozen looks ask each tensor for it

    def __post_init__(self) -> None:
        self.count = math.prod(self.shape)


@dataclass
class Contents:
    """One file, or a folder of files that are one checkpoint."""

    path: Path
    format: str
    tensors: list[Tensor] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)  # numbers and short texts by path: "optimizer.param_groups.0.lr"
    refused: list[dict[str, str]] = field(default_factory=list)  # {"what", "at"}
    gaps: list[Gap] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    sums: list[tuple[File, int, Member]] = field(default_factory=list)  # members of zips, and where in the file the zip begins
    complete: bool | None = True
    bytes: int = 0

    def refuse(self, what: str, at: str) -> None:
        """Once for each name."""
        if len(self.refused) < 1000 and all(r["what"] != what for r in self.refused):
            self.refused.append({"what": what, "at": at})

    def gap(self, what: str, at: int = 0, path: str = "") -> None:
        self.gaps.append(Gap(f"byte {at}", what, None, path or self.path.name))

    def cut_off(self, what: str, at: int = 0, path: str = "") -> None:
        """A gap that leaves the save incomplete."""
        self.complete = False
        self.gap(what, at, path)

    def open_zip(self, file: File, start: int, data: memoryview) -> tuple[dict[str, Member], bool]:
        """Members, and whether all of them are listed; names that would lead out of a folder are refused. Raises Unreadable."""
        parts, whole = members(data)
        self.sums += [(file, start, m) for m in parts.values()]
        odd = [n for n in parts if ".." in n.replace("\\", "/").split("/") or n.startswith(("/", "\\"))]
        self.refused += [{"what": f"a member named {n[:100]!r}", "at": f"byte {start + parts[n].offset}"} for n in odd[:20]]
        return parts, whole


def check_sums(found: Contents) -> None:
    """Reads the members of zips against their checksums, once; each that is wrong is a gap. What lies in them is still given."""
    left = UNPACKED + UNPACKED_TIMES * found.bytes
    for file, start, member in found.sums:
        left -= 0 if member.stored else member.size
        if left < 0 and not member.stored:  # a few bytes that claim gigabytes: not worth their checksum
            continue
        if file.alive() and not intact(file.bytes[start:], member):
            what = f"the checksum of {member.name[:80]} is wrong: its bytes are not those that were saved"
            name = file.path.relative_to(found.path).as_posix() if file.path.is_relative_to(found.path) else ""
            found.gap(what, start + member.offset, name if name != "." else "")
    found.sums.clear()


def chunks(tensor: Tensor) -> Iterator[NDArray[Any]]:
    """The values as one-dimensional arrays of ``raw_type(dtype)``. Raises Unreadable where the file shrank meanwhile."""
    if tensor.inline is not None:
        yield from tensor.inline()
    for piece in tensor.pieces:
        blocks = _plain(piece, tensor) if piece.shape is None else _strided(piece, tensor)
        yield from (b.byteswap() for b in blocks) if tensor.swapped else blocks


def _plain(piece: Piece, tensor: Tensor) -> Iterator[NDArray[Any]]:
    raw = raw_type(tensor.dtype)
    step = max(-(-piece.count // max(-(-piece.count * raw.itemsize // CHUNK), 1)), 1)  # blocks of about equal length
    step = min(-(-step // ROUND) * ROUND, max(CHUNK // raw.itemsize, 1))
    dropped = piece.offset
    for i in range(0, piece.count, step):
        if not piece.file.alive():
            raise Unreadable(f"{tensor.source} was cut while it was read")
        n = min(step, piece.count - i)
        begin = piece.offset + i * raw.itemsize
        block = np.frombuffer(piece.file.bytes, raw, n, begin)
        yield block if block.flags.aligned else block.copy()
        if begin - dropped >= DROP:
            piece.file.give_back(dropped, begin)
            dropped = begin


def _strided(piece: Piece, tensor: Tensor) -> Iterator[NDArray[Any]]:
    """Row by row where rows are not next to each other; the reader has checked that all lie within the piece."""
    assert piece.shape is not None and piece.strides is not None
    raw = raw_type(tensor.dtype)
    base = np.frombuffer(piece.file.bytes, raw, piece.count, piece.offset)
    view = np.lib.stride_tricks.as_strided(base, piece.shape, [s * raw.itemsize for s in piece.strides], writeable=False)
    yield from _rows(view, max(CHUNK // raw.itemsize, 1))


def _rows(view: NDArray[Any], most: int) -> Iterator[NDArray[Any]]:
    if view.size <= most or view.ndim == 0:
        yield np.ascontiguousarray(view).reshape(-1)
    elif view.ndim == 1 or view[0].size <= most:
        step = max(most // max(view[0].size, 1), 1)
        for i in range(0, len(view), step):
            yield np.ascontiguousarray(view[i : i + step]).reshape(-1)
    else:
        for row in view:
            yield from _rows(row, most)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array whose last axis is the quickest."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """True where the values are next to each other in some order of the axes: a whole block, each value once."""
    expected = 1
    for stride, n in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride != expected:
            return False
        expected *= n
    return True
