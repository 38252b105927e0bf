"""A file with a row an epoch beside a file of the same run that has a row a step: `train_log.txt` beside `log.txt`, as SpeechBrain writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, names
from parsers.records.vocabulary import EPOCH_STEPS
from parsers.runs.equal_values import ENOUGH, Points

NOTE = "a row an epoch, at the last step of it that another file logged"
_LEAST = 3  # epochs: fewer may lie between two others' values by chance


def counts_epochs(files: Sequence[Any]) -> bool:
    return all(EPOCH_STEPS in f.source.note for f in files)


def sums_up(of_epochs: Points, of_steps: Points, epoch: Points) -> bool:
    """Does the one have a value for each epoch that the other goes through, and do most lie among the other's values in that epoch?"""
    known = dict(zip(epoch[0].tolist(), epoch[1].tolist(), strict=True))
    at = np.array([known.get(s, np.nan) for s in of_steps[0].tolist()])
    told = sorted({int(e) for e in at[np.isfinite(at)]})
    if len(told) < _LEAST or told != sorted(set(of_epochs[0].tolist())):
        return False
    inside = []
    for e, value in zip(*of_epochs, strict=True):
        own: NDArray[np.float64] = of_steps[1][at == e]
        inside.append(len(own) > 0 and own.min() <= value <= own.max())
    return float(np.mean(inside)) >= ENOUGH


def epochs(files: Sequence[Any]) -> Points:
    """Steps and the epochs that they are in, as logged."""
    steps, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for f in files:
        table = pa.Table.from_batches(f.batches["metrics"]).unify_dictionaries()
        code, tags = arrow.codes(table["tag"])
        known = names.meanings(tags, folder=f.source.path.rpartition("/")[0], overrides={})
        named = [i for i, tag in enumerate(tags) if known[tag].name == "epoch"]
        there = np.isin(code, named) & arrow.present(table["step"])
        steps.append(arrow.values(table["step"])[there])
        values.append(arrow.values(table["value"])[there])
    return np.concatenate(steps), np.concatenate(values)


def placed(metrics: pa.Table, of_epochs: frozenset[str]) -> tuple[pa.Table, frozenset[str]]:
    """The rows of files whose steps are epochs at the last step of their epoch, where another file says in which epoch each step is; and
    which files these are."""
    if not of_epochs:
        return metrics, of_epochs
    source, paths = arrow.codes(metrics["source"])
    rare = np.isin(source, [i for i, path in enumerate(paths) if path in of_epochs])
    name, known = arrow.codes(metrics["name"])
    said = (name == known.index("epoch")) & ~rare & arrow.present(metrics["step"]) if "epoch" in known else np.zeros(len(rare), bool)
    if not rare.any() or not said.any():
        return metrics, frozenset()
    step, value = arrow.filled(metrics["step"], -1).copy(), arrow.values(metrics["value"])
    last: dict[float, int] = {}
    for e, s in zip(value[said].tolist(), step[said].tolist(), strict=True):
        last[e] = max(s, last.get(e, 0))
    if not set(step[rare].tolist()) <= set(last):
        return metrics, frozenset()
    step[rare] = [last[e] for e in step[rare].tolist()]
    found = pa.array(step, pa.int64(), mask=~(arrow.present(metrics["step"]) | rare))
    return metrics.set_column(metrics.schema.get_field_index("step"), metrics.schema.field("step"), found), of_epochs
