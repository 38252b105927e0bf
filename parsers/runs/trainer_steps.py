"""Steps of the lines that transformers' Trainer printed without one, from the history that it saved: both say the epoch of each row.

A console log that counts its lines says nothing of steps; a second launch counts from 1 again. ``trainer_state.json`` in the same folder, or
below it, holds step and epoch of every row of all launches.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.runs.assemble import FileRead
from parsers.runs.equal_values import last_place
from parsers.tables import LINES_COUNTED

NOTE = "steps of {'loss': ...} lines: those of the trainer's state at the same epochs"
_ENOUGH = 0.9  # share of the printed epochs that the history has
_FEW = 3  # rows that may fit by chance

Points = tuple[NDArray[np.int64], NDArray[np.float64]]  # steps, or lines, and epochs


def placed(files: list[FileRead]) -> list[FileRead]:
    """The files, with the steps of the history for those that count their lines, where one lies beside them and fits."""
    counted = [f for f in files if f.source.format == "console" and LINES_COUNTED in f.source.note]
    if not counted:
        return files
    histories = [(f, epochs) for f in files if f.source.format == "trainer_state" and len((epochs := _epochs(f))[0]) >= _FEW]
    longest = max(histories, key=lambda h: len(h[1][0]), default=None)
    if longest is None:
        return files
    return [_at_steps(f, longest[1]) if any(f is c for c in counted) and _beside(f, longest[0]) else f for f in files]


def _beside(log: FileRead, state: FileRead) -> bool:
    """Does the history lie in the folder of the log, or below it?"""
    folder = log.source.path.rpartition("/")[0]
    return not folder or state.source.path.startswith(f"{folder}/")


def _epochs(f: FileRead) -> Points:
    """What the file says of epochs: steps and epochs."""
    rows = [(b["step"], b["value"], b["tag"]) for b in f.batches.get("metrics", [])]
    steps = [arrow.filled(s, -1)[np.array([t == "epoch" for t in tag.to_pylist()])] for s, _, tag in rows]
    values = [arrow.values(v)[np.array([t == "epoch" for t in tag.to_pylist()])] for _, v, tag in rows]
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0)
    step, epoch = np.concatenate(steps), np.concatenate(values)
    return step[step >= 0], epoch[step >= 0]


def _at_steps(f: FileRead, history: Points) -> FileRead:
    """A file with the history's steps in place of its count of lines; as it is where its epochs are not those of the history."""
    count, epoch = _epochs(f)
    if len(count) < _FEW:
        return f
    order = np.argsort(history[1], kind="stable")
    known, step = history[1][order], history[0][order]
    right = np.clip(np.searchsorted(known, epoch), 1, len(known) - 1) if len(known) > 1 else np.zeros(len(epoch), np.int64)
    nearest = np.where(np.abs(known[right - 1] - epoch) <= np.abs(known[right] - epoch), right - 1, right)
    fits = np.abs(known[nearest] - epoch) <= np.maximum(last_place(epoch), 1e-9)
    if fits.mean() < _ENOUGH:
        return f
    to_step = dict(zip(count[fits].tolist(), step[nearest][fits].tolist(), strict=True))
    batches = {**f.batches, "metrics": [_moved(b, to_step) for b in f.batches["metrics"]]}
    return replace(
        f, batches=batches, source=replace(f.source, note=f.source.note.replace(f"steps of {{'loss': ...}} lines: {LINES_COUNTED}", NOTE))
    )


def _moved(b: pa.RecordBatch, to_step: dict[int, int]) -> pa.RecordBatch:
    """Rows whose epoch is not known stand at the last one that is, as evaluations do, those before the first at step 0."""
    counts, steps = np.array(sorted(to_step.items()), np.int64).T
    counted = arrow.filled(b["step"], -1)
    before = np.searchsorted(counts, counted, side="right") - 1
    step = np.where(before >= 0, steps[np.maximum(before, 0)], 0)
    return arrow.with_column(b, "step", arrow.numbers(step, counted >= 0))
