"""The names a checkpoint may use, and the plain value each stands for. Nothing here imports or calls what a file names.

Three kinds: calls with a meaning (``torch._utils._rebuild_tensor_v2`` gives a View), names that mean themselves
(``torch.float32``, ``torch.FloatStorage``), and classes of the usual libraries, which stay Opaque. A name outside is
refused: it is reported with its place, and reading goes on around it (parsers.checkpoints.danger says how bad it is). The list is that of
``torch.load(weights_only=True)`` (torch/_weights_only_unpickler.py) plus what torch, numpy, Hugging Face, Lightning,
Megatron, DeepSpeed and torch.distributed.checkpoint were seen to write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from parsers.checkpoints.danger import dangerous, modern
from parsers.checkpoints.pickles import Name, Opaque, key, label
from parsers.lazy_regex import lazy_re


@dataclass(eq=False)
class Storage:
    """A block of values of one type; ``home`` is the reader that knows where block ``key`` lies."""

    dtype: str
    key: str
    count: int
    home: Any = None


@dataclass(eq=False)
class View:
    """A torch tensor: a shape over a storage."""

    storage: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = ""  # where it differs from the storage's
    negated: bool = False  # torch's lazy bits: the values are those of the storage with the other sign, or conjugated
    conjugated: bool = False


@dataclass(eq=False)
class Dtype:
    name: str
    swapped: bool = False


@dataclass(eq=False)
class Array:
    """A numpy array with its bytes."""

    dtype: Dtype | None = None
    shape: tuple[int, ...] = ()
    data: bytes | memoryview = b""
    fortran: bool = False


class Size(tuple[int, ...]):
    """torch.Size: one value, not a container."""


META = "meta"  # torch's device of tensors without values
STORAGES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
            "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
            "QInt8": "int8", "QUInt8": "uint8", "QInt32": "int32", "Untyped": "uint8"}  # fmt: skip
DTYPES = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32", "long": "int64",
          "cfloat": "complex64", "cdouble": "complex128", "qint8": "int8", "quint8": "uint8", "qint32": "int32"}  # fmt: skip
_DTYPE = lazy_re(r"torch\.((?:b?float|int|uint|complex)\d+(?:_e\dm\d\w*)?|bool|" + "|".join(DTYPES) + ")")
_STORAGE = lazy_re(r"torch(?:\.cuda|\.storage)?\.(\w+?)Storage")
_NUMPY_CODES = {"f2": "float16", "f4": "float32", "f8": "float64", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
                "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "b1": "bool", "c8": "complex64", "c16": "complex128"}  # fmt: skip

_PACKAGES = tuple(f"{p}." for p in ("torch", "transformers", "lightning", "lightning_fabric", "pytorch_lightning", "lightning_utilities", "accelerate", "omegaconf",
             "megatron", "deepspeed", "fairseq", "peft", "trl", "torchmetrics", "composer", "nemo", "hydra", "timm", "datasets", "diffusers",
             "numpy.random", "sentence_transformers", "ultralytics", "mmengine", "apex", "bitsandbytes", "torchao", "ml_collections",
             "easydict", "yacs", "ray", "wandb", "tokenizers", "stable_baselines3", "gymnasium", "gym", "pandas.core", "pyarrow.lib"))  # fmt: skip
_PLAIN_CLASSES = {
    "argparse.Namespace", "types.SimpleNamespace", "collections.namedtuple", "pathlib.PosixPath", "pathlib.WindowsPath", "pathlib.PurePosixPath",
    "pathlib.Path", "pathlib.PureWindowsPath", "pathlib._local.PosixPath", "pathlib._local.WindowsPath", "datetime.datetime", "datetime.timedelta", "datetime.date",
    "datetime.timezone", "uuid.UUID", "decimal.Decimal", "fractions.Fraction", "random.Random", "numpy.ndarray", "enum.Enum",
    "numpy.random._pickle.__randomstate_ctor", "numpy.random._pickle.__generator_ctor", "numpy.random._pickle.__bit_generator_ctor",
    "torch._utils._rebuild_wrapper_subclass", "torch.strided", "torch.sparse_coo", "torch.contiguous_format",
    "torch.per_tensor_affine", "torch.per_channel_affine", "torch.serialization._get_layout", "torch.storage._load_from_bytes", "torch._C._disabled_torch_function_impl",
    "builtins.int", "builtins.float", "builtins.str", "builtins.bool", "builtins.object", "builtins.NoneType", "builtins.slice", "builtins.range", "builtins.list", "builtins.dict",
    "ml_dtypes.bfloat16",
}  # fmt: skip


def allowed(name: Name) -> bool:
    """True for names that are known data. A function of a usual library (lower case) is as foreign as any other."""
    text = modern(name.module, name.name)
    if text in _CALLS or text in _PLAIN_CLASSES or _DTYPE.fullmatch(text) or _STORAGE.fullmatch(text):
        return True
    usual = text.startswith(_PACKAGES) and name.name.rpartition(".")[2].lstrip("_")[:1].isupper()
    return usual and not dangerous(text)


def build(name: Name, args: tuple[Any, ...]) -> Any:
    """The value of ``name(*args)``; an Opaque where it has no plain value. Errors of wrong arguments are the caller's."""
    text = modern(name.module, name.name)
    return _CALLS[text](*args) if text in _CALLS else Opaque(text, args)


def set_state(target: Any, state: Any) -> Any:
    """What BUILD does to a value, as far as it is data."""
    if isinstance(target, Array) and isinstance(state, tuple) and len(state) >= 5 and isinstance(state[2], Dtype):
        data = state[4].encode("latin-1") if isinstance(state[4], str) else state[4]
        if isinstance(data, (bytes, memoryview)):
            target.dtype, target.shape, target.data, target.fortran = state[2], _shape(state[1]), data, bool(state[3])
            return target
    if isinstance(target, Dtype) and isinstance(state, tuple) and len(state) > 1:
        target.swapped = state[1] == ">"
    elif isinstance(target, Opaque):
        target.state = state
    return target


def storage_type(name: Any) -> str:
    """'float32' for torch.FloatStorage or torch.float32; '' for what is neither."""
    return _type_of(label(name))


@lru_cache(1024)
def _type_of(text: str) -> str:
    if found := _STORAGE.fullmatch(text):
        return STORAGES.get(found[1], "uint8")
    found = _DTYPE.fullmatch(text)
    return DTYPES.get(found[1], found[1]) if found else ""


def _shape(x: Any) -> tuple[int, ...]:
    if not isinstance(x, (tuple, list)) or len(x) > 64 or not all(type(n) is int and n >= 0 for n in x):
        raise ValueError("not a shape")
    return tuple(x)


def _view(storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = None, hooks: Any = None, *bits: Any) -> View:
    if not isinstance(storage, Storage) or type(offset) is not int or offset < 0:
        raise ValueError("not a storage")
    found = View(storage, offset, _shape(shape), _shape(strides))
    if len(found.shape) != len(found.strides):
        raise ValueError("shape and strides differ in length")
    if bits and isinstance(bits[0], dict):
        found.negated, found.conjugated = bits[0].get("neg") is True, bits[0].get("conj") is True
    return found


def _view_v3(storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any, dtype: Any, *bits: Any) -> View:
    found = _view(storage, offset, shape, strides, requires_grad, hooks, *bits)
    found.dtype = storage_type(dtype)
    return found


def _meta(dtype: Any, shape: Any, *_: Any) -> View:
    """Of a model that was never given values: type and shape alone."""
    sizes = _shape(shape)
    return View(Storage(storage_type(dtype) or "float32", META, 0), 0, sizes, (0,) * len(sizes))


def _typed(function: Any, cls: Any, args: Any, *_: Any) -> Any:
    return build(function, tuple(args)) if isinstance(function, Name) else Opaque(label(cls), (args,))


def _dict(pairs: Any = (), *_: Any) -> dict[Any, Any]:
    items = pairs.items() if isinstance(pairs, dict) else pairs
    return {key(k): v for k, v in items}


def _list(values: Any = (), *_: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple, set, frozenset, dict)) else []


def _encode(text: Any, *_: Any) -> bytes:
    return bytes(text.encode("latin-1"))


def _bytearray(data: Any = b"", *_: Any) -> bytes:
    return _encode(data) if isinstance(data, str) else bytes(data) if isinstance(data, (bytes, list)) else b""


def _dtype(code: Any, *_: Any) -> Dtype:
    text = str(code) if isinstance(code, (str, Name)) else ""
    return Dtype(_NUMPY_CODES.get(text.lstrip("<>|="), text.rpartition(".")[2]), text.startswith(">"))


def _scalar(dtype: Any, data: Any = b"", *_: Any) -> Any:
    data = data.encode("latin-1") if isinstance(data, str) else data
    return Array(dtype, (), data) if isinstance(dtype, Dtype) and isinstance(data, bytes) else Opaque("numpy scalar")


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any = "C", *_: Any) -> Any:
    known = isinstance(dtype, Dtype) and isinstance(data, (bytes, memoryview))
    return Array(dtype, _shape(shape), data, order == "F") if known else Opaque("numpy array")


def _reconstructor(cls: Any, base: Any = None, state: Any = None) -> Opaque:
    return Opaque(label(cls), (), state)


_PARTS_OF = {
    4: ("indices", "values"),
    5: ("compressed_indices", "plain_indices", "values"),
}  # of sparse tensors: by row and column, compressed


def _sparse(layout: Any, data: Any) -> dict[str, Any]:
    """The parts that hold the values, each a tensor of its own: COO as (indices, values, size, ...), CSR and its kin with two of indices."""
    views = [x for x in data if isinstance(x, View)]
    return dict(zip(_PARTS_OF[len(views) + 2], views, strict=True))


_CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _view, "torch._utils._rebuild_tensor_v2": _view, "torch._utils._rebuild_tensor_v3": _view_v3,
    "torch._utils._rebuild_qtensor": _view, "torch._utils._rebuild_meta_tensor_no_storage": _meta, "torch._utils._rebuild_parameter": lambda data, *_: data,
    "torch._utils._rebuild_parameter_with_state": lambda data, *_: data,
    "torch._utils._rebuild_device_tensor_from_numpy": lambda data, *_: data, "torch._utils._rebuild_device_tensor_from_cpu_tensor": lambda data, *_: data,
    "torch._tensor._rebuild_from_type": _typed, "torch._tensor._rebuild_from_type_v2": _typed,
    "torch.Size": lambda x=(): Size(_shape(tuple(x))), "torch.device": lambda *x: ":".join(map(label, x[:2])),
    "collections.OrderedDict": _dict, "collections.Counter": _dict, "collections.defaultdict": lambda f=None, pairs=(): _dict(pairs),
    "builtins.dict": _dict, "collections.deque": _list, "builtins.list": _list, "builtins.tuple": lambda x=(): tuple(_list(x)),
    "builtins.set": lambda x=(): {key(v) for v in _list(x)}, "builtins.frozenset": lambda x=(): frozenset(key(v) for v in _list(x)),
    "builtins.complex": lambda a=0.0, b=0.0: complex(float(a), float(b)), "builtins.bytearray": _bytearray, "builtins.bytes": _bytearray,
    "_codecs.encode": _encode, "numpy.dtype": _dtype, "numpy._core.multiarray._reconstruct": lambda *_: Array(),
    "numpy._core.multiarray.scalar": _scalar, "numpy._core.numeric._frombuffer": _from_buffer,
    "copyreg._reconstructor": _reconstructor, "torch._utils._rebuild_sparse_tensor": _sparse, "torch._utils._rebuild_sparse_csr_tensor": _sparse,
    **dict.fromkeys(("torch.jit._pickle." + f for f in ("restore_type_tag", "build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")), lambda data, *_: data),
    "torch._utils._rebuild_nested_tensor": lambda buffer, *_: buffer, "functools.partial": lambda f, *x, **_: Opaque(str(f), x),
}  # fmt: skip
