"""Keras: ``.h5``/``.hdf5`` through h5py where it is installed, ``.keras`` (a zip with ``model.weights.h5``) likewise.

Without h5py the file is recognized and named. HDF5 is read in a process of its own (hdf5_reader), which may die of a damaged
file; nothing of the architecture's JSON is evaluated (a Lambda layer holds marshalled code).
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parsers.checkpoints import zips
from parsers.checkpoints.contents import CHUNK, Contents, File, Tensor
from parsers.checkpoints.unreadable import Unreadable

MAX_WEIGHTS = 4 << 30  # of a compressed model.weights.h5, which has to be unpacked
_SECONDS, _PER_BYTE, _MEMORY = 10, 1 / 20e6, 4 << 30  # of CPU: to start, and for each byte; bytes beside the file's own
_ROOT = str(Path(__file__).resolve().parents[2])
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from parsers.checkpoints.hdf5_reader import main; main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))"


def read(path: Path) -> Contents:
    file = File(path)
    found = Contents(path, "keras", files=[path], bytes=file.size)
    source: memoryview | bytes | None = None
    if bytes(file.bytes[:4]) == b"PK\x03\x04":
        source = _weights_of(found, file)
    if importlib.util.find_spec("h5py") is None:
        found.gap("HDF5: reading what is in it needs h5py (pip install 'run-forensics[hdf5]')")
        return found
    size = file.size if source is None else len(source)
    _take(found, _frames(found, path, source, size))
    found.tensors.sort(key=lambda t: t.name)
    return found


def _frames(found: Contents, path: Path, source: memoryview | bytes | None, size: int) -> Iterator[tuple[dict[str, Any], memoryview]]:
    """What the reader said, each with its values; at the end a gap where it broke off."""
    seconds = int(_SECONDS + size * _PER_BYTE)
    name = "-" if source is not None else str(path.resolve())
    arguments = [json.dumps([_ROOT, *filter(None, sys.path)]), name, str(seconds), str(_MEMORY + 3 * size)]
    feed: dict[str, Any] = {"stdin": subprocess.DEVNULL} if source is None else {"input": source}
    try:  # -I: nothing of the folder that we stand in, or of the environment, is imported
        command = [sys.executable, "-I", "-c", _START, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10 * seconds, check=False, **feed)
        said, why = memoryview(done.stdout), f"it ended with {done.returncode}"
    except subprocess.TimeoutExpired as e:
        said, why = memoryview(e.stdout or b""), "it took too long"
    at, last = 0, {}
    while at + 4 <= len(said):
        begin = at + 4 + int.from_bytes(said[at : at + 4], "little")
        if begin > len(said):
            break
        last = json.loads(bytes(said[at + 4 : begin]))
        at = begin + last.get("bytes", 0)
        if at > len(said):
            break
        yield last, said[begin:at]
    if not ("end" in last or "error" in last):
        found.cut_off(f"HDF5's own reader failed in this file, which is damaged ({why}): what it had not read is lost")


def _take(found: Contents, frames: Iterator[tuple[dict[str, Any], memoryview]]) -> None:
    aliases: list[tuple[str, str]] = []
    for facts, raw in frames:
        if "alias" in facts:
            aliases.append((facts["alias"], facts["of"]))
        elif "error" in facts:
            found.complete = False
            if not found.tensors:
                raise Unreadable(f"HDF5 cannot open it: {facts['error']}"[:300])
            found.gap(f"HDF5 cannot read on: {facts['error']}"[:300])
        elif "gap" in facts:
            found.gap(facts["gap"])
        elif "refused" in facts:
            found.refused.append({"what": facts["refused"], "at": "byte 0"})
        elif "tensor" in facts:
            found.tensors.append(_tensor(found, facts, raw))
    targets = {t.name: t for t in found.tensors}  # soft links to groups and to nothing name no array
    found.tensors += [replace(targets[of], name=name) for name, of in aliases if of in targets]
    if found.complete is False and not found.tensors:
        raise Unreadable(found.gaps[-1].what if found.gaps else "HDF5 cannot open it")


def _tensor(found: Contents, facts: dict[str, Any], raw: memoryview) -> Tensor:
    name, dtype, shape = facts["tensor"], facts["dtype"], tuple(facts["shape"])
    if facts["why"]:
        return Tensor(name, dtype, shape, found.path.name, why=facts["why"])
    array = np.frombuffer(raw, dtype)
    if array.size == 1:
        found.values[name.replace("/", ".")] = array[0].item()
    step = max(CHUNK // array.itemsize, 1)
    blocks = lambda: (array[i : i + step] for i in range(0, array.size, step))  # noqa: E731
    return Tensor(name, dtype, shape, found.path.name, facts["at"], inline=blocks)


def _weights_of(found: Contents, file: File) -> memoryview | bytes:
    parts, found.complete = found.open_zip(file, 0, file.bytes)
    config = parts.get("config.json")
    if config is not None and b"Lambda" in bytes(zips.content(file.bytes, config, 64 << 20)):
        found.refused.append({"what": "a Lambda layer: marshalled code in config.json", "at": f"byte {config.offset}"})
    weights = parts.get("model.weights.h5")
    if weights is None:
        raise Unreadable("no model.weights.h5 in it: not a Keras file")
    return zips.content(file.bytes, weights, MAX_WEIGHTS)
