"""Numbers as JSON has them: the contract's strings for what is not finite."""

from __future__ import annotations

from typing import Any


def number(x: float) -> Any:
    if x == x and abs(x) != float("inf"):
        return x
    return "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


def plain(x: Any) -> Any:
    """JSON has no NaN: the contract's strings instead."""
    if isinstance(x, float):
        return number(x)
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x
