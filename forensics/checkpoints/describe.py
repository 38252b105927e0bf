"""What is in a checkpoint, and what changed between two.

``read`` streams every tensor once; memory stays bounded whatever the size. ``of_run`` gives the analysis the checkpoints
of a run without reading a value, ``tensors`` streams them, within a budget, the first time a detector asks.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.errors import ForensicsError
from parsers import checkpoints
from parsers.checkpoints.contents import SIZES, Contents, Tensor, check_sums, chunks
from parsers.checkpoints.small import together
from parsers.checkpoints.statistics import values
from parsers.checkpoints.units import streamed
from parsers.checkpoints.unreadable import Unreadable
from parsers.checkpoints.value_stats import Stats
from parsers.formats import checkpoint_files
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

Progress = Callable[[str, int, int], None]
REREAD = 4  # a file is streamed at most so many times over: many names may share the same bytes


@dataclass
class Checkpoint:
    """One checkpoint: its contents, and the statistics of each tensor as far as they were read."""

    contents: Contents
    step: int | None
    kind: str
    stats: dict[str, Stats] = field(default_factory=dict)  # by tensor name
    by_roles: dict[tuple[int, tuple[str, ...]], list[tuple[Tensor, Stats]]] = field(default_factory=dict)  # filled by looks.measured
    counted: Any = None  # filled by age.counters

    @property
    def path(self) -> Path:
        return self.contents.path


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
        raise ForensicsError(f"{path} cannot be read: {e}", "`forensics formats` lists what can be read.") from e
    except RecursionError as e:
        raise ForensicsError(f"{path} cannot be read: nested too deeply") from e
    return Checkpoint(contents, step_of(contents), kind_of(contents))


def measure(c: Checkpoint, *, progress: Progress | None = None, only: Callable[[Tensor], bool] | None = None) -> None:
    """Fills `stats`, one pass over each tensor. Tensors that are the same bytes are streamed once."""
    check_sums(c.contents)
    todo = [t for t in c.contents.tensors if not t.why and (only is None or only(t))]
    claimed = done = 0  # bytes
    limit = REREAD * max(c.contents.bytes, 1 << 24)
    same: dict[Any, list[Tensor]] = {}
    for t in todo:
        place = tuple((id(p.file), p.offset, p.count, p.shape, p.strides) for p in t.pieces) or id(t)
        if (place, t.dtype) in same:
            same[place, t.dtype].append(t)
            continue
        claimed += t.count * SIZES[t.dtype]
        if claimed > limit:
            c.contents.gap(f"{t.name[:80]}: more bytes are claimed than the file has, the rest is not read", t.at, t.source)
            break
        same[place, t.dtype] = [t]
    try:
        known = together(ts[0] for ts in same.values())
    except Exception:  # the one that breaks is met again below, alone
        known = {}
    for t, *others in same.values():
        if progress:
            progress(f"{c.path.name}: {t.name}", done, claimed)
        done += t.count * SIZES[t.dtype]
        try:
            s = known[id(t)] if id(t) in known else streamed(t)
        except (Unreadable, ValueError, OSError) as e:
            c.contents.gap(f"{t.name[:80]}: {e}", t.at, t.source)
            c.contents.complete = False
            continue
        except Exception as e:  # a fault of ours: the tensor costs only itself, and the file is not called incomplete
            c.contents.gap(f"{t.name[:80]}: its statistics failed: {type(e).__name__}: {e}"[:300], t.at, t.source)
            continue
        c.stats |= {x.name: s for x in (t, *others)}


_NOT_THE_STEP = lazy_re(r"optim|state\.\d+\.|callbacks|loops|sched|metrics|config|args")


def step_of(contents: Contents) -> int | None:
    """The step that the file states (``global_step``, ``iteration``, ``step``), else the one in its name.

    What accelerate saves beside random numbers as ``step`` counts micro-batches for its accumulation, from 0 where that is not used.
    """
    found = []
    for name, value in contents.values.items():
        source, _, plain = name.rpartition(":")
        if checkpoint_files.kind_of(source) == "rng":
            continue
        last = plain.rpartition(".")[2]
        named = last in vocabulary.SURE_STEP and plain.count(".") <= 1 and not _NOT_THE_STEP.search(plain[: -len(last)])
        if named and type(value) in (int, float) and 0 <= value < 1 << 53:
            found.append((plain.count("."), vocabulary.SURE_STEP.index(last), int(value)))
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


def place(t: Tensor) -> Any:
    """Equal for tensors that share their bytes: tied weights."""
    return tuple((id(p.file), p.offset) for p in t.pieces) or id(t)


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
