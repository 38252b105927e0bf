"""An error of held-out data that was taken once more at the end, beside the evaluation along the way."""

from __future__ import annotations

from forensics.run.series import Series, names, parts
from parsers.objectives import objective
from parsers.tables import Run

SQUARES, ROOTS = ("mse", "l 2", "squared error"), ("rmse", "root squared error")  # "mean" is left out of the words of a tag
LAST_ONES = 3  # bound: more values are a curve of its own


def last_errors(run: Run, held: Series) -> list[Series]:
    """Squared errors of held-out data, or their roots, that were logged once or so, beside an evaluation of that kind."""
    if squared(held.tag) < 0:
        return []
    few = [s for name in names(run) if name.startswith("other/") for s in parts(run, name) if len(s) <= LAST_ONES]
    return [s for s in few if squared(s.tag) >= 0 and (told := objective(s.tag)) is not None and told.side == "eval"]


def is_root(tag: str) -> bool:
    """Is it the root of a squared error, which moves by half of its share?"""
    return squared(tag) == 0


def squared(tag: str) -> int:
    """1 of a squared error, 0 of its root, -1 of anything else."""
    told = objective(tag)
    core = told.core if told is not None else ""
    return 1 if core in SQUARES else 0 if core in ROOTS else -1
