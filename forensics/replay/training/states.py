"""States of a training: copied, kept in memory or on disk, and put back exactly; and checkpoints of the common layouts."""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import tempfile
from typing import Any

from .tensors_in import flat

DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
WEIGHTS = ("model", "model_state_dict", "state_dict", "module", "net", "weights")
OPTIMIZER = ("optimizer", "optimizer_state_dict", "optim", "opt", "optimizer_states")
SCHEDULER = ("scheduler", "scheduler_state_dict", "lr_scheduler", "lr_schedulers", "sched")
SCALER = ("scaler", "grad_scaler", "scaler_state_dict", "loss_scaler")
RANDOM = ("rng", "rng_state", "rng_states", "torch_rng_state")
STEP = ("step", "global_step", "iteration", "iter_num", "num_updates", "steps", "iter")


class Unusable(Exception):
    """A checkpoint that cannot be loaded, in one sentence."""


def copied(x: Any) -> Any:
    """Tensors cloned, containers rebuilt, everything else shared."""
    import torch

    if isinstance(x, torch.Tensor):
        return x.detach().clone()
    if isinstance(x, dict):
        return {k: copied(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(copied(v) for v in x) if type(x) in (list, tuple) else x
    return x


def size(x: Any) -> int:
    """Bytes of the tensors in it."""
    return sum(t.numel() * t.element_size() for t in flat(x))


def generators(numpy: bool = True) -> dict[str, Any]:
    """The states of all random number generators; without NumPy's, which models hardly draw from, it takes a tenth of the time."""
    import torch

    found: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found["cuda"] = torch.cuda.get_rng_state_all()
    if numpy and "numpy" in sys.modules:
        found["numpy"] = sys.modules["numpy"].random.get_state()
    return found


def set_generators(saved: Any) -> bool:
    """Puts back the states of random number generators; False where nothing of it was understood."""
    import torch

    if isinstance(saved, torch.Tensor):
        saved = {"torch": saved}
    if not isinstance(saved, dict):
        return False
    done = False
    for key, value in saved.items():
        try:
            if key in ("torch", "cpu", "torch_rng_state", "rng_state"):
                torch.set_rng_state(value.cpu().to(torch.uint8))
            elif key in ("cuda", "cuda_rng_state") and torch.cuda.is_available():
                states = value if isinstance(value, list) else [value]
                torch.cuda.set_rng_state_all([s.cpu() for s in states[: torch.cuda.device_count()]])
            elif key in ("python", "random"):
                random.setstate((value[0], tuple(value[1]), value[2]))
            elif key == "numpy" and "numpy" in sys.modules:
                sys.modules["numpy"].random.set_state(value)
            else:
                continue
            done = True
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError):
            continue
    return done


class Store:
    """States by name: in memory up to `limit` bytes, the oldest on disk beyond that. Deleted with the process."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: dict[str, Any] = {}
        self.folder: Any = None

    def put(self, name: str, state: Any) -> None:
        import torch

        self.drop(name)
        self.kept[name] = state
        while len(self.kept) > 1 and sum(size(s) for s in self.kept.values() if not isinstance(s, str)) > self.limit:
            oldest = next((k for k, s in self.kept.items() if not isinstance(s, str)), None)
            if oldest is None or oldest == name:
                break
            self.folder = self.folder or tempfile.TemporaryDirectory(prefix="forensics-replay-")
            path = os.path.join(self.folder.name, f"{abs(hash(oldest))}.pt")
            torch.save(self.kept[oldest], path)
            self.kept[oldest] = path

    def get(self, name: str) -> Any:
        import torch

        state = self.kept[name]
        return torch.load(state, weights_only=False) if isinstance(state, str) else state  # a file of our own

    def drop(self, name: str) -> None:
        state = self.kept.pop(name, None)
        if isinstance(state, str):
            os.unlink(state)


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


def load_checkpoint(path: str, model: Any, optimizer: Any, scheduler: Any, scaler: Any = None) -> tuple[int | None, list[str]]:
    """Puts a checkpoint into model, optimizer, scheduler and loss scaler; returns the step it states and the parts that were found."""
    parts = _folder(path) if os.path.isdir(path) else read_file(path)
    if not isinstance(parts, dict):
        raise Unusable(f"{os.path.basename(path)} holds no dictionary")
    weights = next((parts[k] for k in WEIGHTS if isinstance(parts.get(k), dict)), None)
    if weights is None and all(hasattr(v, "shape") for v in parts.values()):
        weights = parts
    if weights is None:
        keys = ", ".join(map(str, list(parts)[:8]))
        raise Unusable(f"no weights were found in {os.path.basename(path)} (keys: {keys}); give the adapter a load()")
    model.load_state_dict(_named(weights, model.state_dict()))
    done = ["weights"]
    state = next((parts[k] for k in OPTIMIZER if parts.get(k)), None)
    state = state[0] if isinstance(state, list) else state
    if isinstance(state, dict) and "param_groups" in state:
        optimizer.load_state_dict(state)
        done.append("optimizer" if state.get("state") else "empty optimizer")
    state = next((parts[k] for k in SCHEDULER if parts.get(k)), None)
    state = state[0] if isinstance(state, list) else state
    if isinstance(state, dict) and scheduler is not None:
        lambdas = {"lr_lambdas": [None] * len(optimizer.param_groups)} if hasattr(scheduler, "lr_lambdas") else {}
        scheduler.load_state_dict({**lambdas, **state})
        done.append("scheduler")
    state = next((parts[k] for k in SCALER if isinstance(parts.get(k), dict) and "scale" in parts[k]), None)
    if state is not None and scaler is not None and scaler.is_enabled():
        scaler.load_state_dict(state)
        done.append("loss scale")
    rng = next((parts[k] for k in RANDOM if k in parts), None)
    if rng is not None and set_generators(rng):
        done.append("random numbers")
    stated = next((int(parts[k]) for k in STEP if isinstance(parts.get(k), (int, float))), None)
    return stated, done


def _folder(path: str) -> dict[str, Any]:
    """A Hugging Face checkpoint folder, or any folder with weights and an optimizer under usual names."""
    names = sorted(os.listdir(path))
    parts: dict[str, Any] = {"model": {}}
    for n in names:
        if n.endswith((".safetensors", ".bin", ".pt", ".pth")) and n.startswith(("model", "pytorch_model", "weights")):
            parts["model"].update(read_file(os.path.join(path, n)))
    usual = (
        ("optimizer", "optimizer.pt"),
        ("scheduler", "scheduler.pt"),
        ("scaler", "scaler.pt"),
        ("rng", "rng_state.pth"),
        ("rng", "rng_state_0.pth"),
    )
    for key, wanted in usual:
        if wanted in names and key not in parts:
            try:
                parts[key] = read_file(os.path.join(path, wanted))
            except Unusable:
                if key != "rng":
                    raise
    if "trainer_state.json" in names:
        with open(os.path.join(path, "trainer_state.json"), encoding="utf-8") as f:
            parts["global_step"] = json.load(f).get("global_step")
    if not parts["model"]:
        raise Unusable(f"no weights were found in {path}")
    return parts


def _named(weights: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The weights under the model's own names, whatever wrapper the save has put before them; tied weights filled in."""
    for prefix in ("", "module.", "_orig_mod.", "model.", "module._orig_mod.", "net."):
        cut = {k[len(prefix) :] if k.startswith(prefix) else k: v for k, v in weights.items()}
        missing = set(wanted) - set(cut)
        if not missing:
            return {k: cut[k] for k in wanted}
        shared = {k: next((o for o in wanted if o in cut and wanted[o].data_ptr() == wanted[k].data_ptr()), None) for k in missing}
        if all(shared.values()):
            return {k: cut[shared[k]] if k in missing else cut[k] for k in wanted}  # type: ignore[index]
    return weights


def count_of(optimizer: Any, scheduler: Any) -> int | None:
    """How many steps optimizer or schedule say they have done."""
    counts = [s["step"] for s in optimizer.state.values() if isinstance(s, dict) and "step" in s]
    if counts:
        return int(max(float(c) for c in counts))
    last = getattr(scheduler, "last_epoch", None)
    return int(last) if isinstance(last, int) and last > 0 else None
