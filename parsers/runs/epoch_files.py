"""A file with a row an epoch beside a file of the same run that has a row a step: `train_log.txt` beside `log.txt`, as SpeechBrain writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, loss_names, names
from parsers.records.vocabulary import EPOCH_STEPS
from parsers.runs.equal_values import ENOUGH, Points, equal_share

NOTE = "a row an epoch, at the last step of it that another file logged"
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]
Places = dict[str, dict[int, int]]  # of each file the step of each epoch
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
        known = names.meanings(tags, folder=loss_names.home(f.source.path), overrides={})
        named = [i for i, tag in enumerate(tags) if known[tag].name == "epoch"]
        there = np.isin(code, named) & arrow.present(table["step"])
        steps.append(arrow.values(table["step"])[there])
        values.append(arrow.values(table["value"])[there])
    return np.concatenate(steps), np.concatenate(values)


def placed(metrics: pa.Table, of_epochs: frozenset[str]) -> tuple[pa.Table, Places]:
    """The rows of files whose steps are epochs at the last step of their epoch, where another file says in which epoch each step is; and
    which files these are, with the step of each epoch: the given ones, and others whose values are the ones that the log of both has at the end of each epoch (Keras's
    TensorBoard callback). One may count epochs from 0 and the other from 1."""
    name, known = arrow.codes(metrics["name"])
    source, paths = arrow.codes(metrics["source"])
    if "epoch" not in known or len(paths) < 2:  # the rows of long runs are not touched
        return metrics, {}
    there, of_epoch = arrow.present(metrics["step"]), name == known.index("epoch")
    spans = arrow.stretches(source, len(paths))  # each file's rows stand together
    both = [i for i, path in enumerate(paths) if path not in of_epochs and (of_epoch & there)[slice(*spans[i])].any()]
    said = of_epoch & there & np.isin(source, both)
    step, value = arrow.filled(metrics["step"], -1), arrow.values(metrics["value"])
    most = np.fmax.reduce(value[said], initial=-1)
    few = [i for i, span in enumerate(spans) if i not in both and -1 < step[slice(*span)].max(initial=-1) <= most]
    if not few:
        return metrics, {}
    found, which = np.unique(value[said], return_inverse=True)
    ends = np.zeros(len(found), np.int64)
    np.maximum.at(ends, which, step[said])
    last = dict(zip(found.tolist(), ends.tolist(), strict=True))
    others = [(name[o], (step[o], value[o])) for o in (slice(*spans[i]) for i in both)]
    at, moved = step.copy(), Places()
    for i in sorted(few, key=lambda i: paths[i] not in of_epochs):  # what these say others may say again
        own = slice(*spans[i])
        counted = set(step[own][there[own]].tolist())
        fitting = [{e: last[e + first] for e in counted} for first in (0, 1) if {e + first for e in counted} <= set(last)]
        told = next((ends for ends in fitting if alike(name[own], (_at(ends, step[own]), value[own]), others)), None)
        if told is None and paths[i] in of_epochs:
            told = next(iter(fitting), None)
        if told is not None:
            at[own] = _at(told, step[own])
            moved[paths[i]] = told
            others.append((name[own], (at[own], value[own])))
    if not moved:
        return metrics, moved
    column = pa.array(at, pa.int64(), mask=~there)
    return metrics.set_column(metrics.schema.get_field_index("step"), metrics.schema.field("step"), column), moved


def _at(ends: dict[int, int], epoch: Ints) -> Ints:
    return np.array([ends.get(e, -1) for e in epoch.tolist()], np.int64)


def events_placed(events: pa.Table, moved: Places) -> pa.Table:
    """What the lines of such files say at the steps of their epochs, too; a launch that takes up an epoch does so at its first step."""
    if not moved or not events.num_rows:
        return events
    rows = zip(*(events[c].to_pylist() for c in ("source", "kind", "step")), strict=True)
    step = [
        s if s not in ends else ends.get(s - 1, ends[s] - 1) + 1 if kind == "resume" else ends[s]
        for source, kind, s in rows
        for ends in (moved.get(source, {}),)
    ]
    return events.set_column(events.schema.get_field_index("step"), events.schema.field("step"), pa.array(step, pa.int64()))


def alike(names_of: Codes, one: Points, others: Sequence[tuple[Codes, Points]]) -> bool:
    """Does another file say the same values at these steps, of three of them and more, under some canonical name? Names below zero do not count."""
    for code in np.unique(names_of[names_of >= 0]):
        mine = (one[0][names_of == code], one[1][names_of == code])
        for of_other, (step, value) in others:
            theirs = np.flatnonzero(of_other == code)[::-1]  # of several values at a step the last
            common = np.intersect1d(mine[0], step[theirs])
            if len(common) >= _LEAST and (equal_share(mine, (step[theirs], value[theirs])) or 0.0) >= ENOUGH:
                return True
    return False
