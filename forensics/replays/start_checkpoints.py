"""From where to replay: the checkpoints of a run, good ones by their content, and the last one before the trouble."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics import outlines
from forensics.checkpoints import run_saves
from forensics.checkpoints.sick_values import damaged
from forensics.replays.runner import Lab
from parsers.tables import Run

MARGIN = 10  # steps: closer to the onset a checkpoint may hold the trouble already


@dataclass(frozen=True)
class Start:
    """A state to begin from; `path` None is the model as built, at step 0."""

    step: int
    path: str | None


def fetch(run: Run, first: float | None, last: float | None = None) -> None:
    """Fetches what a replay may begin from where the checkpoints of a run lie behind a URL: the last three good ones by their steps
    before the trouble at steps `first` to `last`, and the next one after; without a step, all. What is left of the others is removed:
    an adapter may look for checkpoints by itself, and would take a hole for zeros. Raises ForensicsError."""
    if not outlines.of(run):
        return
    files: dict[int, list[Path]] = {}
    for c in run_saves.of_run(run):
        files.setdefault(-1 if c.step is None else c.step, []).extend(c.contents.files)
    for row in run.tables["checkpoints"].select(["step", "source"]).to_pylist():
        if row["step"] is not None:
            files.setdefault(row["step"], []).append(run.file(row["source"]))
    steps = sorted(files)
    if first is not None:
        early = [s for s in steps if s <= first - MARGIN] or [s for s in steps if s < first]
        steps = early[-3:] + [s for s in steps if s > (first if last is None else last)][:1]
    run.copy.fill(p for s in steps for p in files[s])
    run.copy.drop()
    run.cache.clear()  # what was read of the outlines


def good(run: Run, own: Sequence[Sequence[Any]] | None) -> list[Start]:
    """Whole checkpoints without non-finite or absurd values, in step order; those that the adapter names are taken as they are."""
    if own is not None:
        return sorted((Start(step, path) for step, path in own), key=lambda s: s.step)
    found = []
    for c in run_saves.tensors(run):
        usable = c.step is not None and c.kind in ("weights", "full") and run_saves.is_whole(c)
        if usable and not damaged(c):
            found.append(Start(int(c.step or 0), str(Path(c.path).resolve())))
    return sorted(found, key=lambda s: s.step)


def before(starts: list[Start], onset: int, begin: int | None = None) -> Start:
    """The last good state at least MARGIN steps before the onset, else the last one before it, else the model as built."""
    limit = onset if begin is None else min(onset, begin)
    early = [s for s in starts if s.step <= limit - (MARGIN if begin is None else 0)]
    late = [s for s in starts if s.step < onset]
    return early[-1] if early else late[-1] if late and begin is None else Start(0, None)


def bound(window: int) -> int:
    """Steps that one culprit in a window of so many should cost: reproduced once, then bisected."""
    return math.ceil(window + 3 * window * math.log2(max(window, 2)))


def others(starts: list[Start], used: Start, until: int) -> list[Start]:
    """Two good states before the one used, and one after the trouble: other states to try a batch at."""
    earlier = [s for s in starts if s.step < used.step][-2:]
    later = [s for s in starts if s.step > until][:1]
    return [*reversed(earlier), *later]


def after(starts: list[Start], step: int) -> Start | None:
    """The first good state after a step."""
    return next((s for s in starts if s.step > step), None)


def within(run: Run, path: str | None) -> str | None:
    """A checkpoint as the report names it: beside what the run was read from."""
    return path and os.path.relpath(path, run.root if os.path.isdir(run.root) else os.path.dirname(run.root))


def load(lab: Lab, start: Start, name: str) -> tuple[int, list[str]]:
    """Loads a state under a name: the step that comes next, as the adapter counts (the optimizer's own count where it is one off what the file says), its parts."""
    told = lab.load(start.path, name)
    return step_of(told, start) + lab.offset, told["parts"]


def step_of(told: dict[str, Any], start: Start) -> int:
    """The step that a loaded state is of."""
    stated = told["step"] if told["step"] is not None else start.step
    count = told["count"]
    return int(count if count is not None and abs(count - stated) <= 1 else stated)
