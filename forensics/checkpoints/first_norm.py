"""The first logged norm of all weights beside the norm that usual initial weights have, by the shapes in a checkpoint of the run."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forensics.checkpoints import run_saves
from forensics.checkpoints.looks import parameters
from forensics.run import weight_norms
from forensics.run.initial_weights import LARGE
from forensics.run.series import parts
from parsers.checkpoints.contents import Tensor
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

GREW = 1.05  # unit: of the first norm; where training makes weights larger, they may have become so before the first row
_TABLE = lazy_re(r"(?i)emb|wte|wpe|lookup")


class FirstNorm(NamedTuple):
    norm: float
    most: float  # of usual weights
    where: str


def first_norm(run: Run) -> FirstNorm | None:
    """None where the norm was not logged, or grows, or no checkpoint says of which weights it is."""
    logged = weight_norms.whole(run)
    if logged is None or not len(logged[1]) or not np.isfinite(logged[1]).all() or logged[1].max() > GREW * logged[1][0]:
        return None
    saved = run_saves.of_run(run)
    squares = sum(map(_most, parameters(saved[-1]))) if saved else 0.0
    if not squares:
        return None
    where = [*parts(run, "param.norm"), *parts(run, "param.norm_layer")][0].place(run, 0)
    return FirstNorm(float(logged[1][0]), math.sqrt(squares), where)


def least(run: Run) -> float:
    """The norm of the layers alone as they usually begin: the inverse root of three times the width (PyTorch's default). Zero where none is known."""
    saved = run_saves.of_run(run)
    layers = [t for t in parameters(saved[-1]) if len(t.shape) > 1 and not _TABLE.search(t.name)] if saved else []
    return math.sqrt(sum(min(t.shape[0], t.shape[-1]) / 3 for t in layers if t.count))


def _most(t: Tensor) -> float:
    """The largest usual sum of squares: tables, gains and biases begin at 1 each at most (PyTorch's defaults), layers keep the variance, twice over."""
    wide = 1 if len(t.shape) < 2 or _TABLE.search(t.name) else 3 * min(t.shape) / LARGE**2
    return t.count / max(wide, 1.0)
