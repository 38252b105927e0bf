"""torch.distributed.checkpoint: ``.metadata`` (a pickle) says which byte range of which ``.distcp`` file holds what.

Each range is a small torch.save file of its own: one chunk of a tensor, or one plain value. Chunks are looked at only when
their values are asked for, so a checkpoint of a thousand ranks costs its metadata at first. Paths in the metadata must be
plain names in the same folder. Source: torch/distributed/checkpoint/{metadata,filesystem}.py of torch 2.13.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsers.checkpoints import allowed, torch_file
from parsers.checkpoints.allowed import View
from parsers.checkpoints.contents import SIZES, Contents, File, Tensor, chunks
from parsers.checkpoints.pickles import Opaque
from parsers.checkpoints.shards import leads_out
from parsers.checkpoints.tree import gather, tensor_of
from parsers.checkpoints.unreadable import Unreadable

Place = tuple[str, int, int]  # file, first byte, bytes


def read(path: Path) -> Contents:
    """`path`: the folder or its ``.metadata``. Raises Unreadable, OSError."""
    folder = path if path.is_dir() else path.parent
    found = Contents(folder, "dcp", files=[folder / ".metadata"])
    file = File(folder / ".metadata")
    found.bytes = file.size
    root = torch_file.read_pickle(found, file)
    state = _fields(root)
    entries, places = state.get("state_dict_metadata"), _places(found, state.get("storage_data"))
    if not isinstance(entries, dict) and found.refused:  # what it asks for is told
        found.cut_off("the .metadata file lists no tensors, and names what no metadata need")
        return found
    if not isinstance(entries, dict):
        raise Unreadable("the .metadata file lists no tensors: not one of torch.distributed.checkpoint")
    shards = _open(found, folder, sorted({place[0] for there in places.values() for place in there}))
    ends: dict[str, int] = {}
    for name, offset, length in (p for there in places.values() for p in there):
        ends[name] = max(ends.get(name, 0), offset + length)
    for name, shard in shards.items():
        if ends[name] > shard.size:
            found.cut_off(f"{name[:80]} ends at byte {shard.size}, its values reach to byte {ends[name]}: cut off", shard.size, name[:200])
    for name, entry in entries.items():
        there, text = places.get(str(name), []), str(name)
        if "size" in _fields(entry):
            found.tensors.append(_tensor(found, text, _fields(entry), there, shards))
        elif there and there[0][0] in shards:
            try:
                gather(found, _blob(found, shards, there[0]), text)
            except Unreadable as e:
                found.gap(f"{text[:80]}: {e}", there[0][1], there[0][0])
    return found


def _fields(x: Any) -> dict[Any, Any]:
    return x.state if isinstance(x, Opaque) and isinstance(x.state, dict) else {}


def _places(found: Contents, storage: Any) -> dict[str, list[Place]]:
    """Name -> byte ranges of its chunks, in the order of the metadata."""
    places: dict[str, list[Place]] = {}
    for index, info in storage.items() if isinstance(storage, dict) else []:
        where, name = _fields(info), _fields(index).get("fqn")
        path, offset, length = where.get("relative_path"), where.get("offset"), where.get("length")
        if not isinstance(name, str) or not isinstance(path, str) or type(offset) is not int or type(length) is not int:
            continue
        if min(offset, length) < 0:
            continue
        if leads_out(path):
            if len(found.refused) < 100:
                found.refused.append({"what": f"a shard outside the folder: {path[:100]!r}", "at": "byte 0"})
            continue
        places.setdefault(name, []).append((path, offset, length))
    return places


def _open(found: Contents, folder: Path, names: list[str]) -> dict[str, File]:
    shards = {}
    for name in names:
        path = folder / name
        try:
            if path.is_symlink():
                raise Unreadable("it is a link: not followed")
            shards[name] = File(path)
        except (OSError, Unreadable) as e:
            found.cut_off(f"shard {name[:80]} cannot be read: {getattr(e, 'strerror', None) or e}", 0, name[:200])
            continue
        found.files.append(path)
        found.bytes += shards[name].size
    return shards


def _tensor(found: Contents, name: str, entry: dict[Any, Any], there: list[Place], shards: dict[str, File]) -> Tensor:
    size = entry.get("size")
    shape = tuple(size) if isinstance(size, tuple) and all(type(n) is int and n >= 0 for n in size) else ()
    properties = entry.get("properties")
    state = properties.state if isinstance(properties, Opaque) else None
    dtype = allowed.storage_type(state[0]) if isinstance(state, tuple) and state else ""
    source, at = (there[0][0], there[0][1]) if there else (".metadata", 0)
    missing = [p for p in there if p[0] not in shards or p[1] + p[2] > shards[p[0]].size]
    if dtype not in SIZES:
        why = f"values of type {dtype or 'unknown'} are not read"
    elif missing or not there:
        found.complete = False
        why = f"{len(missing) or 'all'} of its {len(there) or 'no'} chunks are missing"
    else:

        def blocks() -> Iterator[Any]:
            for place in there:
                yield from _chunk(found, shards, place, dtype)

        layout = tuple(sorted(p[2] for p in there)) if len(there) > 1 else ()
        tensor = Tensor(name, dtype, shape, source, at, inline=blocks, layout=layout)
        if math.prod(shape) == 1:
            with contextlib.suppress(Unreadable, StopIteration):
                found.values[name] = next(iter(blocks()))[0].item()
        return tensor
    return Tensor(name, dtype or "unknown", shape, source, at, why=why)


def _chunk(found: Contents, shards: dict[str, File], place: Place, dtype: str) -> Iterator[Any]:
    value = _blob(found, shards, place)
    if not isinstance(value, View):
        raise Unreadable("a chunk that holds no tensor")
    tensor = tensor_of("", value, place[0])
    if tensor.why or tensor.dtype != dtype:
        raise Unreadable(tensor.why or f"a chunk of type {tensor.dtype} in a tensor of type {dtype}")
    yield from chunks(tensor)


def _blob(found: Contents, shards: dict[str, File], place: Place) -> Any:
    name, offset, length = place
    if offset + length > shards[name].size:
        raise Unreadable(f"{name} ends before byte {offset + length}")
    return torch_file.read_zip(found, shards[name], offset, length)
