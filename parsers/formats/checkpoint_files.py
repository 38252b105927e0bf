"""Checkpoint files: which step, kind, format and size, and whether they are complete. Contents are not read here.

Nothing is unpickled. A safetensors file is complete when its header's last offset meets the file's end (format: 8-byte
little-endian header length, JSON header, data); a zip (``torch.save`` since 1.6) when its end record is there.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import flight_dump
from parsers.tables import Gap, Note, Rows, relative

AT = "byte"

_SUFFIXES = {".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".h5", ".hdf5", ".keras", ".npz", ".distcp", ".msgpack", ".pdparams",
             ".pdopt", ".onnx", ".gguf", ".tar", ".pkl", ".th", ".t7", ".weights", ".index", ".meta"}  # fmt: skip
_STEP = lazy_re(  # "batch256" is a size, "4bit-128g" no iteration
    r"(?i)(?:global[-_]?step|step|checkpoint|ckpt|iter(?:ation)?|update|chkpt|(?<![a-z])(?:it|ba|batch(?=[-_=])))[-_=]?(\d+)"
)
_STEP_TF = lazy_re(r"\.ckpt-(\d+)")
_CHECKPOINT_WORD = lazy_re(
    r"(?i)checkpoint|ckpt|weights|model|optim|scheduler|scaler|rng|random_states|sampler|ema|state|best|last|latest|adapter|training_args|(^|/)(it|ep|epoch|step)_?\d+"
)
_KINDS = [
    ("optimizer", r"optim(?!al).*|.*zero_pp_rank.*"),
    ("rng", r"(rng|random)_?states?.*"),
    ("scheduler", r"scheduler.*|lr_sched.*"),
    ("scaler", r"(grad_)?scaler.*"),
    ("arguments", r"training_args.*"),
    ("weights", r"(pytorch_)?model(?!_optim).*|adapter_model.*|consolidated.*|.*weights.*|tf_model.*|flax_model.*|ema.*"),
]


def claims(path: Path, head: bytes) -> bool:
    """By suffix together with a checkpoint's magic bytes or a checkpoint's name; never by a bare name."""
    suffix = path.suffix.lower()
    if suffix == ".safetensors" or path.name == ".metadata" or suffix == ".distcp":
        return True
    if head.startswith((b"version https://git-lfs", b"PAR1", b"SQLite format")) or flight_dump.is_dump(head):
        return False
    if _STEP_TF.search(path.name) and suffix != ".json":
        return not _is_text(head)
    if suffix not in _SUFFIXES or (_is_text(head) and head):
        return False
    if suffix in {".npz", ".pkl", ".bin", ".tar", ".index", ".meta", ".h5", ".hdf5"}:
        near = "/".join(path.parts[-3:])
        return bool(_CHECKPOINT_WORD.search(near))
    return True


def _is_text(head: bytes) -> bool:
    return b"\x00" not in head and not head.startswith((b"\x80", b"PK")) and all(b >= 9 for b in head[:512])


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    rows = Rows()
    info = path.stat()
    fmt, complete, why = _format(path, info.st_size)
    rows.add("checkpoints", step=step_of(path), path=relative(path, path.parent), kind=kind_of(path.name), format=fmt, bytes=info.st_size,
             complete=complete, time=info.st_mtime, at=0)  # fmt: skip
    if why:
        yield Gap(f"byte {info.st_size}", why, None)
    elif kind_of(path.name) == "arguments":
        yield from _arguments(path, rows)
    yield from rows.flush()


def _arguments(path: Path, rows: Rows) -> Iterator[Gap]:
    from parsers.checkpoints import arguments  # what reads torch files is imported where one has settings
    from parsers.checkpoints.unreadable import Unreadable

    try:
        for name, value in arguments.settings(path):
            rows.config(name, value, at=0)
    except Unreadable as e:
        yield Gap("byte 0", f"its settings could not be read: {e}", None)


def step_of(path: Path) -> int | None:
    """The step in a checkpoint's file name, else in its folder's (checkpoint-500/, iter_0000420/mp_rank_00/)."""
    for part in (path.name, *reversed(path.parts[-4:-1])):
        match = _STEP_TF.search(part) or _STEP.search(part)
        if match and len(match[1]) < 18:
            return int(match[1])
    return None


def kind_of(name: str) -> str:
    """weights, optimizer, scheduler, rng, scaler, arguments, or full, by the file's name."""
    stem = name.lower()
    return next((kind for kind, pattern in _KINDS if re.fullmatch(pattern, stem)), "full")


def _format(path: Path, size: int) -> tuple[str, bool | None, str]:
    """(format, complete or None when unknown, what is wrong)."""
    with path.open("rb") as f:
        head = f.read(16)
        if not head:
            return "empty", False, "the checkpoint file is empty"
        if path.suffix.lower() == ".safetensors":
            return _safetensors(f, head, size)
        if head.startswith(b"PK\x03\x04"):
            f.seek(max(0, size - 70_000))
            whole = b"PK\x05\x06" in f.read()
            fmt = {".npz": "npz", ".keras": "keras"}.get(path.suffix.lower(), "torch")
            return fmt, whole, "" if whole else "the zip ends before its directory: the save was cut off"
    if head.startswith(b"\x89HDF"):
        return "keras", None, ""
    if head.startswith(b"GGUF"):
        return "gguf", None, ""
    if head.startswith(b"\x80"):
        return ("dcp" if path.name == ".metadata" else "torch (legacy pickle)"), None, ""
    suffix = path.suffix.lower().lstrip(".")
    return ("dcp" if suffix == "distcp" else "tensorflow" if ".ckpt" in path.name else suffix or "other"), None, ""


def _safetensors(f: BinaryIO, head: bytes, size: int) -> tuple[str, bool, str]:
    (length,) = struct.unpack("<Q", head[:8].ljust(8, b"\0"))
    if length > min(size, 100_000_000):
        return "safetensors", False, f"the header claims {length} bytes in a file of {size}"
    f.seek(8)
    try:
        header = json.loads(f.read(length))
        end = max((v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "safetensors", False, "the header is damaged"
    lost = 8 + length + end - size
    return "safetensors", lost == 0, f"{lost} bytes are missing at the end" if lost > 0 else ""
