"""Which step each row of a log belongs to, once the whole file is known. A helper, no parser.

Rows without a step, in a file that has steps, keep no step; a row that has an epoch takes the last step logged
before it. A file without any step counts whole epochs, else the key of every row that counts under a name of one letter or the like,
else rows (from 0). And what logs do with steps (MMCV and
MMEngine logger hooks, read from their source):

* ``iter`` or ``batch`` starts again with every epoch: step = epochs before * length of an epoch + iter. The length
  is the last step of an epoch plus the spacing minus the first, as MMDetection's own ``analyze_logs.py`` has it (it
  knows the logged steps only, too: an epoch of 1267 steps logged every 50 counts 1250). An epoch that comes again
  after a restart keeps its place, and rows without an epoch belong to the one before them.
* MMCV's validation rows (``"mode": "val"``) carry the number of validation batches as ``iter``, MMEngine's carry
  the epoch as ``step``: such a row takes the last training step before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from parsers.records.parts import MISSING, Floats, Ints, Part
from parsers.records.vocabulary import EPOCH_STEPS, LAST_RESORT, THROUGH_THE_RUN, may_count, plain

_FIT = 2.0**63
OF_EPISODES = ("episode", "episodes")
_COUNTS = 5  # bound: rows by which a key of one letter shows that it counts


def place(parts: list[Part], fill: bool) -> Iterator[str]:
    """Gives every part its final steps; says what was changed. ``fill``: epochs or row numbers may stand for steps."""
    if fill and _counter(parts, OF_EPISODES) is not None and _lengths(parts):
        for part in parts:
            part.columns.append((part.step_key, None, np.asarray(part.steps, np.float64)))
            part.steps = None
    if all(p.steps is None for p in parts):
        if fill:
            yield from _number(parts)
        return
    both = any(p.also_iter for p in parts)
    train = [p for p in parts if p.steps is not None and not _misnumbered(p, both)]
    length = 0
    if any(p.epochs is not None and p.step_key not in THROUGH_THE_RUN for p in train):
        length = _lay_end_to_end(train)
        if length:
            yield f"the step starts again with every epoch: epochs of {length} steps were laid end to end"
    if fill:
        placed: tuple[Ints, Ints] | None = None
        for part in parts:
            if (part.steps is None and part.epochs is not None) or (part.steps is not None and _misnumbered(part, both)):
                placed = _in_file_order(train) if placed is None else placed
                _carry(part, *placed, length)


def _misnumbered(part: Part, both: bool) -> bool:
    """Validation rows whose step counts something else: MMCV's ``iter``, MMEngine's ``step`` (its others have both)."""
    if part.step_key == "iter" and part.evaluation:
        return True
    return both and part.step_key == "step" and not part.also_iter


def _in_file_order(train: list[Part]) -> tuple[Ints, Ints]:
    """Where the training steps stand, and the steps."""
    at = np.concatenate([p.at for p in train] or [np.zeros(0, np.int64)])
    steps = np.concatenate([p.steps for p in train if p.steps is not None] or [np.zeros(0, np.int64)])
    order = np.lexsort((steps, at))
    order = order[steps[order] != MISSING]
    return at[order], steps[order]


def _carry(part: Part, at: Ints, steps: Ints, epoch_length: int) -> None:
    """The last training step before each row; its own ``iter`` where that counts through the run and is ahead."""
    before = np.searchsorted(at, part.at) - 1
    carried = np.where(before >= 0, np.append(steps, MISSING)[before], MISSING)
    own = part.steps is not None and part.step_key == "iter" and not epoch_length
    part.steps = np.maximum(carried, part.steps) if own and part.steps is not None else carried


def _lay_end_to_end(train: list[Part]) -> int:
    """Steps that start again with every epoch -> steps that grow through the run. The length of an epoch, 0: they do not start again."""
    at = np.concatenate([p.at for p in train])
    order = np.argsort(at, kind="stable")
    steps = np.concatenate([p.steps for p in train if p.steps is not None])[order]
    logged = np.concatenate([np.full(len(p.at), np.nan) if p.epochs is None else p.epochs for p in train])[order]
    stated = np.flatnonzero((steps != MISSING) & np.isfinite(logged))
    s, e = steps[stated], np.floor(logged[stated])
    turns = e[1:] > e[:-1]
    drops = int((turns & (s[1:] <= s[:-1])).sum())
    if not drops or drops * 5 < int(turns.sum()) * 4:
        return 0
    length = _epoch_length(s, e)
    epochs = _carried_on(np.floor(logged))
    known = np.flatnonzero((steps != MISSING) & np.isfinite(epochs))
    s, e = steps[known], epochs[known]
    laid = (e - min(float(e.min()), 1.0)) * length + s
    fits = np.abs(laid) < _FIT
    counted = (np.where(fits, e - min(float(e.min()), 1.0), 0) * length).astype(np.int64) + s
    steps[known] = np.where(fits, counted, MISSING)
    back = np.empty(len(order), np.int64)
    back[order] = steps
    ends = np.cumsum([len(p.at) for p in train])
    for part, mine in zip(train, np.split(back, ends[:-1]), strict=True):
        if part.step_key not in THROUGH_THE_RUN:
            part.steps = mine
    return length


def _carried_on(values: Floats) -> Floats:
    """Each value that is not finite becomes the finite one before it."""
    place = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    return np.where(place >= 0, values[place], np.nan)


def _epoch_length(steps: Ints, epochs: NDArray[np.float64]) -> int:
    """How many steps an epoch has: the median over all epochs but the last, from the steps of each that were logged."""
    _, first, of = np.unique(epochs, return_index=True, return_inverse=True)
    ends = np.full(len(first), MISSING)
    np.maximum.at(ends, of, steps)
    whole = np.sort(np.delete(ends, first.argmax()) if len(ends) > 1 else ends)
    jumps, times = np.unique(np.diff(steps)[np.diff(steps) > 0], return_counts=True)
    spacing = int(jumps[times.argmax()]) if len(jumps) else 1
    return int(whole[len(whole) // 2]) + spacing - int(steps.min())


def _number(parts: list[Part]) -> Iterator[str]:
    """No step in the whole file: whole epochs, else a counter of every row, else the number of the row."""
    epochs = np.concatenate([p.epochs for p in parts if p.epochs is not None] or [np.zeros(0)])
    finite = epochs[np.isfinite(epochs)]
    whole = len(epochs) == sum(len(p.at) for p in parts) and not np.isinf(epochs).any() and bool((finite == np.floor(finite)).all())
    if whole and (len(epochs) == 1 or len(set(finite.tolist())) > 1):
        for part in parts:
            assert part.epochs is not None
            fits = np.abs(part.epochs) < _FIT  # false for NaN
            part.steps = np.where(fits, np.where(fits, part.epochs, 0).astype(np.int64), MISSING)
        yield EPOCH_STEPS
        return
    if (tag := _counter(parts)) is not None:
        for part in parts:
            part.steps = _of(part, tag).astype(np.int64)
            part.columns = [c for c in part.columns if _bare(part, c[0]) != tag]
        yield f"steps are those of {tag!r}, which every row counts up"
        return
    rows = np.unique(np.concatenate([p.at for p in parts])) if parts else np.zeros(0, np.int64)
    for part in parts:
        part.steps = np.searchsorted(rows, part.at)


def _lengths(parts: list[Part]) -> bool:
    """Are what is called steps the lengths of episodes? They go down about as often as up; those of a run go up."""
    if any(p.steps is None or (p.steps == MISSING).any() or p.step_key in THROUGH_THE_RUN for p in parts):
        return False
    order = np.argsort(np.concatenate([p.at for p in parts]), kind="stable")
    moves = np.diff(np.concatenate([p.steps for p in parts if p.steps is not None])[order])
    return bool((moves < 0).sum() * 4 > (moves != 0).sum() > _COUNTS)


def _counter(parts: list[Part], known: Sequence[str] = LAST_RESORT) -> str | None:
    """The key that all rows have and that counts up through the file: whole numbers that seldom fall, and mostly rise by one amount."""
    named = [{_bare(p, tag) for tag, where, _ in p.columns if where is None} for p in parts]
    common = set.intersection(*named) if parts else set()
    names = sorted((t for t in common if plain(t) in known), key=lambda t: LAST_RESORT.index(plain(t)))
    if parts and known is LAST_RESORT:  # whatever it is called: rows begin with what counts them
        first = next((_bare(parts[0], t) for t, where, _ in parts[0].columns if where is None), "")
        names += [first] if first in common - {*names} and may_count(first) else []
    for tag in names:
        order = np.argsort(np.concatenate([p.at for p in parts]), kind="stable")
        x = np.concatenate([_of(p, tag) for p in parts])[order]
        if len(x) < _COUNTS or not np.isfinite(x).all() or (x != np.floor(x)).any() or np.abs(x).max() >= _FIT:
            continue
        moves = np.diff(x)
        rises = moves[moves > 0]
        if (moves < 0).sum() * 4 <= len(moves) and len(rises) and np.unique(rises, return_counts=True)[1].max() * 2 >= len(rises):
            return tag
    return None


def _bare(part: Part, tag: str) -> str:
    """A tag without the word of an evaluation that its rows were given."""
    return tag.removeprefix(f"{part.evaluation}/") if part.evaluation else tag


def _of(part: Part, tag: str) -> Floats:
    return next(values for t, _, values in part.columns if _bare(part, t) == tag)
