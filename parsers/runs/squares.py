"""A squared error a step beside its root an epoch: one metric in two resolutions, under two names.

Recommenders and regressions report the root mean squared error of each epoch, which is judged as the loss, and print the squared error on
the way. Where the root lies among the roots of its epoch's values, these are taken in their place: what befell a few batches stands in them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.names import Meaning
from parsers.objectives import objective
from parsers.runs.equal_values import ENOUGH

_ROOTS, _SQUARES = frozenset({"rmse", "root squared error"}), frozenset({"mse", "squared error", "l 2"})
_LEAST = 3  # epochs: fewer may lie between two others' values by chance (epoch_files)
_OFTENER = 2  # times as many rows: of two that are equally often logged, either will do (finer_twins)

Meanings = dict[tuple[str, str], Meaning]  # by file and tag
Ints = NDArray[np.int64]


def rooted(metrics: pa.Table, meanings: Mapping[tuple[str, str], Meaning]) -> tuple[pa.Table, Meanings]:
    """The metrics with the root of a squared error a step as the loss of the training, where its epochs are judged by that, and what
    the tags mean then."""
    coarse = [at for at, m in meanings.items() if m.name == "loss.train" and _core(at) in _ROOTS]
    fine = [at for at, m in meanings.items() if m.name == "other/mse" and _core(at) in _SQUARES]
    known = dict(meanings)
    if not coarse or not fine:
        return metrics, known
    (source, paths), (tag, tags) = arrow.codes(metrics["source"]), arrow.codes(metrics["tag"])
    step, value, there = arrow.filled(metrics["step"], -1), arrow.values(metrics["value"]).copy(), arrow.present(metrics["step"])
    rows = {(p, t): np.flatnonzero((source == paths.index(p)) & (tag == tags.index(t)) & there) for p, t in [*coarse, *fine]}
    found = [at for at in fine if any(_among(step, value, rows[one], rows[at]) for one in coarse)]
    if not found:
        return metrics, known
    name, names = arrow.codes(metrics["name"])
    name, tag = name.copy(), tag.copy()
    for path, t in found:
        mine, said = rows[path, t], f"sqrt({t})"
        tags += [said] if said not in tags else []
        value[mine], tag[mine], name[mine] = np.sqrt(value[mine]), tags.index(said), names.index("loss.train")
        known[path, said] = next(meanings[at] for at in coarse)
    columns = {"value": arrow.numbers(value), "tag": arrow.coded(tag, tags), "name": arrow.coded(name, names)}
    for c, column in columns.items():
        metrics = metrics.set_column(metrics.schema.get_field_index(c), metrics.schema.field(c), column)
    return metrics, known


def _core(at: tuple[str, str]) -> str:
    told = objective(at[1], at[0].rpartition("/")[0])
    return told.core if told is not None and told.side == "train" else ""


def _among(step: Ints, value: NDArray[np.float64], coarse: Ints, fine: Ints) -> bool:
    """Do most values of an epoch lie among the roots of those up to its end? None of the squares is negative."""
    ends, order = np.unique(step[coarse], return_index=True)
    if len(ends) < _LEAST or len(fine) < _OFTENER * len(ends) or not bool((value[fine] >= 0).all()):
        return False
    epoch, inside = np.searchsorted(ends, step[fine]), []
    for i, root in enumerate(value[coarse][order].tolist()):
        own = np.sqrt(value[fine][epoch == i])
        inside.append(len(own) > 0 and own.min() <= root <= own.max())
    return float(np.mean(inside)) >= ENOUGH
