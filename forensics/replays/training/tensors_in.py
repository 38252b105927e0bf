"""The tensors in what an adapter hands around: batches, arguments and results of operations, nested as they may be."""

from __future__ import annotations

from typing import Any

from .wrapped import local


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

    return not (isinstance(t, torch.Tensor) and t.is_floating_point()) or bool(torch.isfinite(local(t)).all())


def extremes(t: Any) -> dict[str, Any]:
    """abs-min and abs-max of the finite values, and how many are not finite."""
    import torch

    x = local(t.detach())
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    size = x[torch.isfinite(x)].abs()
    least, most = (float(size.min()), float(size.max())) if size.numel() else (None, None)
    return {"absmin": least, "absmax": most, "nonfinite": int(x.numel() - size.numel())}
