"""Keras: ``.h5``/``.hdf5`` through h5py where it is installed, ``.keras`` (a zip with ``model.weights.h5``) likewise.

Without h5py the file is recognized and named. Links out of the file (external links, virtual and external storage) are not
followed; nothing of the architecture's JSON is evaluated (a Lambda layer holds marshalled code).
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsers.checkpoints import zips
from parsers.checkpoints.contents import CHUNK, SIZES, Contents, File, Tensor
from parsers.checkpoints.pickles import Unreadable

MAX_OBJECTS = 100_000
MAX_WEIGHTS = 4 << 30  # of a compressed model.weights.h5, which has to be unpacked


def read(path: Path) -> Contents:
    file = File(path)
    found = Contents(path, "keras", files=[path], bytes=file.size)
    source: Any = file
    if bytes(file.bytes[:4]) == b"PK\x03\x04":
        source = _weights_of(found, file)
    try:
        h5py: Any = importlib.import_module("h5py")
    except ImportError:
        found.gap("HDF5: reading what is in it needs h5py (pip install h5py)")
        return found
    try:
        with h5py.File(path if source is file else io.BytesIO(source), "r") as f:
            _list(found, h5py, f)
    except (OSError, RuntimeError, ValueError, KeyError) as e:
        found.complete = False
        raise Unreadable(f"HDF5 cannot open it: {e}"[:300]) from None
    return found


def _weights_of(found: Contents, file: File) -> memoryview | bytes:
    parts, whole = zips.members(file.bytes)
    found.complete = whole
    for name in parts:
        if ".." in name.split("/") or name.startswith(("/", "\\")):
            found.refused.append({"what": f"a member named {name[:100]!r}", "at": f"byte {parts[name].offset}"})
    config = parts.get("config.json")
    if config is not None and b"Lambda" in bytes(zips.content(file.bytes, config, 64 << 20)):
        found.refused.append({"what": "a Lambda layer: marshalled code in config.json", "at": f"byte {config.offset}"})
    weights = parts.get("model.weights.h5")
    if weights is None:
        raise Unreadable("no model.weights.h5 in it: not a Keras file")
    return zips.content(file.bytes, weights, MAX_WEIGHTS)


def _list(found: Contents, h5py: Any, f: Any) -> None:
    """All arrays by name, and single numbers as values. Values are copied chunk by chunk when they are asked for."""
    config = f.attrs.get("model_config")
    if config is not None and "Lambda" in str(config):
        found.refused.append({"what": "a Lambda layer: marshalled code in model_config", "at": "byte 0"})
    stack, visited = [(f, "")], 0
    while stack:
        group, path = stack.pop()
        for name in group:
            visited += 1
            if visited > MAX_OBJECTS:
                found.gap(f"more than {MAX_OBJECTS} objects: the rest is not listed")
                return
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                found.refused.append({"what": f"a link named {name[:80]!r}", "at": "byte 0"})
                continue
            inner = f"{path}/{name}" if path else name
            value = group.get(name)
            if isinstance(value, h5py.Group) and inner.count("/") < 40:
                stack.append((value, inner))
            elif isinstance(value, h5py.Dataset):
                found.tensors.append(_tensor(found, value, inner))
    found.tensors.sort(key=lambda t: t.name)


def _tensor(found: Contents, data: Any, name: str) -> Tensor:
    dtype = data.dtype.newbyteorder("=").name if data.dtype.kind in "biufc" else str(data.dtype)[:40]
    shape, source = tuple(int(n) for n in data.shape or ()), found.path.name
    if dtype not in SIZES or data.external or data.is_virtual:
        return Tensor(name, dtype, shape, source, why=f"values of type {dtype}, or outside the file, are not read")
    stored = data.id.get_storage_size()
    if not stored or data.size * SIZES[dtype] > 1000 * stored:
        return Tensor(name, dtype, shape, source, why=f"{data.size} values are claimed, {stored} bytes are stored")
    if data.size == 1:
        found.values[name.replace("/", ".")] = data[()].item() if data.shape == () else data[(0,) * len(shape)].item()
    blocks = _blocks(data)
    return Tensor(name, dtype, shape, source, data.id.get_offset() or 0, inline=lambda: iter(blocks))


def _blocks(data: Any) -> list[Any]:
    """Read while the file is open; weights in HDF5 are those of small models."""

    def rows() -> Iterator[Any]:
        if data.ndim == 0:
            yield data[()].reshape(1)
            return
        row = max(data.nbytes // max(len(data), 1), 1)
        step = max(CHUNK // row, 1)
        for i in range(0, len(data), step):
            yield data[i : i + step].reshape(-1)

    return list(rows())
