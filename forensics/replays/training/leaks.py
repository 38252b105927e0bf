"""Whether outputs depend on what they must not see: later positions, other samples, padded positions."""

from __future__ import annotations

import contextlib
from typing import Any

from .adapter import rows_of, take
from .tensors_in import finite, flat


def leaks(adapter: Any, batch: Any) -> dict[str, Any]:
    """Gradients and poison at the model's input, in evaluation mode, so that neither dropout nor batch statistics count.

    The input is what the first embedding gives, else the first floating-point tensor that the model is given: (samples, ...).
    Of every such model: `other_samples_gradient`, of the first sample's output with respect to the others. Where input and output
    are one a position (samples, positions, ...): `future_gradient`, of an output in the middle with respect to later positions,
    `future_change` by another value in the last one, and whether NaN there spreads back. Where a mask has zeros: `padding_change`.
    {"why": ...} where the model has no such input.
    """
    import torch

    batch = take(batch, list(range(min(4, rows_of(batch)))), rows_of(batch))
    was = adapter.model.training
    adapter.model.eval()
    try:
        x, y = _run(adapter, batch)
        if x is None or y is None or not y.dim() or len(y) != len(x):
            return {"why": "no input was found to take a gradient at"}
        found: dict[str, Any] = {}
        if len(y) > 1 and not (y.dim() == 2 and y.shape[1] == len(y)):  # not where samples are compared with one another
            found["other_samples_gradient"] = _steepest(y[0], x)[1:].abs().max().item()
        if y.dim() >= 3 and x.dim() >= 3 and y.shape[1] == x.shape[1] >= 4:
            found |= _of_positions(adapter, batch, x, y)
        elif "other_samples_gradient" not in found:
            return {"why": "one sample, and outputs are not one a position"}
        with torch.no_grad():
            found |= _of_padding(adapter, batch, y.detach())
        return found
    finally:
        adapter.model.train(was)


def _steepest(y: Any, x: Any) -> Any:
    import torch

    g = torch.autograd.grad(y.float().sum(), x, retain_graph=True, allow_unused=True)[0]
    return torch.zeros_like(x) if g is None else g


def _of_positions(adapter: Any, batch: Any, x: Any, y: Any) -> dict[str, Any]:
    import torch

    middle = x.shape[1] // 2
    found: dict[str, Any] = {"future_gradient": _steepest(y[0, middle], x)[0, middle + 1 :].abs().max().item()}
    last, sample, plain = (slice(None), -1), (-1,), y.detach()
    with torch.no_grad():
        changed = _run(adapter, batch, lambda t: 3.0 - 2.0 * t, last)[1]
        found["future_change"] = (changed - plain)[:, :-1].abs().max().item()
        # NaN spreads also where a weight of exactly zero multiplies it, so it convicts of nothing by itself
        found["nan_spreads_back"] = not finite(_run(adapter, batch, _poison, last)[1][:, :-1])
        found["nan_spreads_to_samples"] = len(y) > 1 and not finite(_run(adapter, batch, _poison, sample)[1][:-1])
    return found


def _of_padding(adapter: Any, batch: Any, plain: Any) -> dict[str, Any]:
    """What another value at masked positions does to the outputs at the others."""
    import torch

    mask = batch.get("attention_mask") if isinstance(batch, dict) else None
    if not isinstance(mask, torch.Tensor) or plain.dim() < 3 or mask.shape != plain.shape[:2] or bool(mask.bool().all()):
        return {}
    hidden = ~mask.bool()
    changed = _run(adapter, batch, lambda t: 3.0 - 2.0 * t, hidden)[1]
    return {"padding_change": (changed - plain)[~hidden].abs().max().item()}


def _poison(t: Any) -> Any:
    import torch

    return torch.full_like(t, float("nan"))


def _run(adapter: Any, batch: Any, change: Any = None, where: Any = None) -> tuple[Any, Any]:
    """(input, output) of the model within the adapter's loss; with `change` that is done to the input at `where` first."""
    import torch

    model, held = adapter.model, {}
    table = next((m for m in model.modules() if isinstance(m, torch.nn.Embedding)), None)

    def given(x: Any) -> Any:
        held["in"] = x = x.detach().clone().requires_grad_(True)
        if change is None:
            return x
        changed = x.detach().clone()
        changed[where] = change(changed[where])
        return changed

    def at_table(module: Any, args: Any, out: Any) -> Any:
        return given(out) if "in" not in held and out.dim() == 3 else None

    def at_model(module: Any, args: Any) -> Any:
        spot = next((i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.is_floating_point() and a.dim() >= 2), None)
        return None if spot is None or "in" in held else (*args[:spot], given(args[spot]), *args[spot + 1 :])

    def at_output(module: Any, args: Any, out: Any) -> None:
        value = flat(out if not hasattr(out, "logits") else out.logits)
        held["out"] = value[0] if value else None

    with contextlib.ExitStack() as hooks:
        entry = model.register_forward_pre_hook(at_model) if table is None else table.register_forward_hook(at_table)
        hooks.callback(entry.remove)
        hooks.callback(model.register_forward_hook(at_output).remove)
        adapter.loss(batch)
    return held.get("in"), held.get("out")
