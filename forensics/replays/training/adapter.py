"""The user's file, and what it does not define filled in: the contract of a replay adapter.

Needed: build(), batch(step), loss(model, batch). Optional: train_step, load, checkpoints, select, sample_ids, CLIP, PRECISION,
MICRO_BATCH, LAST_STEP, extra_state, set_extra_state. `Adapter` holds the model, optimizer and schedule of one training, on one device.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
from typing import Any

from . import shares
from .beside import Beside
from .named_file import Named
from .states import generators, set_generators
from .tensors_in import flat, mapped
from .wrapped import scalar

HALVES = {"bf16": "bfloat16", "fp16": "float16"}


class Wrong(Exception):
    """The adapter does not do what the contract asks, in one sentence."""


def import_file(path: str) -> Any:
    """The adapter as a module, which can import what lies beside it (`beside`), as it can when it is run as a script."""
    beside = Beside(os.path.dirname(os.path.abspath(path)))
    sys.meta_path.insert(0, beside)
    spec = importlib.util.spec_from_file_location("replay_adapter", path)
    if spec is None or spec.loader is None:
        raise Wrong(f"the adapter {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["replay_adapter"] = module
    module.__beside__ = beside.found  # type: ignore[attr-defined]
    module.named_file = Named(beside.found)  # type: ignore[attr-defined]  # for the ready adapters
    argv, sys.argv = sys.argv, [path]
    try:
        spec.loader.exec_module(module)
    finally:
        sys.argv = argv
    for name in ("build", "batch", "loss"):
        if not callable(getattr(module, name, None)) and not (name == "batch" and callable(getattr(module, "dataset", None))):
            raise Wrong(f"the adapter defines no {name}(); `forensics replay --init` writes a template")
    return module


def moved(x: Any, device: Any, floats: Any = None) -> Any:
    """Tensors of a nested batch on a device; `floats` also changes the dtype of floating-point ones."""

    def change(t: Any) -> Any:
        t = t.to(device)
        return t.to(floats) if floats is not None and t.is_floating_point() else t

    return mapped(x, change)


def rows_of(batch: Any) -> int:
    """The number of samples: the length of dimension 0 that most tensors share."""
    lengths = [len(t) for t in flat(batch) if t.dim()]
    return max(set(lengths), key=lambda n: (lengths.count(n), n)) if lengths else 0


def take(batch: Any, indices: Any, length: int) -> Any:
    """The default `select`: dimension 0 of every tensor of the batch's length."""
    import torch

    if isinstance(batch, torch.Tensor):
        return batch[torch.as_tensor(indices, device=batch.device)] if batch.dim() and len(batch) == length else batch
    if isinstance(batch, dict):
        return {k: take(v, indices, length) for k, v in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(take(v, indices, length) for v in batch))
    if isinstance(batch, list) and len(batch) == length and not flat(batch):
        return [batch[i] for i in indices]
    if isinstance(batch, (list, tuple)):
        return type(batch)(take(v, indices, length) for v in batch)
    return batch


class Adapter:
    """One training as the user's file builds it, on one device."""

    def __init__(self, path: str, device: str) -> None:
        import torch

        self.module = import_file(path)
        self.device = torch.device(device)
        built = self.module.build()
        if not isinstance(built, (tuple, list)) or len(built) not in (2, 3):
            raise Wrong(f"build() must return (model, optimizer) or (model, optimizer, scheduler), it returned {type(built).__name__}")
        self.model, self.optimizer = built[0], built[1]
        self.scheduler = built[2] if len(built) == 3 else None
        if not isinstance(self.model, torch.nn.Module) or not isinstance(self.optimizer, torch.optim.Optimizer):
            raise Wrong("build() must return a torch.nn.Module and a torch.optim.Optimizer")
        self.model.to(self.device)
        precision = str(getattr(self.module, "PRECISION", "fp32")).lower()
        self.half = getattr(torch, HALVES[precision]) if precision in HALVES else None
        self.clip = getattr(self.module, "CLIP", None)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "fp16" and not self.has("train_step"))
        self.training = self.model.training
        self.now = 0  # the step whose batch is trained on
        self.numbered = self.has("train_step") and "step" in inspect.signature(self.module.train_step).parameters
        self.ambient = False  # whether the adapter's own tensors must be made on the device
        self.batches: dict[int, Any] = {}
        self.order: dict[int, list[Any]] = {}  # samples by step, where the adapter gives its data set and no batches
        self.data: Any = None

    def has(self, name: str) -> bool:
        return callable(getattr(self.module, name, None))

    def batch(self, step: int) -> Any:
        """The batch of a step, on the device; the last ones are kept. Random numbers that making it takes are given back, so that
        the step draws the same ones whether its batch was kept or not."""
        if step not in self.batches:
            drawn = generators(numpy=False)
            found = self.made(step)
            set_generators(drawn)
            if not flat(found):
                raise Wrong(f"batch({step}) holds no tensor")
            while len(self.batches) >= 16:
                self.batches.pop(next(iter(self.batches)))
            self.batches[step] = moved(found, self.device)
        return self.batches[step]

    def made(self, step: int) -> Any:
        """The batch of a step on the CPU: the adapter's, or its samples in the order of the run, collated as a DataLoader does."""
        if self.has("batch"):
            return self.module.batch(step)
        from torch.utils.data import default_collate

        if step not in self.order:
            raise Wrong(f"nothing of the run says which samples step {step} had")
        self.data = self.module.dataset() if self.data is None else self.data
        rows = [self.data[i] for i in shares.share(self.order[step])]
        return self.module.collate(rows) if self.has("collate") else default_collate(rows)

    def part(self, step: int, rows: Any = None) -> Any:
        """The batch of a step to train on, or some rows of it. A rank of which none is left takes an ordinary batch: all ranks wait for each other."""
        self.now = step
        batch = self.batch(step)
        if rows is None:
            return batch
        mine = shares.own_rows(rows, rows_of(batch))
        return self.batch(max(step - 1, 0)) if mine is None else self.select(batch, mine)

    def select(self, batch: Any, indices: list[int]) -> Any:
        if self.has("select"):
            return self.module.select(batch, indices)
        return take(batch, indices, rows_of(batch))

    def ids(self, step: int) -> list[Any] | None:
        """Names of the samples of a batch: sample_ids(), or batch["ids"]."""
        if self.has("sample_ids"):
            found = self.module.sample_ids(step)
        elif step in self.order:
            found = shares.share(self.order[step])
        else:
            batch = self.batch(step)
            found = batch.get("ids") if isinstance(batch, dict) else None
        if found is None:
            return None
        values = found.flatten().tolist() if hasattr(found, "tolist") else list(found)
        return [v.item() if hasattr(v, "item") else v for v in values]

    @contextlib.contextmanager
    def on_device(self) -> Any:
        """For adapters that make tensors of their own (positions, masks) without naming a device."""
        if self.ambient:
            with self.device:
                yield
        else:
            yield

    def cast(self) -> Any:
        """The autocast of PRECISION."""
        import torch

        return torch.autocast(self.device.type, self.half) if self.half is not None else contextlib.nullcontext()

    def loss(self, batch: Any, rows: bool = False) -> Any:
        """The scalar loss, or with `rows` one loss a sample; raises Wrong for another shape."""
        with self.on_device(), self.cast():
            found = self.module.loss(self.model, batch, reduction="none") if rows else self.module.loss(self.model, batch)
        shape = tuple(getattr(found, "shape", (None,)))
        if rows and shape != (rows_of(batch),):
            raise Wrong(f"loss(reduction='none') must return one loss a sample, shape ({rows_of(batch)},); it returned shape {shape}")
        if not rows and shape not in ((), (1,)):
            raise Wrong(f"loss() must return a scalar; it returned shape {shape}")
        return found if rows else found.reshape(())

    def pieces(self, batch: Any) -> list[Any]:
        """The micro-batches of a step, of MICRO_BATCH rows each; the whole batch where that is not given."""
        size, n = getattr(self.module, "MICRO_BATCH", None), rows_of(batch)
        if not size or n <= size:
            return [batch]
        return [self.select(batch, list(range(i, min(i + size, n)))) for i in range(0, n, size)]

    def step(self, batch: Any) -> tuple[float, float | None]:
        """One optimizer step, theirs or the default; returns loss (of the last micro-batch, which is what scripts log) and gradient norm
        (None where theirs does not say)."""
        import torch

        if self.has("train_step"):
            with self.on_device():
                named = {"step": self.now} if self.numbered else {}
                found = self.module.train_step(self.model, self.optimizer, self.scheduler, batch, **named)
            pair = found if isinstance(found, (tuple, list)) else (found, None)
            try:
                return float(pair[0]), None if len(pair) < 2 or pair[1] is None else float(pair[1])
            except (TypeError, ValueError, RuntimeError) as e:
                raise Wrong(f"train_step() must return the loss or (loss, grad_norm): {e}") from e
        self.optimizer.zero_grad(set_to_none=True)
        pieces = self.pieces(batch)
        for piece in pieces:
            loss = self.loss(piece)
            self.scaler.scale(loss / len(pieces)).backward()
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), float("inf") if self.clip is None else self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scheduler is not None:
            self.scheduler.step()
        return float(loss.detach()), scalar(norm)
