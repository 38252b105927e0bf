"""Checkpoints of the common layouts, put into a model, its optimizer, schedule and loss scale; nothing in them is run."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, NamedTuple

from . import dcp_folder
from .optimizer_state import fitted
from .shares import RANK
from .states import set_generators, size
from .wrapped import like, local

DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
WEIGHTS = ("model", "model_state_dict", "state_dict", "module", "net", "weights")
OPTIMIZER = ("optimizer", "optimizer_state_dict", "optim", "opt", "optimizer_states")
SCHEDULER = ("scheduler", "scheduler_state_dict", "lr_scheduler", "lr_schedulers", "sched")
SCALER = ("scaler", "grad_scaler", "scaler_state_dict", "loss_scaler", "MixedPrecision")
RANDOM = ("rng", "rng_state", "rng_states", "torch_rng_state")
NO_STATE = ("callbacks", "loops", "hyper_parameters")  # of Lightning: nothing that a step of training reads
OVER = "(over)"  # under this name: whether the weights go over those of a base model
REFUSED = "(refused)"  # under this name: of a folder of torch.distributed.checkpoint the values that were not read
STEP = ("step", "global_step", "iteration", "iter_num", "num_updates", "steps", "iter")


class Unusable(Exception):
    """A checkpoint that cannot be loaded, in one sentence."""


def read_safetensors(path: str) -> dict[str, Any]:
    """Format: 8 bytes little-endian header length, a JSON header, then the tensors' bytes."""
    import torch

    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        body = bytearray(f.read())
    found = {}
    for name, t in head.items():
        if name != "__metadata__":
            dtype = getattr(torch, DTYPES[t["dtype"]])
            start, end = t["data_offsets"]
            flat = torch.frombuffer(body[start:end], dtype=dtype) if end > start else torch.empty(0, dtype=dtype)
            found[name] = flat.reshape(t["shape"]).clone()
    return found


def _arrays() -> list[Any]:
    """What saved states of NumPy's generator are made of: plain arrays, which run nothing."""
    try:
        import numpy
    except ImportError:
        return []
    core = numpy._core if hasattr(numpy, "_core") else numpy.core
    return [core.multiarray._reconstruct, numpy.ndarray, numpy.dtype, type(numpy.dtype(numpy.uint32))]


def read_file(path: str) -> Any:
    """A torch file without running anything in it (`weights_only`), or a safetensors file."""
    import torch

    if not os.path.exists(path):
        raise Unusable(f"the checkpoint {path} is gone")
    if path.endswith(".safetensors"):
        return read_safetensors(path)
    try:
        with torch.serialization.safe_globals(_arrays()):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        why = str(e).splitlines()[0][:160]
        raise Unusable(f"{os.path.basename(path)} cannot be loaded without running code in it ({why}); give the adapter a load()") from e


class Loaded(NamedTuple):
    """What became of a checkpoint: the step it states, the parts that were put in, and those that it holds beside them."""

    step: Any  # int or None
    parts: list[str]
    left: list[str]


def load_checkpoint(path: str, model: Any, optimizer: Any, scheduler: Any, scaler: Any = None) -> Loaded:
    """Puts a checkpoint into model, optimizer, scheduler and loss scaler."""
    parts = _folder(path) if os.path.isdir(path) else read_file(path)
    if not isinstance(parts, dict):
        raise Unusable(f"{os.path.basename(path)} holds no dictionary")
    refused = parts.pop(REFUSED, [])
    if all(hasattr(v, "shape") for v in parts.values()):
        parts = {"model": parts}
    weights = _part(parts, WEIGHTS)
    if weights is None:
        keys = ", ".join(map(str, list(parts)[:8]))
        raise Unusable(f"no weights were found in {os.path.basename(path)} (keys: {keys}); give the adapter a load()")
    ours = model.state_dict()
    saved, over = parts.pop(weights[0]), parts.pop(OVER, False)
    saved = _over(saved, ours) if over else _named(saved, ours)
    model.load_state_dict({k: like(v, ours[k]) if k in ours else v for k, v in saved.items()})
    done = ["weights of a PEFT adapter" if over else "weights"]
    for names, put, into in (
        (OPTIMIZER, _put_optimizer, (optimizer, model)),
        (SCHEDULER, _put_schedule, (scheduler, optimizer)),
        (SCALER, _put_scale, (scaler,)),
    ):
        found = _part(parts, names)
        if found is not None and (said := put(found[1], *into)):
            done.append(said)
            del parts[found[0]]
    rng = next((k for k in RANDOM if k in parts), None)
    if rng is not None and set_generators(parts[rng]):
        done.append("random numbers")
        del parts[rng]
    stated = next((int(parts[k]) for k in STEP if isinstance(parts.get(k), (int, float))), None)
    left = [str(k) for k, v in parts.items() if k not in NO_STATE and (size(v) or (k in (*SCHEDULER, *SCALER) and v))]
    return Loaded(stated, done, [*left, *(f"{name} (it asks for code to be run)" for name in refused)])


def _part(parts: dict[str, Any], names: tuple[str, ...]) -> Any:
    """(key, state) of the first part under any of these names that holds something, else None; Lightning keeps a list of one."""
    for k in names:
        value = parts.get(k)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, dict) and value:
            parts[k] = value
            return k, value
    return None


def _put_optimizer(state: Any, optimizer: Any, model: Any) -> str:
    if "param_groups" not in state:
        return ""
    optimizer.load_state_dict(fitted(state, optimizer, model))
    return "optimizer" if state.get("state") else "empty optimizer"


def _put_schedule(state: Any, scheduler: Any, optimizer: Any) -> str:
    if scheduler is None:
        return ""
    lambdas = {"lr_lambdas": [None] * len(optimizer.param_groups)} if hasattr(scheduler, "lr_lambdas") else {}
    scheduler.load_state_dict({**lambdas, **state})
    return "scheduler"


def _put_scale(state: Any, scaler: Any) -> str:
    if "scale" not in state or scaler is None or not scaler.is_enabled():
        return ""
    scaler.load_state_dict(state)
    return "loss scale"


USUAL = (  # of Hugging Face Trainer, and of accelerate's save_state
    ("optimizer", "optimizer.pt"), ("optimizer", "optimizer.bin"), ("scheduler", "scheduler.pt"), ("scheduler", "scheduler.bin"),
    ("scaler", "scaler.pt"), ("rng", "rng_state.pth"), ("rng", f"rng_state_{RANK}.pth"), ("rng", f"random_states_{RANK}.pkl"),
)  # fmt: skip


def _folder(path: str) -> dict[str, Any]:
    """A Hugging Face checkpoint folder, one of accelerate, or any folder with weights and an optimizer under usual names."""
    names = sorted(os.listdir(path))
    if ".metadata" in names:
        return _sharded(path)
    parts = _weights(path, names)
    for key, wanted in USUAL:
        if wanted in names and key not in parts:
            try:
                parts[key] = read_file(os.path.join(path, wanted))
            except Unusable:
                if key != "rng":
                    raise
    for n in names:
        if n.startswith("custom_checkpoint_"):  # what was registered with accelerate: an average of weights, a hidden state
            parts[n] = read_file(os.path.join(path, n))
    if "trainer_state.json" in names:
        with open(os.path.join(path, "trainer_state.json"), encoding="utf-8") as f:
            parts["global_step"] = json.load(f).get("global_step")
    if not parts["model"]:
        raise Unusable(f"no weights were found in {path}")
    return parts


def _weights(path: str, names: list[str]) -> dict[str, Any]:
    """Of one file or several; those of a PEFT adapter are marked."""
    if "adapter_config.json" in names and "adapter_model.safetensors" in names:
        return {"model": read_file(os.path.join(path, "adapter_model.safetensors")), OVER: True}
    found: dict[str, Any] = {}
    for n in names:
        if n.endswith((".safetensors", ".bin", ".pt", ".pth")) and n.startswith(("model", "pytorch_model", "weights")):
            found.update(read_file(os.path.join(path, n)))
    return {"model": found}


def _sharded(path: str) -> dict[str, Any]:
    """A folder of torch.distributed.checkpoint; what was saved as one object ("app") is what that holds."""
    import torch

    try:
        with torch.serialization.safe_globals(_arrays()):
            parts, refused = dcp_folder.read(path)
    except BaseException as e:  # torch's CheckpointException is none of Exception
        if isinstance(e, (KeyboardInterrupt, SystemExit)):
            raise
        raise Unusable(f"{os.path.basename(path)} cannot be loaded ({str(e).splitlines()[0][:160]}); give the adapter a load()") from e
    only = next(iter(parts.values()), None)
    parts = only if len(parts) == 1 and isinstance(only, dict) and _part(only, WEIGHTS) else parts
    return {**parts, **({REFUSED: refused} if refused else {})}


def _over(adapter: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """The model's own weights with those of a PEFT adapter in their places, which in the file lack the adapter's name."""
    known = {k.replace(".modules_to_save.default.", ".").replace(".default.", "."): k for k in ours if ".default." in k}
    if lost := [k for k in adapter if k not in known]:
        raise Unusable(f"the model has no place for {lost[0]} of the adapter; give the adapter of the replay a load()")
    return {**ours, **{known[k]: v for k, v in adapter.items()}}


def _named(weights: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The weights under the model's own names, whatever wrapper the save has put before them; tied weights filled in."""
    for prefix in ("", "module.", "_orig_mod.", "model.", "module._orig_mod.", "net."):
        cut = {k[len(prefix) :] if k.startswith(prefix) else k: v for k, v in weights.items()}
        missing = set(wanted) - set(cut)
        if not missing:
            return {k: cut[k] for k in wanted}
        shared = {
            k: next((o for o in wanted if o in cut and local(wanted[o]).data_ptr() == local(wanted[k]).data_ptr()), None) for k in missing
        }
        if all(shared.values()):
            return {k: cut[shared[k]] if k in missing else cut[k] for k in wanted}  # type: ignore[index]
    return weights
