"""Reads what is in checkpoints: ``read(path)`` gives the tensors with the places of their values, and the plain values.

Nothing that a file names is imported, called or unpacked to disk. parsers.formats.checkpoint_files lists checkpoints for the
analysis; these readers are asked only when someone wants to know what is in one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from parsers.checkpoints.contents import Contents
from parsers.checkpoints.unreadable import Unreadable
from parsers.formats import checkpoint_files

_NAMED = {  # recognized by name, never opened
    ".msgpack": "Flax (msgpack)", ".onnx": "ONNX", ".gguf": "GGUF", ".pdparams": "PaddlePaddle", ".pdopt": "PaddlePaddle",
    ".tar": "a tar archive", ".index": "TensorFlow's index", ".meta": "TensorFlow's graph", ".t7": "Lua Torch", ".pb": "TensorFlow's saved model",
    ".tflite": "TensorFlow Lite", ".mlmodel": "Core ML", ".engine": "TensorRT",
}  # fmt: skip
_INSTEAD = {
    ".msgpack": "; restore it with flax.serialization.msgpack_restore and save its arrays with numpy.savez, which is read",
    ".tar": "; where torch before 0.2 saved it, load it there and save it again",
}
_ORBAX = ("_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt", "commit_success.txt")


def read(path: Path) -> Contents:
    """A checkpoint file or folder. Raises Unreadable with the reason, OSError where it cannot be opened."""
    from parsers.checkpoints import folder, shards

    if not path.exists():
        raise FileNotFoundError(2, "no such file or folder", str(path))
    if path.is_file() and shards.is_index(path):
        return folder.read(path.parent, read_file)
    if not path.is_dir():
        return read_file(path)
    if any((path / n).exists() for n in _ORBAX) and not (path / ".metadata").exists():
        listed = ", ".join(p.name for p in sorted(path.iterdir())[:8])
        what = f"an Orbax checkpoint (JAX): recognized, its contents are not read; it holds {_escaped(listed)[:200]}; "
        raise Unreadable(f"{what}restore it and save its arrays with numpy.savez, which is read")
    return folder.read(path, read_file)


def read_file(path: Path) -> Contents:
    """One file, by its first bytes."""
    from parsers.checkpoints import dcp, keras_file, npz_file, safetensors_file, torch_file
    from parsers.checkpoints.roles import set_roles

    if path.name == ".metadata":
        found = dcp.read(path)
    elif not path.is_file():
        raise Unreadable("not a regular file: not opened")
    else:
        with path.open("rb") as f:
            head = f.read(16)
        suffix = path.suffix.lower()
        if suffix == ".safetensors":
            found = safetensors_file.read(path)
        elif head.startswith(b"\x93NUMPY") or (suffix == ".npz" and head.startswith(b"PK")):
            found = npz_file.read(path)
        elif head.startswith(b"\x89HDF") or suffix == ".keras":
            found = keras_file.read(path)
        elif suffix in _NAMED and not head.startswith((b"PK\x03\x04", b"\x80")):
            raise Unreadable(f"{_NAMED[suffix]}: recognized, its contents are not read{_INSTEAD.get(suffix, '')}")
        elif suffix == ".distcp":
            raise Unreadable("a shard of torch.distributed.checkpoint: give the folder, whose .metadata says what is in it")
        else:
            found = torch_file.read(path)
    _make_printable(found)
    set_roles(found.tensors, checkpoint_files.kind_of(path.name))
    return found


def _make_printable(found: Contents) -> None:
    """Names come from the file: what would steer a terminal or cannot be encoded is escaped."""
    for t in found.tensors:
        t.name = _escaped(t.name)
    found.values = {_escaped(k): _escaped(v) if isinstance(v, str) else v for k, v in found.values.items()}
    found.refused = [{k: _escaped(v) for k, v in r.items()} for r in found.refused]
    found.gaps = [replace(g, what=_escaped(g.what)) for g in found.gaps]


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


__all__ = ["Contents", "Unreadable", "read", "read_file"]
