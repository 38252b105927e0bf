"""Rows of a batch as numbers, for somebody to read (`--show-data`)."""

from __future__ import annotations

from typing import Any

from . import shares
from .adapter import rows_of


def content(session: Any, step: Any, batch: int, rows: list[int], most: int) -> dict[str, Any]:
    """The tensors of some rows of a batch as numbers, for `--show-data`: of wide ones every n-th value of each side."""
    a = session.adapter
    names, given = a.ids(batch), a.batch(batch)
    total = rows_of(given)
    rows = (shares.own_rows(rows, total) or [])[:64]
    part = {n: t for n, t in _named(a.select(given, rows)) if t.dim() and len(t) == len(rows)}
    return {
        "of": total,
        "ids": [names[i] if names else i for i in rows],
        "tensors": [{n: _small(t[i], most) for n, t in part.items()} for i in range(len(rows))],
    }


def _named(x: Any, name: str = "") -> list[tuple[str, Any]]:
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
    return [found for k, v in pairs for found in _named(v, f"{name}.{k}" if name else k)]


def _small(t: Any, most: int) -> dict[str, Any]:
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
