"""Looks at one state with one batch: losses and gradient norms of its samples, the operation that first makes NaN, leaks."""

from __future__ import annotations

import contextlib
from typing import Any

from . import shares
from .adapter import rows_of
from .changes import means_infinity
from .tensors_in import extremes, finite, flat, mapped
from .wrapped import alone, local


def sample_losses(adapter: Any, batch: Any) -> list[float]:
    """One loss a sample: by reduction="none", else sample by sample."""
    import torch

    with torch.no_grad():
        try:
            return [float(x) for x in adapter.loss(batch, rows=True).detach()]
        except (TypeError, NotImplementedError):
            n = rows_of(batch)
            passes = max(shares.gathered(n))  # as many on every rank: sharded weights are gathered in each
            return [float(adapter.loss(adapter.select(batch, [min(i, n - 1)]))) for i in range(passes)][:n]


def gradient_norms(adapter: Any, batch: Any) -> tuple[list[float], str]:
    """Norm of each sample's own gradient, and how it was had: torch.func.vmap, or a loop where that does not work."""
    import torch

    with alone(adapter.model):
        try:
            return _vectorized(adapter, batch), "torch.func"
        except Exception:  # data-dependent control flow, unsupported operations, in-place changes, memory: many ways to fail
            norms = []
            params = [p for p in adapter.model.parameters() if p.requires_grad]
            for i in range(rows_of(batch)):
                loss = adapter.loss(adapter.select(batch, [i]))
                grads = torch.autograd.grad(loss, params, allow_unused=True)
                norms.append(float(sum((g.float() ** 2).sum() for g in grads if g is not None)) ** 0.5)
            return norms, "loop"


def _vectorized(adapter: Any, batch: Any) -> list[float]:
    import torch
    from torch.func import functional_call, grad, vmap

    length = rows_of(batch)
    params = {k: v.detach() for k, v in adapter.model.named_parameters() if v.requires_grad}
    buffers = {k: v.detach() for k, v in adapter.model.named_buffers()}
    keep, chosen = _split(batch, length)

    class Called(torch.nn.Module):
        """Stands in for the model inside the adapter's loss: the same module with the parameters of this call."""

        def __init__(self, values: Any) -> None:
            super().__init__()
            self.__dict__["values"] = values

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return functional_call(adapter.model, self.__dict__["values"], args, kwargs)

    def one(p: Any, rows: list[Any]) -> Any:
        single = keep([r.unsqueeze(0) for r in rows])
        with adapter.on_device(), adapter.cast():
            return adapter.module.loss(Called({**p, **buffers}), single).reshape(())

    chunk = max(1, min(length, int(2e9 // max(1, 4 * sum(p.numel() for p in params.values())))))
    grads = vmap(grad(one), in_dims=(None, 0), randomness="different", chunk_size=chunk)
    squares = torch.zeros(length, device=adapter.device)
    for start in range(0, length, chunk):  # chunks here, so that the gradients of all samples are never in memory at once
        found = grads(params, [t[start : start + chunk] for t in chosen])
        squares[start : start + chunk] = sum((g.float() ** 2).flatten(1).sum(1) for g in found.values())
    return [float(x) for x in squares.sqrt()]


def _split(batch: Any, length: int) -> tuple[Any, list[Any]]:
    """The batch's tensors of one row a sample, and a function that builds a batch with others in their place."""

    def of_rows(t: Any) -> bool:
        return bool(t.dim() > 0 and len(t) == length)

    def rebuilt(rows: list[Any]) -> Any:
        rest = iter(rows)
        return mapped(batch, lambda t: next(rest) if of_rows(t) else t)

    return rebuilt, [t for t in flat(batch) if of_rows(t)]


def frames(adapter: Any, batch: Any) -> dict[str, Any]:
    """One training step watched: for each leaf module the extremes of weight, input and output, and the first
    operation that makes a non-finite value from finite ones, with its module."""
    rows: list[dict[str, Any]] = []
    stack: list[str] = []
    first: list[dict[str, Any]] = []
    with contextlib.ExitStack() as handles:
        for name, module in adapter.model.named_modules():
            enter, leave = _hooks(name or "(model)", stack, rows)
            handles.callback(module.register_forward_pre_hook(enter).remove)
            handles.callback(module.register_forward_hook(leave).remove)
        with _watching(stack, first):
            loss, norm = adapter.step(batch)
    inputs = [extremes(t) for t in flat(batch) if t.is_floating_point()]
    grads = [n for n, p in adapter.model.named_parameters() if p.grad is not None and not finite(local(p.grad))]
    return {"first": first[0] if first else None, "frames": rows, "batch": inputs, "loss": loss, "norm": norm, "gradients": grads[:20]}


def _watching(stack: list[str], first: list[dict[str, Any]]) -> Any:
    """A mode that notes the first operation which makes a non-finite value from finite ones; `stack`: the modules it is in."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            given = [t for t in flat(args) + flat(kwargs) if t.is_floating_point()]
            sound = not first and all(finite(t) for t in given) and not means_infinity(args) and not means_infinity(kwargs)
            told = [extremes(t) for t in given[:3]] if sound else []
            out = func(*args, **kwargs)
            if sound and not func.__name__.startswith(("empty", "new_empty")) and not all(finite(t) for t in flat(out)):
                phase = "backward" if torch._C._current_graph_task_id() != -1 else "forward"
                where = stack[-1] if stack else ""
                first.append({"operation": func.__name__.split(".")[0], "phase": phase, "module": where, "inputs": told})
            return out

    return Watch()  # type: ignore[no-untyped-call]


def _hooks(name: str, stack: list[str], rows: list[dict[str, Any]]) -> tuple[Any, Any]:
    """Of a module, before and after its forward pass."""

    def enter(module: Any, args: Any) -> None:
        stack.append(name)

    def leave(module: Any, args: Any, out: Any) -> None:
        if stack and stack[-1] == name:
            stack.pop()
        if next(module.children(), None) is None and len(rows) < 400:
            for what, values in (("weight", getattr(module, "weight", None)), ("input", args), ("output", out)):
                rows.extend({"module": name, "what": what, **extremes(t)} for t in flat(values) if t.is_floating_point())

    return enter, leave
