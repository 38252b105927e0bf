"""The smallest parts that a run is put together from, and what they say of each other: copies, siblings, neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, loss_names, names
from parsers.runs import copy_prefilter, duplicates, epoch_files
from parsers.runs.assemble import FileRead
from parsers.runs.equal_values import (
    ENOUGH,
    Points,
    apart_together,
    begins_alike,
    equal_share,
    one_step_apart,
    same_sequence,
    same_together,
)
from parsers.runs.homes import ONE_RUN, home, series_name
from parsers.runs.spans import Span
from parsers.tables import DATED

_SAME_IN_ALL = frozenset(
    ["lr", "lr.mult", "epoch", "step", "batch.size", "tokens.seen", "samples.seen", "loss_scale", "time.total"]
)  # equal across seeds
_MEASURED = ("loss.", "ppl.")  # of two trainings these differ; memory, speed or skipped steps may be equal
_MACHINE = ("time.", "tput.", "mem.", "gpu.", "cpu.", "disk.", "net.", "mfu", "flops.")  # each log may take these over other stretches

_SOME = 10_000  # rows that tell a file's logging interval

_NOWHERE = Span(0, 0)


@dataclass(eq=False)
class Unit:
    """The metric files of one format in one folder that are one run for sure (event files), or one file."""

    home: str
    format: str
    overrides: dict[str, str]
    files: list[FileRead] = field(default_factory=list)
    index: int = 0  # among the units, and in `alike`
    alike: NDArray[np.bool_] = field(default_factory=lambda: np.ones((1, 1), np.bool_), repr=False)  # copy_prefilter.maybe_copies
    keys: frozenset[str] = frozenset()  # of its metrics
    span: Span = _NOWHERE
    points: dict[str, Points] | None = None  # by key, once they are asked for

    @property
    def parent(self) -> str:
        return self.home.rpartition("/")[0]

    def tags(self) -> frozenset[str]:
        """As its writers call its metrics."""
        return frozenset(tag for f in self.files for b in f.batches["metrics"] for tag in arrow.distinct(pa.chunked_array([b["tag"]])))


def units(files: list[FileRead], overrides: dict[str, str]) -> list[Unit]:
    """The files with metrics, as units that know their keys, steps and times, and which others they may be copies of."""
    found: dict[tuple[str, ...], Unit] = {}
    for f in files:
        if f.batches.get("metrics"):
            where, fmt = home(f.source.path), f.source.format
            key = (where, fmt) if fmt in ONE_RUN else (where, fmt, _one_of(f) or f.source.path, f.run)
            found.setdefault(key, Unit(where, fmt, overrides)).files.append(f)
    if len(found) > 1:
        alike = copy_prefilter.maybe_copies([_sketch(u) for u in found.values()])
        for i, unit in enumerate(found.values()):
            unit.index, unit.alike = i, alike
    return list(found.values())


def _one_of(f: FileRead) -> str:
    """The name that the files of a series have in common, where each holds what was measured at one step; else ""."""
    step = arrow.distinct(pa.chunked_array([b["step"] for b in f.batches["metrics"]]))
    return series_name(f.source.path, step[0]) if len(step) == 1 else ""


def _sketch(unit: Unit) -> copy_prefilter.Sketch:
    """Fills in its keys and span; -> a sketch of its values."""
    numbers: dict[str, int] = {}  # of the metrics that tell runs apart
    logged: set[str] = set()
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    steps: list[int] = []
    every: list[float] = []
    times: list[float] = []
    for keys, code, step, value, time in _columns(unit):
        # what is told once says nothing of where its file begins: Lightning writes hp_metric at step 0 of each launch
        often = np.bincount(code, minlength=len(keys))
        course = step[(often > 1).take(code)] if (often == 1).any() and (often > 1).any() else step
        steps += [int(course.min()), int(course.max())] if len(course) else []
        every += [float(np.median(np.diff(some)))] if len(some := np.unique(course[:_SOME])) > 1 else []
        time = time[time >= DATED]
        times += [float(time.min()), float(time.max())] if len(time) else []
        logged.update(k for k in keys if k is not None)
        compared = [-1 if k is None or k in _SAME_IN_ALL else numbers.setdefault(k, len(numbers)) for k in keys]
        parts.append((np.array(compared, np.int64).take(code), step, value))
    unit.keys = frozenset(logged)
    ends = (min(times), max(times)) if times else None
    unit.span = Span(min(steps, default=0), max(steps, default=0), ends, max(round(min(every, default=1)), 1))
    key, step, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    return copy_prefilter.sketch(list(numbers), key, step, value)


def _columns(
    unit: Unit,
) -> Iterator[tuple[list[str | None], NDArray[np.int32], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Of each file: what its tags are compared by (None: they are not), and tag, step and value of the rows with a step;
    the times of all."""
    for f in unit.files:
        batches = f.batches["metrics"]
        table = pa.Table.from_batches(batches).unify_dictionaries() if len(batches) > 1 else batches[0]
        code, tags = arrow.codes(table["tag"])
        known = names.meanings(tags, folder=loss_names.home(f.source.path), overrides=unit.overrides)
        time = arrow.filled(table["time"], np.nan)
        step, value = arrow.values(table["step"]), arrow.values(table["value"])
        there = arrow.valid(table["step"])
        if there is not None:
            code, step, value = code[there], step[there], value[there]
        seen = np.bincount(code, minlength=len(tags)) > 0
        yield [_key(known[tag].name) if here else None for tag, here in zip(tags, seen.tolist(), strict=True)], code, step, value, time


@lru_cache(maxsize=4096)
def _key(name: str) -> str | None:
    return None if name.startswith("axis/") or name in {"step", "epoch"} else duplicates.key(name)


def points(unit: Unit) -> dict[str, Points]:
    """Steps and values by key; the first tag of a key in a file speaks for it."""
    if unit.points is None:
        found: dict[str, list[Points]] = {}
        for keys, code, step, value, _ in _columns(unit):
            order = np.argsort(code, kind="stable")
            bounds = np.searchsorted(code[order], np.arange(len(keys) + 1))
            own: dict[str, Points] = {}
            for i, key in enumerate(keys):
                rows = order[bounds[i] : bounds[i + 1]]
                if key is not None and len(rows):
                    own.setdefault(key, (step[rows], value[rows]))
            for key, points in own.items():
                found.setdefault(key, []).append(points)
        unit.points = {k: (np.concatenate([s for s, _ in of]), np.concatenate([v for _, v in of])) for k, of in found.items()}
    return unit.points


def shared(a: Unit, b: Unit) -> frozenset[str]:
    """The metrics that both log, and that tell runs apart."""
    return (a.keys & b.keys) - _SAME_IN_ALL


def counted_otherwise(a: Unit, b: Unit) -> bool:
    """Do both log the same losses, or the same of all metrics, at steps that they count differently: from 0 and from 1, or by row?"""
    one, two, both = points(a), points(b), shared(a, b)
    if any(k.startswith("loss.") and (same_sequence(one[k], two[k]) or one_step_apart(one[k], two[k])) for k in both):
        return True
    pairs = [(one[k], two[k]) for k in sorted(both) if not k.startswith(_MACHINE)]
    return same_together(pairs) or apart_together(pairs)


def saved_of(state: Unit, log: Unit) -> bool:
    """Is one the history that a training saved with its last checkpoint, and the other its log, which goes on from there?"""
    if state.format != "trainer_state":
        return False
    one, two = points(state), points(log)
    return begins_alike((one[k], two[k]) for k in sorted(shared(state, log)) if not k.startswith(_MACHINE))


def sums_up_epochs(a: Unit, b: Unit) -> bool:
    """Does one of them have a row an epoch, of the run that the other logs step by step?"""
    if epoch_files.counts_epochs(a.files) == epoch_files.counts_epochs(b.files):
        return False
    rare, dense = (a, b) if epoch_files.counts_epochs(a.files) else (b, a)
    epoch, one, two = epoch_files.epochs(dense.files), points(rare), points(dense)
    both = [k for k in shared(a, b) if k.startswith(_MEASURED)]
    return bool(both) and all(epoch_files.sums_up(one[k], two[k], epoch) for k in both)


def is_copy(a: Unit, b: Unit) -> bool | None:
    """True where most of the shared metrics have equal values at equal steps; None without a common step."""
    if not a.alike[a.index, b.index]:
        return False
    one, two = points(a), points(b)
    both = shared(a, b)
    losses = [k for k in both if k.startswith(_MEASURED)]
    equal = [e for k in losses or both if (e := equal_share(one[k], two[k])) is not None]
    return bool(np.median(equal) >= ENOUGH) if equal else None
