"""torch.save files, both kinds: the zip (since torch 1.6) and the older stream of pickles. torch is not needed.

Zip: one folder, named anything, with ``data.pkl``, the storages as ``data/<key>``, ``version`` and ``byteorder``; members
are stored, so storages are mapped where they lie. A TorchScript archive has ``code/`` and ``constants.pkl`` as well: its
code is named and not read. Older files hold five pickles (a magic number, the protocol, the writer's sizes, the value, the
keys of the storages), then each storage as an int64 count and its values. A pickle without torch's frame is read as such.
Source: torch/serialization.py of torch 2.13. In all of them a tensor is a shape over a storage given by a persistent id.
"""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path, PurePosixPath
from typing import Any

from parsers.checkpoints import allowed, nested, opcodes, packed, zips
from parsers.checkpoints.allowed import Array, Storage, View
from parsers.checkpoints.contents import SIZES, Contents, File, Memory
from parsers.checkpoints.danger import dangerous
from parsers.checkpoints.pickles import Machine, Name, Opaque, label
from parsers.checkpoints.tree import Home, gather
from parsers.checkpoints.unreadable import Unreadable

MAX_PICKLE = 256 << 20
_ZIP = b"PK\x03\x04"
_MAGIC = 0x1950A86A20F9469CFC6C


def read(path: Path) -> Contents:
    """Raises Unreadable where nothing can be read, OSError where the file cannot be opened."""
    found, root = load(path)
    gather(found, root, path.stem if isinstance(root, (View, Storage, Array)) else "")
    return found


def load(path: Path) -> tuple[Contents, Any]:
    """What is known of a file so far, and its value, with Views for its tensors. Raises as ``read`` does."""
    file = File(path)
    found = Contents(path, "torch", files=[path], bytes=file.size)
    if not file.size:
        raise Unreadable("the file is empty")
    if how := packed.method(bytes(file.bytes[:8])):
        content, why = packed.unpack(file.bytes, how)
        if why:
            found.gap(why)
            found.complete = False if "MB" not in why else None
        file = Memory(path, content)
    return found, _read(found, file)


def _read(found: Contents, file: File, depth: int = 0) -> Any:
    return read_zip(found, file, 0, file.size, depth) if bytes(file.bytes[:4]) == _ZIP else _read_stream(found, file)


def _read_archive(found: Contents, file: File, parts: dict[str, zips.Member], start: int, depth: int) -> dict[str, Any]:
    """A zip of several files (Stable-Baselines3: policy.pth, policy.optimizer.pth): each by its stem."""
    roots: dict[str, Any] = {}
    for name, m in parts.items():
        try:
            content = memoryview(zips.content(file.bytes[start:], m, MAX_PICKLE))
            if bytes(content[:4]) == _ZIP or bytes(content[:1]) == b"\x80":
                roots[PurePosixPath(name).stem] = _read(found, Memory(Path(name), content), depth + 1)
        except Unreadable as e:
            found.gap(f"{name[:80]}: {e}"[:300], start + m.offset)
    return roots


def read_zip(found: Contents, file: File, start: int, length: int, depth: int = 0) -> Any:
    """The value of a torch zip that lies at [start, start + length) of a file, with Views for its tensors."""
    data = file.bytes[start : start + length]
    parts, whole = found.open_zip(file, start, data)
    if not whole:
        found.cut_off(f"the zip ends before its directory: the save was cut off; {len(parts)} members were found by their headers", length)
    pickle = next((m for name, m in parts.items() if name.rpartition("/")[2] == "data.pkl"), None)
    if pickle is None:
        if depth < nested.MAX_DEPTH and (roots := _read_archive(found, file, parts, start, depth)):
            return roots
        listed = ", ".join(sorted(parts)[:5])
        raise Unreadable(f"a zip without data.pkl is no torch file; it holds {listed[:200]}")
    prefix = pickle.name.removesuffix("data.pkl")
    code = [n for n in parts if n.startswith(f"{prefix}code/") and n.endswith(".py")]
    if code:
        found.refused.append({"what": f"TorchScript code ({len(code)} files)", "at": f"byte {start + parts[code[0]].offset}"})
    order = parts.get(f"{prefix}byteorder")
    swapped = order is not None and bytes(data[order.offset : order.offset + min(order.size, 8)]) == b"big"
    home = Home(file, swapped)
    for name, m in parts.items():
        if name.startswith(f"{prefix}data/"):
            if m.stored:
                home.places[name.removeprefix(f"{prefix}data/")] = (start + m.offset, m.size)
            else:
                found.gap(f"{name[:80]} is compressed, which torch never does: not read", start + m.offset)
    content = zips.content(data, pickle, MAX_PICKLE)
    machine = _machine(memoryview(content), 0, home, found)
    root = _load(found, machine)
    _note_refused(found, machine, start + pickle.offset if pickle.stored else None)
    if machine.whole:
        nested.following(nested.Search(found.refuse), content, machine.position, "", " of data.pkl")
    search = nested.Search(lambda what, at: found.refuse(what, at) if dangerous(what) else None)
    for name, m in parts.items():  # others may be pickles, too: a TorchScript archive has some, with names of its own
        if m is not pickle and m.size < MAX_PICKLE and not name.startswith((f"{prefix}data/", f"{prefix}code/")):
            with contextlib.suppress(Unreadable):
                nested.look(search, zips.content(data, m, MAX_PICKLE), f"byte {start + m.offset}")
    return root


def read_pickle(found: Contents, file: File) -> Any:
    """The value of a file that is one plain pickle."""
    machine = _machine(file.bytes, 0, Home(file, False))
    root = _load(found, machine)
    _note_refused(found, machine, 0)
    return root


def _read_stream(found: Contents, file: File, *, inner: bool = False) -> Any:
    """Torch's older stream where it begins with the magic number, else one plain pickle."""
    if not file.size:
        raise Unreadable("nothing in it")
    if bytes(file.bytes[257:262]) == b"ustar":
        raise Unreadable("a tar archive (torch before 0.2, or an archive of something else): not read")
    if file.bytes[0] != 0x80 and bytes(file.bytes[:1]) not in (b"(", b"]", b"}", b"c", b"I", b"."):
        raise Unreadable("neither a zip nor a pickle")
    home = Home(file, False)
    report = None if inner else found
    machine = _machine(file.bytes, 0, home, report)
    first = _load(found, machine)
    if first != _MAGIC:
        _note_refused(found, machine, 0)
        found.format = found.format if inner else "pickle"
        if machine.position < file.size:
            found.gap(f"{file.size - machine.position} bytes after the first pickle are not read", machine.position)
            if machine.whole:
                nested.following(nested.Search(found.refuse), file.bytes, machine.position)
        return first
    values = []
    for _ in range(4):  # protocol, sizes of the writer, the value, the storages' keys
        machine = _machine(file.bytes, machine.position, home, report)
        values.append(_load(found, machine))
        _note_refused(found, machine, 0)
        if not machine.whole:
            return values[2] if len(values) > 2 else None
    _, system, root, keys = values
    home.swapped = isinstance(system, dict) and system.get("little_endian") is False
    _place_storages(found, home, keys, machine.position)
    return root


def _place_storages(found: Contents, home: Home, keys: Any, position: int) -> None:
    for k in keys if isinstance(keys, list) else []:
        storage = home.storages.get(label(k))
        if storage is None or position + 8 > home.file.size:
            found.cut_off(f"the values of storage {label(k)[:40]} are missing, and all after it", position)
            return
        (count,) = struct.unpack_from("<q", home.file.bytes, position)
        size = count * SIZES[storage.dtype]
        if count < 0 or position + 8 + size > home.file.size:
            found.cut_off(f"storage {label(k)[:40]} claims {count} values, the file ends before: cut off", position)
            return
        home.places[label(k)] = (position + 8, size)
        position += 8 + size


def _load(found: Contents, machine: Machine) -> Any:
    """The pickle's value. A pickle that breaks off still gives what had been built: a dict that was being filled."""
    try:
        return opcodes.load(machine)
    except Unreadable as e:
        found.cut_off(str(e), machine.position)
        return machine.remains()


def _machine(data: memoryview, start: int, home: Home, found: Contents | None = None) -> Machine:
    """`found`: where to report what files inside the pickle hold; None within such a file, so that none lies in another."""

    def build(name: Name, args: tuple[Any, ...]) -> Any:
        if found is not None and name.name == "_load_from_bytes" and args and isinstance(args[0], (bytes, memoryview)):
            try:
                return _read_stream(found, Memory(found.path, args[0]), inner=True)
            except Unreadable as e:
                found.gap(f"a storage inside the pickle: {e}", name.at)
        return allowed.build(name, args)

    def persistent(pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage" and type(pid[4]) is int:
            dtype = allowed.storage_type(pid[1]) or "uint8"
            return home.storages.setdefault(label(pid[2]), Storage(dtype, label(pid[2]), pid[4], home))
        if isinstance(pid, tuple) and len(pid) >= 2 and pid[0] == "module":
            return pid[1]
        return Opaque("persistent id")

    return Machine(data, start, build=build, set_state=allowed.set_state, persistent=persistent, allowed=allowed.allowed)


def _note_refused(found: Contents, machine: Machine, base: int | None) -> None:
    def place(at: int) -> str:
        return f"byte {at + base}" if base is not None else f"byte {at} of the unpacked data.pkl"

    found.refused += [{"what": what, "at": place(at)} for what, at in machine.refused.items()]
    search = nested.Search(found.refuse)
    for blob, at in nested.blobs(machine):
        nested.look(search, blob, place(at))
