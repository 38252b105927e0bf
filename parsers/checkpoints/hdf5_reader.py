"""Reads an HDF5 file in a process of its own: the C library behind h5py dies of, or hangs in, some damaged files.

The parent (keras_file) starts ``main`` and reads frames from its standard output: four bytes of length, a JSON object, and
where it says ``"bytes": n`` as many bytes of values. The last frame is ``{"end": true}``: without it the reader broke off.
Links out of the file (external links, virtual and external storage) are not followed; a soft link within it is told as another
name of its target.
"""

from __future__ import annotations

import io
import json
import posixpath
import sys
from typing import Any

from parsers.checkpoints.contents import CHUNK, SIZES

MAX_OBJECTS = 100_000
_RAISED = (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, MemoryError)  # what h5py makes of HDF5's errors


def main(path: str, seconds: int, memory: int) -> None:
    """`path`: the file, or "-" for standard input. `seconds` of CPU and `memory` in bytes are limits."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import h5py  # type: ignore[import-not-found,import-untyped,unused-ignore]

    try:
        with h5py.File(io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path, "r") as f:
            _list(h5py, f)
        _send({"end": True})
    except _RAISED as e:
        _send({"error": str(e)[:300]})


def _send(facts: dict[str, Any]) -> None:
    text = json.dumps(facts).encode()
    sys.stdout.buffer.write(len(text).to_bytes(4, "little") + text)
    sys.stdout.buffer.flush()


def _list(h5py: Any, f: Any) -> None:
    """All arrays by name, and single numbers as values."""
    try:
        config = f.attrs.get("model_config")
    except _RAISED as e:
        config = None
        _send({"gap": f"the attributes of the file cannot be read: {e}"[:300]})
    if config is not None and "Lambda" in str(config):
        _send({"refused": "a Lambda layer: marshalled code in model_config"})
    stack, visited = [(f, "")], 0
    while stack:
        group, path = stack.pop()
        for name in group:
            visited += 1
            if visited > MAX_OBJECTS:
                _send({"gap": f"more than {MAX_OBJECTS} objects: the rest is not listed"})
                return
            inner = f"{path}/{name}" if path else name
            try:
                link = group.get(name, getlink=True)
                if isinstance(link, h5py.SoftLink):
                    _send({"alias": inner, "of": posixpath.normpath(posixpath.join("/", path, link.path)).lstrip("/")})
                    continue
                if not isinstance(link, h5py.HardLink):
                    _send({"refused": f"a link named {name[:80]!r}"})
                    continue
                value = group.get(name)
                if isinstance(value, h5py.Group) and inner.count("/") < 40:
                    stack.append((value, inner))
                elif isinstance(value, h5py.Dataset):
                    _tensor(value, inner)
            except _RAISED as e:
                _send({"gap": f"{inner[:80]} cannot be read: {e}"[:300]})


def _tensor(data: Any, name: str) -> None:
    dtype = data.dtype.newbyteorder("=").name if data.dtype.kind in "biufc" else str(data.dtype)[:40]
    facts: dict[str, Any] = {"tensor": name, "dtype": dtype, "shape": [int(n) for n in data.shape or ()], "at": 0, "why": "", "bytes": 0}
    if dtype not in SIZES or data.external or data.is_virtual:
        _send(facts | {"why": f"values of type {dtype}, or outside the file, are not read"})
        return
    stored = data.id.get_storage_size()
    if not stored or data.size * SIZES[dtype] > 1000 * stored:
        _send(facts | {"why": f"{data.size} values are claimed, {stored} bytes are stored"})
        return
    row = max(data.nbytes // max(len(data), 1), 1) if data.ndim else 0
    step = max(CHUNK // row, 1) if row else 1
    whole = data.dtype.newbyteorder("=")
    blocks = [data[()].reshape(1)] if not data.ndim else [data[i : i + step].reshape(-1) for i in range(0, len(data), step)]
    raw = b"".join(b.astype(whole, copy=False).tobytes() for b in blocks)
    _send(facts | {"at": data.id.get_offset() or 0, "bytes": len(raw)})
    sys.stdout.buffer.write(raw)
