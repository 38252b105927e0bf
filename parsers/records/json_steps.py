"""Which step each row of a JSON log belongs to, once the whole file is known. A helper, no parser.

Rows without a step, in a file that has steps, keep no step; a row that has an epoch takes the last step logged
before it. A file without any step counts whole epochs, else rows (from 0). And what logs do with steps (MMCV and
MMEngine logger hooks, read from their source):

* ``iter`` or ``batch`` starts again with every epoch: step = epochs before * length of an epoch + iter. The length
  is the last step of an epoch plus the spacing minus the first, as MMDetection's own ``analyze_logs.py`` has it (it
  knows the logged steps only, too: an epoch of 1267 steps logged every 50 counts 1250).
* MMCV's validation rows (``"mode": "val"``) carry the number of validation batches as ``iter``, MMEngine's carry
  the epoch as ``step``: such a row takes the last training step before it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, repeat
from statistics import median_high, mode

from parsers.records.emit import Part
from parsers.records.json_values import GLOBAL_KEYS, MISSING


def place(parts: list[Part], fill: bool) -> Iterator[str]:
    """Gives every part its final steps; says what was changed. ``fill``: epochs or row numbers may stand for steps."""
    if all(p.steps is None for p in parts):
        if fill:
            _number(parts)
        return
    both = any(p.also_iter for p in parts)
    train = [p for p in parts if p.steps is not None and not _misnumbered(p, both)]
    length = 0
    if any(p.epochs is not None and p.step_key not in GLOBAL_KEYS for p in train):
        length = _lay_end_to_end(train)
        if length:
            yield f"the step starts again with every epoch: epochs of {length} steps were concatenated"
    if fill:
        placed: list[tuple[int, int]] | None = None
        for part in parts:
            if (part.steps is None and part.epochs is not None) or (part.steps is not None and _misnumbered(part, both)):
                placed = _in_file_order(train) if placed is None else placed
                _carry(part, placed, length)


def _misnumbered(part: Part, both: bool) -> bool:
    """Validation rows whose step counts something else: MMCV's ``iter``, MMEngine's ``step`` (its others have both)."""
    if part.step_key == "iter" and part.evaluation:
        return True
    return both and part.step_key == "step" and not part.also_iter


def _in_file_order(train: list[Part]) -> list[tuple[int, int]]:
    return sorted((a, s) for p in train for a, s in zip(p.at, p.steps or (), strict=True) if s != MISSING)


def _carry(part: Part, placed: list[tuple[int, int]], epoch_length: int) -> None:
    """The last training step before each row; its own ``iter`` where that counts through the run and is ahead."""
    steps = array("q")
    for at, own in zip(part.at, part.steps or repeat(MISSING), strict=False):
        before = bisect_left(placed, (at, MISSING)) - 1
        carried = placed[before][1] if before >= 0 else MISSING
        steps.append(max(carried, own) if part.step_key == "iter" and not epoch_length else carried)
    part.steps = steps


def _lay_end_to_end(train: list[Part]) -> int:
    """Steps that start again with every epoch -> steps that grow through the run. Their length, 0: none do."""
    in_order = list(chain.from_iterable(p.steps or () for p in sorted(train, key=lambda p: p.at[0])))
    if in_order == sorted(in_order):
        return 0
    rows = [(a, p, i) for p in train if p.steps is not None for i, a in enumerate(p.at)]
    if len(train) > 1:
        rows.sort(key=lambda r: r[0])
    steps = [p.steps[i] if p.steps is not None else MISSING for _, p, i in rows]
    epochs = [math.floor(p.epochs[i]) if p.epochs is not None and math.isfinite(p.epochs[i]) else None for _, p, i in rows]
    ups = drops = 0
    for k in range(1, len(rows)):
        a, b = epochs[k - 1], epochs[k]
        if a is not None and b is not None and b > a:
            ups += 1
            drops += steps[k] <= steps[k - 1]
    if not drops or drops * 5 < ups * 4:
        return 0
    length, first_epoch = _epoch_length(steps, epochs), min(e for e in epochs if e is not None)
    for (_, p, i), epoch, step in zip(rows, epochs, steps, strict=True):
        if p.steps is not None and step != MISSING and epoch is not None and p.step_key not in GLOBAL_KEYS:
            p.steps[i] = _fits((epoch - min(first_epoch, 1)) * length + step)
    return length


def _epoch_length(steps: Sequence[int], epochs: Sequence[int | None]) -> int:
    """How many steps an epoch has, from the steps of each that were logged."""
    ends: dict[int, int] = {}
    for step, epoch in zip(steps, epochs, strict=True):
        if epoch is not None and step != MISSING:
            ends[epoch] = max(step, ends.get(epoch, step))
    whole = list(ends.values())[:-1] or list(ends.values())
    jumps = [b - a for a, b in pairwise(steps) if b > a != MISSING]
    spacing = mode(jumps) if jumps else 1
    return median_high(whole) + spacing - min(s for s in steps if s != MISSING)


def _number(parts: list[Part]) -> None:
    """No step in the whole file: whole epochs, else the number of the row."""
    epochs = [e for p in parts for e in p.epochs or ()]
    rows = sum(len(p.at) for p in parts)
    whole = len(epochs) == rows and all(e != e or e.is_integer() for e in epochs)
    if whole and (rows == 1 or len(set(epochs)) > 1):
        for part in parts:
            part.steps = array("q", [_fits(int(e)) if math.isfinite(e) else MISSING for e in part.epochs or ()])
        return
    order = {a: n for n, a in enumerate(sorted({a for p in parts for a in p.at}))}
    for part in parts:
        part.steps = array("q", [order[a] for a in part.at])


def _fits(step: int) -> int:
    return step if -(2**63) < step < 2**63 else MISSING
