"""The loss of every token, pixel or field of some samples, caught where the adapter's loss calls a loss function of torch.

Losses alone, never the values that they are of. What does not add up to the sample's own loss is not told.
"""

from __future__ import annotations

import inspect
from typing import Any

from . import probes, shares, whole_state
from .plain import plain

TARGETS = ("cross_entropy", "nll_loss")
KNOWN = (*TARGETS, "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
CELLS = 64  # losses of a sample that are told; of a longer one means of neighbours
AGREES = 1e-2  # relative: a mean in half precision against one in single


def elements(session: Any, step: Any, state: str, batch: int, rows: list[int]) -> dict[str, Any]:
    """``{"each": what one is, "per": how many each number is the mean of, "losses": of each row, "parts": of each row}``; with
    ``why`` where the losses of single elements are not to be had."""
    if shares.WORLD > 1:
        return {"why": "the rows lie on several ranks"}
    a = session.adapter
    whole_state.put_back(a, session.store.get(state))
    return _looked(a, a.select(a.batch(batch), rows), len(rows))


def _looked(a: Any, given: Any, n: int) -> dict[str, Any]:
    import torch

    training, caught = a.model.training, _catcher()
    a.model.eval()  # with dropout two passes would differ
    try:
        losses = probes.sample_losses(a, given)
        with torch.no_grad(), caught:
            a.loss(given)
    finally:
        a.model.train(training)
    for name, each, target in caught.found:
        parts = _by_row(each, target, n, losses)
        if parts is not None and len(parts[0]) > 1:
            kind = "pixel" if each.dim() > 2 else "token" if name in TARGETS else "field"
            per = -(-len(parts[0]) // CELLS)
            return plain({"each": kind, "per": per, "losses": losses, "parts": [_thinned(p, per) for p in parts]})  # type: ignore[no-any-return]
    return {"why": "no loss function of torch gives one loss for each part of a sample"}


def _catcher() -> Any:
    """Calls each known loss function once more without its mean, and keeps what that gives."""
    from torch.overrides import TorchFunctionMode

    class Catcher(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[tuple[str, Any, Any]] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            name = getattr(func, "__name__", "")
            if name in KNOWN:
                bound = inspect.signature(func).bind(*args, **given)
                bound.arguments["reduction"] = "none"
                ignored = bound.arguments.get("ignore_index", -100)
                target = bound.arguments["target"]
                counts = target != ignored if name in TARGETS and not target.is_floating_point() else None
                self.found.append((name, func(*bound.args, **bound.kwargs).detach().float(), counts))
            return func(*args, **given)

    return Catcher()


def _by_row(each: Any, counts: Any, n: int, losses: list[float]) -> Any:
    """The losses by sample, where their mean or sum is the sample's; None where it is not. What is not counted is None."""
    if not n or each.numel() % n or each.numel() < n:
        return None
    values = each.reshape(n, -1).tolist()
    kept = counts.reshape(n, -1).tolist() if counts is not None and counts.numel() == each.numel() else [[True] * len(v) for v in values]
    parts = [[v if k else None for v, k in zip(row, keep)] for row, keep in zip(values, kept)]  # noqa: B905  (Python 3.9)
    return parts if all(_adds_up(p, loss) for p, loss in zip(parts, losses)) else None  # noqa: B905


def _adds_up(parts: list[Any], loss: float) -> bool:
    counted: list[float] = [v for v in parts if v is not None]
    if not counted or loss != loss or abs(loss) == float("inf"):
        return bool(counted)
    total, least = sum(counted), AGREES * max(abs(loss), 1e-6)
    return abs(total / len(counted) - loss) <= least or abs(total - loss) <= least


def _thinned(parts: list[Any], per: int) -> list[Any]:
    out = []
    for i in range(0, len(parts), per):
        counted = [v for v in parts[i : i + per] if v is not None]
        out.append(float("%.3g" % (sum(counted) / len(counted))) if counted else None)
    return out
