"""From the value of a pickle to tensors and plain values with names: a walk over dicts, lists and opaque objects.

A name is the path, joined with dots: ``model.layers.0.weight``, ``optimizer.state.0.exp_avg``. The insides of a pickled
``nn.Module`` (``_modules``, ``_parameters``, ``_buffers``) are left out of it, so that names are those of its state_dict.
A tensor that is met twice is listed twice (tied weights), a container that holds itself is not entered again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parsers import secrets
from parsers.checkpoints.allowed import META, Array, Size, Storage, View
from parsers.checkpoints.contents import SIZES, Contents, File, Piece, Tensor, chunks, dense, raw_type, row_major
from parsers.checkpoints.pickles import Name, Opaque
from parsers.checkpoints.pickles import key as plain_key
from parsers.checkpoints.statistics import values as as_floats

MAX_VISITS = 500_000
MAX_DEPTH = 60
MAX_PATH = 1000  # characters of a name
MAX_MET, DEEP = 100, 12  # a container that is met so often below such a depth is one that doubles on its way
MAX_VALUES = 200_000
MAX_REPEATED = 1 << 22  # values of an expanded view, which says more than its storage holds
_INSIDES = {"_modules", "_parameters", "_buffers"}


@dataclass(eq=False)
class Home:
    """Where the storages of one torch file lie: key -> (byte, bytes)."""

    file: File
    swapped: bool
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)


def gather(found: Contents, root: Any, prefix: str = "") -> None:
    """Adds the tensors and values below `root` to `found`."""
    for name, value in _leaves(root, prefix, found):
        if isinstance(value, View):
            _add(found, tensor_of(name, value, found.path.name))
        elif isinstance(value, Array):
            _add(found, _array(name, value, found))
        elif isinstance(value, Storage):
            _add(found, tensor_of(name, View(value, 0, (value.count,), (1,)), found.path.name))
        elif len(found.values) < MAX_VALUES:
            if isinstance(value, dict):
                found.values[name] = "{}"  # an optimizer without state is told by it
            elif isinstance(value, str):
                found.values[name] = "***" if secrets.is_secret_key(name.rpartition(".")[2]) else secrets.mask_text(value[:500])
            elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:  # no step and no size; JSON and floats cannot take it
                found.values[name] = str(value) if value.bit_length() < 300 else f"an integer of {value.bit_length()} bits"
            elif isinstance(value, (bool, int, float)) or value is None:
                found.values[name] = value
            elif isinstance(value, Size):
                found.values[name] = str(list(value))


def _add(found: Contents, tensor: Tensor) -> None:
    found.tensors.append(tensor)
    if tensor.count == 1 and not tensor.why and len(found.values) < MAX_VALUES:
        for block in chunks(tensor):
            found.values[tensor.name] = as_floats(block, tensor.dtype)[0].item()


def _leaves(root: Any, prefix: str, found: Contents) -> Iterator[tuple[str, Any]]:
    """(name, value) of what is no container. Bounded in depth and number: a few shared lists can unfold without end."""
    stack: list[tuple[int, Iterator[tuple[str, Any]]]] = [(0, iter([(prefix, root)]))]
    numbers: set[int] = set()
    met: Counter[int] = Counter()  # 0, which is nobody's id: containers that were not entered again
    for _ in range(MAX_VISITS):
        if not stack:
            if met[0]:
                found.gap(f"containers met more than {MAX_MET} times: {met[0]} are not listed again")
            return
        item = next(stack[-1][1], None)
        if item is None:
            stack.pop()
            continue
        path, value = item
        inner = _children(value)
        if inner is None or value == {}:
            yield path, str(value) if isinstance(value, Name) else value
        elif id(value) in numbers or _is_numbers(value):
            numbers.add(id(value))  # not counted again where the same list is met once more
        elif len(stack) < MAX_DEPTH and all(id(value) != known for known, _ in stack):
            met[id(value)] += 1
            if met[id(value)] > MAX_MET and len(stack) > DEEP:
                met[0] += 1
            else:
                stack.append((id(value), _below(path, inner)))
    found.gap(f"more than {MAX_VISITS} values: the rest is not listed")


def _below(path: str, items: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for key, value in items:
        yield (path if key in _INSIDES else f"{path}.{key}" if path else key)[:MAX_PATH], value


def _children(value: Any) -> Iterator[tuple[str, Any]] | None:
    """What a container holds, None for a value."""
    if isinstance(value, dict):
        return ((_text(k), v) for k, v in value.items())
    if isinstance(value, (list, tuple, set, frozenset)) and not isinstance(value, Size):
        return ((str(i), v) for i, v in enumerate(value))
    return _parts(value) if isinstance(value, Opaque) else None


def _is_numbers(value: Any) -> bool:
    """Long lists of numbers (the state of a generator) hold nothing of interest."""
    return isinstance(value, (list, tuple, set, frozenset)) and len(value) > 64 and all(type(v) in (int, float) for v in value)


def _parts(value: Opaque) -> Iterator[tuple[str, Any]]:
    state = value.state
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
        before, state = state
        if isinstance(before, dict):
            yield from ((_text(k), v) for k, v in before.items() if k not in state)
    if isinstance(state, dict):
        yield from ((_text(k), v) for k, v in state.items())
    elif state is not None:
        yield "state", state
    for i, a in enumerate(value.args):
        yield str(i), a
    for i, x in enumerate(value.items):
        yield (_text(plain_key(x[0])), x[1]) if isinstance(x, tuple) and len(x) == 2 else (str(i), x)


def _text(key: Any) -> str:
    """A key as part of a path; never the whole of what may be megabytes, or unfold without end."""
    if isinstance(key, Opaque):
        return f"<{key.name[:MAX_PATH]}>"
    if isinstance(key, tuple):
        return f"({', '.join(_text(k) for k in key[:8])})"[:MAX_PATH]
    return str(key[:MAX_PATH] if isinstance(key, (str, bytes)) else key)[:MAX_PATH]


def tensor_of(name: str, view: View, source: str) -> Tensor:
    """A View with the place of its values; `why` says it where they cannot be had."""
    storage = view.storage
    home: Home | None = storage.home
    dtype = view.dtype or storage.dtype
    place = home.places.get(storage.key) if home is not None else None
    if home is None and storage.key == META:
        return Tensor(name, dtype, view.shape, source, why="a meta tensor: it was saved without values")
    if home is None or place is None:
        return Tensor(name, dtype, view.shape, source, why="its values are missing or were not read")
    if dtype not in SIZES:
        return Tensor(name, dtype, view.shape, source, place[0], why=f"values of type {dtype} are not read")
    begin, size = place[0] + view.offset * SIZES[dtype], place[1] - view.offset * SIZES[dtype]
    available = size // SIZES[dtype]
    last = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    count = math.prod(view.shape)
    if count and last >= available:
        return Tensor(name, dtype, view.shape, source, begin, why="it reaches beyond its storage")
    shape, strides = view.shape, view.strides
    layout: tuple[int, ...] = ()
    if dense(shape, strides) or not count:
        piece = Piece(home.file, begin, count)
        usual = all(s == r for n, s, r in zip(shape, strides, row_major(shape), strict=True) if n > 1)
        layout = () if usual else strides
    elif count > max(available, MAX_REPEATED):
        return Tensor(name, dtype, shape, source, begin, why="an expanded view: it repeats the values of a smaller storage")
    else:
        piece = Piece(home.file, begin, last + 1, shape, strides)
    stored = Tensor(name, dtype, shape, source, begin, (piece,), swapped=home.swapped, layout=layout)
    return _with_bits(stored, view) if view.negated or view.conjugated else stored


def _with_bits(stored: Tensor, view: View) -> Tensor:
    """The values that torch's lazy bits stand for: ``x.conj()`` and its imaginary part share the bytes of x."""

    def blocks() -> Iterator[Any]:
        for block in chunks(stored):
            block = np.conj(block) if view.conjugated and block.dtype.kind == "c" else block
            if view.negated:
                signs = stored.dtype == "bfloat16"  # handled as uint16
                block = block ^ block.dtype.type(0x8000) if signs else np.negative(block)
            yield block

    return replace(stored, pieces=(), inline=blocks, swapped=False)


def _array(name: str, array: Array, found: Contents) -> Tensor:
    dtype = array.dtype.name if array.dtype else "object"
    why = ""
    if dtype not in SIZES:
        why = "an array of objects: not read" if dtype in ("object", "O8", "O") else f"values of type {dtype[:20]} are not read"
    elif math.prod(array.shape) * SIZES[dtype] != len(array.data):
        why = "its bytes do not fit its shape"
    if why:
        return Tensor(name, dtype, array.shape, found.path.name, why=why)
    assert array.dtype is not None
    raw, data = raw_type(dtype), array.data
    swapped = array.dtype.swapped

    layout = array.shape[::-1] if array.fortran and len(array.shape) > 1 else ()

    def blocks() -> Iterator[Any]:
        whole = np.frombuffer(data, raw)
        for i in range(0, len(whole), 1 << 17):
            block = whole[i : i + (1 << 17)]
            yield block.byteswap() if swapped else block

    return Tensor(name, dtype, array.shape, found.path.name, inline=blocks, layout=layout)
