"""The pictures of a page, in the order in which they stand; each only where there is something to see.

A picture: ``id``, ``title``, ``says`` (what it shows, as a sentence), ``svg``, ``axis``, ``legend`` [(class of the mark, words)], ``note``,
``lines`` (sentences beneath), ``beneath`` (a second panel) and ``named`` (its rows have names, which need room at the left).
"""

from __future__ import annotations

from typing import Any

from reports import attempts_picture, curve_pictures, guard_picture, hang_picture, layer_picture, rank_picture

ALL = (
    hang_picture.picture,
    rank_picture.picture,
    attempts_picture.picture,
    curve_pictures.memory,
    layer_picture.picture,
    curve_pictures.baseline,
    curve_pictures.seeds,
    curve_pictures.evaluation,
    guard_picture.picture,
)


def pictures(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Takes a case that ``schema.complete`` filled."""
    return [shown for draw in ALL if (shown := draw(case)) is not None]
