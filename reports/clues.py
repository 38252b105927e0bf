"""The clues of a cause as readers see them: what is said twice, once."""

from __future__ import annotations

from typing import Any

SILENT = "Cannot tell: "  # how a sign begins that the run has no data for


def said_once(clues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is said twice, once with how common the cause is where that is seen, as one clue with both weights."""
    out: list[dict[str, Any]] = []
    for c in clues:
        text = str(c.get("text")).rstrip(".")
        twin = next((o for o in out if o.get("part", "log") == c.get("part", "log") and str(o.get("text")).startswith(f"{text}. ")), None)
        if twin is None or is_silent(c):
            out.append(dict(c))
        else:
            twin["weight"] = weight(twin) + weight(c)
    return out


def is_silent(clue: dict[str, Any]) -> bool:
    """Whether a clue weighs nothing because the run cannot tell."""
    return not weight(clue) and str(clue.get("text")).startswith(SILENT)


def weight(clue: dict[str, Any]) -> float:
    """Decibans."""
    w = clue.get("weight")
    return float(w) if isinstance(w, (int, float)) else 0.0
