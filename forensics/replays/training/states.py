"""States of a training: copied, kept in memory or on disk, and put back exactly."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from typing import Any

from .tensors_in import flat
from .wrapped import local


def copied(x: Any, seen: Any = None) -> Any:
    """Tensors cloned (one that stands in two places once), containers rebuilt, everything else shared. `seen`: id -> clone so far."""
    import torch

    seen = {} if seen is None else seen
    if isinstance(x, torch.Tensor):
        if id(x) not in seen:
            seen[id(x)] = x.detach().clone()
        return seen[id(x)]
    if isinstance(x, dict):
        return {k: copied(v, seen) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(copied(v, seen) for v in x) if type(x) in (list, tuple) else x
    return x


def size(x: Any) -> int:
    """Bytes of the tensors in it."""
    return sum(t.numel() * t.element_size() for t in map(local, flat(x)))


def generators(numpy: bool = True) -> dict[str, Any]:
    """The states of all random number generators; without NumPy's, which models hardly draw from, it takes a tenth of the time."""
    import torch

    found: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found["cuda"] = torch.cuda.get_rng_state_all()
    if numpy and "numpy" in sys.modules:
        found["numpy"] = sys.modules["numpy"].random.get_state()
    return found


def set_generators(saved: Any) -> list[str]:
    """Puts back the states of random number generators; the names of those that were understood."""
    import torch

    if isinstance(saved, torch.Tensor):
        saved = {"torch": saved}
    if not isinstance(saved, dict):
        return []
    done = []
    for key, value in saved.items():
        try:
            if key in ("torch", "cpu", "torch_rng_state", "rng_state", "torch_manual_seed"):
                torch.set_rng_state(value.cpu().to(torch.uint8))
                done.append("torch")
            elif key in ("cuda", "cuda_rng_state", "torch_cuda_manual_seed") and torch.cuda.is_available():
                states = value if isinstance(value, list) else [value]
                torch.cuda.set_rng_state_all([s.cpu() for s in states[: torch.cuda.device_count()]])
                done.append("cuda")
            elif key in ("python", "random", "random_state"):
                random.setstate((value[0], tuple(value[1]), value[2]))
                done.append("python")
            elif key in ("numpy", "numpy_random_seed") and "numpy" in sys.modules:
                sys.modules["numpy"].random.set_state(value)
                done.append("numpy")
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


def count_of(optimizer: Any, scheduler: Any) -> int | None:
    """How many steps optimizer or schedule say they have done."""
    counts = [s["step"] for s in optimizer.state.values() if isinstance(s, dict) and "step" in s]
    if counts:
        return int(max(float(c) for c in counts))
    last = getattr(scheduler, "last_epoch", None)
    return int(last) if isinstance(last, int) and last > 0 else None
