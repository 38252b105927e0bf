"""Folders of torch.distributed.checkpoint: ``.metadata`` and ``__0_0.distcp`` ..., whoever sharded them, read whole.

Torch's own reader unpickles whatever the metadata and the plain values name. This one gives it the classes of the format and plain data alone, and
keeps to the folder. Every rank reads all of it and keeps its shard, so the ranks of a replay need not be those of the run.
"""

from __future__ import annotations

import os
import pathlib
import pickle
from typing import Any

NAMES = {
    "torch.distributed.checkpoint.metadata": (
        "Metadata", "MetadataIndex", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata", "TensorProperties", "StorageMeta",
        "_MEM_FORMAT_ENCODING",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo",),
    "torch.serialization": ("_get_layout",),
    "torch": ("Size",),
    "collections": ("OrderedDict",),
}  # fmt: skip


class Foreign(Exception):
    """The folder names what no checkpoint of this format needs, in one sentence."""


class _Metadata(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        import torch

        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if module.split(".")[0] == "pathlib" and name.endswith("Path"):
            return pathlib.PurePath  # where it was saved; never opened
        if name in NAMES.get(module, ()):
            return super().find_class(module, name)
        raise Foreign(f"its .metadata names {module}.{name}")


def metadata(folder: str) -> Any:
    """What lies in the folder, by name and place. Raises Foreign."""
    with open(os.path.join(folder, ".metadata"), "rb") as f:
        found = _Metadata(f).load()
    for info in (found.storage_data or {}).values():
        if os.path.basename(info.relative_path) != info.relative_path:
            raise Foreign(f"a shard outside the folder: {info.relative_path[:100]!r}")
    return found


def read(folder: str) -> tuple[dict[str, Any], list[str]]:
    """Everything in it as it was before it was flattened and sharded, on the CPU, and the names of plain values that only running code in them would
    give. Raises Foreign, and what torch raises."""
    import torch
    from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.state_dict_loader import load

    about, refused = metadata(folder), []

    class Reader(FileSystemReader):
        """Torch's reader with the metadata that were read here."""

        def read_metadata(self, *args: Any, **options: Any) -> Any:
            if about.storage_meta is not None:
                about.storage_meta.load_id = self.load_id
            return about

    class Planner(DefaultLoadPlanner):
        """Plain values without running anything in them; torch's own unpickles what they name."""

        def load_bytes(self, read_item: Any, value: Any) -> None:
            name = read_item.dest_index.fqn
            try:
                self.state_dict[name] = torch.load(value, weights_only=True)
            except pickle.UnpicklingError:
                refused.append(name)

    entries = about.state_dict_metadata
    found = {k: torch.empty(tuple(e.size), dtype=e.properties.dtype) if hasattr(e, "size") else None for k, e in entries.items()}
    planner = Planner(flatten_state_dict=False, flatten_sharded_tensors=False)
    load(found, storage_reader=Reader(folder), planner=planner, no_dist=True)
    return _nested({k: v for k, v in found.items() if k not in refused}, about.planner_data or {}), refused


def _nested(flat: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
    """The dictionaries and lists that the names were made from; `places`: name -> keys on the way to the value."""
    root: dict[Any, Any] = {}
    for name, value in flat.items():
        *way, last = places.get(name, (name,))
        at = root
        for key in way:
            at = at.setdefault(key, {})
        at[last] = value
    return {k: _lists(v) for k, v in root.items()}


def _lists(x: Any) -> Any:
    """Positions in lists are numbers, keys of dictionaries are text."""
    if not isinstance(x, dict):
        return x
    if x and all(type(k) is int for k in x):
        return [_lists(x[k]) for k in sorted(x)]
    return {k: _lists(v) for k, v in x.items()}
