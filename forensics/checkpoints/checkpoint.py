"""What is in a checkpoint, what is sick in it, and what changed between two: behind `forensics checkpoint`.

``read`` streams every tensor once; memory stays bounded whatever the size. ``of_run`` gives the analysis the checkpoints
of a run without reading a value, ``tensors`` streams them, within a budget, the first time a detector asks.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.case import jsonable
from forensics.errors import ForensicsError
from parsers import checkpoint_files, checkpoints
from parsers.checkpoints.contents import SIZES, Contents, Tensor, check_sums, chunks
from parsers.checkpoints.pickles import Unreadable
from parsers.checkpoints.statistics import Stats, values
from parsers.checkpoints.units import streamed
from parsers.secrets import names
from parsers.tables import Gap

Progress = Callable[[str, int, int], None]
REREAD = 4  # a file is streamed at most so many times over: many names may share the same bytes


@dataclass
class Checkpoint:
    """One checkpoint: its contents, and the statistics of each tensor as far as they were read."""

    contents: Contents
    step: int | None
    kind: str
    stats: dict[str, Stats] = field(default_factory=dict)  # by tensor name
    by_role: dict[int, dict[str, list[tuple[int, Tensor, Stats]]]] = field(default_factory=dict)  # for so many of `stats`: checkpoint_findings.measured fills it

    @property
    def path(self) -> Path:
        return self.contents.path

    def rows(self) -> list[dict[str, Any]]:
        """The tensors as the contract has them; null where values could not be read."""
        return [_row(t, self.stats.get(t.name)) for t in self.contents.tensors]


def read(path: str | Path, *, progress: Progress | None = None) -> Checkpoint:
    """A file or folder, with statistics. Raises ForensicsError where nothing in it can be read."""
    collects = gc.isenabled()
    gc.disable()  # what is built stays, in a checkpoint of 50,000 tensors millions of objects: the collector would walk them over and over
    try:
        found = open_checkpoint(Path(path))
        measure(found, progress=progress)
    finally:
        if collects:
            gc.enable()
    return found


def open_checkpoint(path: Path) -> Checkpoint:
    """Names, shapes and plain values; no tensor is read. Raises ForensicsError."""
    try:
        contents = checkpoints.read(path)
    except Unreadable as e:
        raise ForensicsError(f"{path} cannot be read: {e}", "docs/checkpoints.md lists the formats that can.") from e
    except RecursionError as e:
        raise ForensicsError(f"{path} cannot be read: nested too deeply") from e
    return Checkpoint(contents, step_of(contents), kind_of(contents))


def measure(c: Checkpoint, *, progress: Progress | None = None, only: Callable[[Tensor], bool] | None = None) -> None:
    """Fills `stats`, one pass over each tensor. Tensors that are the same bytes are streamed once."""
    check_sums(c.contents)
    todo = [t for t in c.contents.tensors if not t.why and (only is None or only(t))]
    total, done = sum(t.count * SIZES[t.dtype] for t in todo), 0
    limit = REREAD * max(c.contents.bytes, 1 << 24)
    known: dict[Any, Stats] = {}
    for t in todo:
        place = tuple((id(p.file), p.offset, p.count, p.shape, p.strides) for p in t.pieces) or id(t)
        if (place, t.dtype) not in known:
            size = t.count * SIZES[t.dtype]
            if done + size > limit:
                c.contents.gap(
                    f"{t.name[:80]}: more bytes are claimed than the file has, the rest is not read", t.at, t.source
                )
                return
            if progress:
                progress(f"{c.path.name}: {t.name}", done, total)
            try:
                known[place, t.dtype] = streamed(t)
            except (Unreadable, ValueError, OSError) as e:
                c.contents.gap(f"{t.name[:80]}: {e}", t.at, t.source)
                c.contents.complete = False
                continue
            done += size
        c.stats[t.name] = known[place, t.dtype]


def _row(t: Tensor, s: Stats | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": t.name, "role": t.role, "dtype": t.dtype, "shape": list(t.shape)}
    if s is None:
        return row | dict.fromkeys(_FIGURES) | {"note": t.why}
    return row | {name: getattr(s, name) for name in _FIGURES}


_FIGURES = ("norm", "mean", "std", "absmax", "nonfinite", "zeros", "zero_rows", "zero_columns")
_STEP_NAMES = [
    "global_step",
    "global_steps",
    "iteration",
    "num_updates",
    "iter_num",
    "update_step",
    "step",
    "steps",
    "current_step",
]
_NOT_THE_STEP = re.compile(r"optim|state\.\d+\.|callbacks|loops|sched|metrics|config|args")


def step_of(contents: Contents) -> int | None:
    """The step that the file states (``global_step``, ``iteration``, ``step``), else the one in its name."""
    found = []
    for name, value in contents.values.items():
        plain = name.rpartition(":")[2]
        last = plain.rpartition(".")[2]
        named = last in _STEP_NAMES and plain.count(".") <= 1 and not _NOT_THE_STEP.search(plain)
        if named and type(value) in (int, float) and 0 <= value < 1 << 53:
            found.append((plain.count("."), _STEP_NAMES.index(last), int(value)))
    return min(found)[2] if found else checkpoint_files.step_of(contents.path)


def kind_of(contents: Contents) -> str:
    """weights, optimizer, full (both), or other."""
    roles = {t.role for t in contents.tensors}
    weights, moments = bool(roles & {"weight", "ema"}), bool(roles & {"exp_avg", "exp_avg_sq", "master"})
    moments = moments or any("param_groups" in k for k in contents.values)
    return "full" if weights and moments else "weights" if weights else "optimizer" if moments else "other"


# --- two checkpoints


def compare(a: Checkpoint, b: Checkpoint, *, progress: Progress | None = None) -> list[dict[str, Any]]:
    """For each tensor of both, in the order of `b` and with the names of `a`: the norm of the difference, that over the norm in `a`, bit-equality.

    Numbers are null where shapes differ, or where values lie in another order and cannot be paired without both in memory.
    """
    before = {plain_name(t.name): t for t in a.contents.tensors if not t.why}
    pairs = [(before[n], t) for t in b.contents.tensors if (n := plain_name(t.name)) in before and not t.why]
    total, done = sum(t.count for _, t in pairs), 0
    rows = []
    for old, new in pairs:
        if progress:
            progress(f"comparing {new.name}", done, total)
        done += new.count
        rows.append({"name": old.name, "role": new.role, **difference(old, new, a.stats.get(old.name))})
    return rows


def plain_name(name: str) -> str:
    """Without the file in front, and without the wrappers that a save may add: names that two checkpoints share."""
    name = name.rpartition(":")[2]
    return re.sub(r"^((model|state_dict|model_state_dict|module|_orig_mod|net|state\.model|model_state)\.)+", "", name)


def difference(old: Tensor, new: Tensor, stats: Stats | None) -> dict[str, Any]:
    """One row of ``compare`` without its names; `stats` are those of `old` where they are known."""
    unknown: dict[str, Any] = {"update_norm": None, "relative": None, "equal": None}
    if old.shape != new.shape:
        return unknown | {"equal": False}
    if old.layout != new.layout:
        return unknown
    equal, squares, norm = True, 0.0, 0.0
    try:
        for x, y in _paired(chunks(old), chunks(new)):
            same = old.dtype == new.dtype and x.tobytes() == y.tobytes()
            if stats is None or not same:
                u = values(x, old.dtype).astype(np.float64)
            if stats is None:
                norm += float(np.dot(u, u))
            if not same:
                equal = False
                with np.errstate(invalid="ignore", over="ignore"):
                    d = values(y, new.dtype).astype(np.float64) - u
                    squares += float(np.dot(d, d))
    except (Unreadable, ValueError, OSError):
        return unknown
    norm = stats.norm if stats is not None else math.sqrt(norm)
    update = math.sqrt(squares) if squares >= 0 else math.nan
    return {"update_norm": update, "relative": update / norm if norm else None, "equal": equal}


def _paired(a: Iterable[NDArray[Any]], b: Iterable[NDArray[Any]]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Blocks of two streams cut to equal lengths. Raises ValueError where one ends first."""
    left, right = iter(a), iter(b)
    x, y = next(left, None), next(right, None)
    while x is not None and y is not None:
        n = min(len(x), len(y), 1 << 17)
        if n:
            yield x[:n], y[:n]
        x, y = x[n:], y[n:]
        x = x if len(x) else next(left, None)
        y = y if len(y) else next(right, None)
    if x is not None or y is not None:
        raise ValueError("streams of unequal length")


def findings(c: Checkpoint) -> list[dict[str, Any]]:
    """Everything that is sick in one checkpoint, the gravest first."""
    from forensics.checkpoints import checkpoint_age as age
    from forensics.checkpoints import checkpoint_buffers as buffers
    from forensics.checkpoints import checkpoint_facts as facts
    from forensics.checkpoints import checkpoint_findings as sick
    from forensics.checkpoints import checkpoint_layers as layers
    from forensics.checkpoints import checkpoint_optimizer as optimizer
    from forensics.checkpoints import checkpoint_weights as weights
    from forensics.checkpoints.checkpoint_ranks import ranks

    values = (sick.foreign_code, sick.incomplete, sick.nonfinite, sick.absurd, layers.empty, layers.alike, layers.scale, layers.mixed_types)
    parts = (buffers.batchnorm, buffers.ema, buffers.adapters, buffers.saturated, ranks, weights.units, weights.start)
    state = (age.counters_disagree, age.optimizer, age.spikes, optimizer.moments, optimizer.steps, optimizer.missing, optimizer.rates, optimizer.schedule_reset, optimizer.scaler)
    found = [f for look in (*values, *parts, *state, facts.folder) for f in look(c)]
    return sorted(found, key=lambda f: ("critical", "warning", "info").index(f["severity"]))


# --- the document


def report(path: Path, path2: Path | None = None, *, progress: Progress | None = None) -> dict[str, Any]:
    """The document of `forensics checkpoint --json`: of PATH alone, or with what changed from PATH to PATH2.

    Raises ForensicsError where nothing in one of them can be read.
    """
    from forensics.checkpoints.checkpoint_changes import between

    first = read(path, progress=progress)
    if path2 is None:
        return to_json(first, findings(first))
    second = read(path2, progress=progress)
    changed = compare(first, second, progress=progress)
    others = [f | {"title": f"{path2}: {f['title']}"} for f in findings(second)]
    document = to_json(first, [*between(first, second, changed), *findings(first), *others], changed)
    document["path2"] = str(path2)
    document["refused"] += [r | {"at": f"{path2} {r['at']}"} for r in second.contents.refused]
    document["gaps"] += [_gap(g) for g in second.contents.gaps]
    return document


def to_json(
    c: Checkpoint, found: list[dict[str, Any]], changed: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Only JSON types; NaN and infinities as the strings of the contract."""
    n = c.contents
    document = {
        "schema": 1, "path": str(n.path), "format": n.format, "kind": c.kind, "step": c.step, "complete": n.complete, "bytes": n.bytes,
        "tensors": [], "findings": found, "refused": n.refused,
        "gaps": [_gap(g) for g in n.gaps], "changed": None,
    }  # fmt: skip
    plain = jsonable(document)
    assert isinstance(plain, dict)
    rows = c.rows()
    shown = names(str(r["name"]) for r in rows)  # two that differ only in a secret stay two
    plain["tensors"] = [_plain_row({**r, "name": shown.get(r["name"], r["name"])}) for r in rows]
    plain["changed"] = None if changed is None else [_plain_row(r) for r in changed]
    return plain


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """``jsonable`` of a row, of which there may be a hundred thousand: only its texts and odd numbers are looked at."""
    return {k: v if type(v) is int or (type(v) is float and math.isfinite(v)) or v is None or k == "shape" else jsonable(v) if k in _OPEN else _text_of(v) for k, v in row.items()}


_OPEN = ("name", "note")  # texts from the file; the others repeat


@cache
def _text_of(value: Any) -> Any:
    return jsonable(value)


def _gap(g: Gap) -> dict[str, Any]:
    return {"path": g.path, "at": g.at, "what": g.what, "lost": g.lost}
