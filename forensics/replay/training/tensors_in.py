"""The tensors in what an adapter hands around: batches, arguments and results of operations, nested as they may be."""

from __future__ import annotations

from typing import Any


def flat(x: Any) -> list[Any]:
    """The tensors in it, in order."""
    import torch

    if isinstance(x, torch.Tensor):
        return [x]
    values = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else []
    return [t for v in values for t in flat(v)]


def mapped(x: Any, change: Any) -> Any:
    """The same containers with `change` made to each tensor; everything else is shared."""
    import torch

    if isinstance(x, torch.Tensor):
        return change(x)
    if isinstance(x, dict) or hasattr(x, "items"):
        return {k: mapped(v, change) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(mapped(v, change) for v in x))
    return type(x)(mapped(v, change) for v in x) if isinstance(x, (list, tuple)) else x


def finite(t: Any) -> bool:
    import torch

    return not (isinstance(t, torch.Tensor) and t.is_floating_point()) or bool(torch.isfinite(t).all())


def extremes(t: Any) -> dict[str, Any]:
    """abs-min and abs-max of the finite values, and how many are not finite."""
    import torch

    x = t.detach()
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    size = x[torch.isfinite(x)].abs()
    least, most = (float(size.min()), float(size.max())) if size.numel() else (None, None)
    return {"absmin": least, "absmax": most, "nonfinite": int(x.numel() - size.numel())}


def named(x: Any, name: str = "") -> list[tuple[str, Any]]:
    """(name, tensor) of each: by the keys of dicts; of a pair the first is x, the second y."""
    import torch

    if isinstance(x, torch.Tensor):
        return [(name or "x", x)]
    if isinstance(x, dict):
        pairs = [(str(k), v) for k, v in x.items()]
    elif isinstance(x, (list, tuple)):
        keys = getattr(x, "_fields", ("x", "y") if len(x) == 2 else tuple(f"part {i}" for i in range(len(x))))
        pairs = list(zip(keys, x))  # noqa: B905  (Python 3.9)
    else:
        return []
    return [found for k, v in pairs for found in named(v, f"{name}.{k}" if name else k)]


def small(t: Any, most: int) -> dict[str, Any]:
    """A tensor as numbers, at most `most` of them: every n-th of each side of 128 and more, and the first of what is still too long."""
    import torch

    t = t.detach().cpu()
    t = t.float() if t.is_floating_point() else t
    shape = list(t.shape)
    if t.dim() >= 2:
        for side, size in enumerate(shape):
            t = t.index_select(side, torch.arange(0, size, -(-size // 112)))
    kept = list(t.shape) if t.numel() <= most else [most]
    return {"dtype": str(t.dtype).replace("torch.", ""), "shape": kept, "of": shape, "values": t.flatten()[:most].tolist()}
