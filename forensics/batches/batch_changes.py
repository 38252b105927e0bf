"""A lasting change of the samples that a step takes, as the log itself shows it: as a batch size, as samples or batches that it
counts, or as the steps that an epoch takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import median
from forensics.run.series import Series, names, series
from forensics.run.step_work import COUNTERS
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

Floats = NDArray[np.float64]
LEAST, STAYS = 10, 5  # bound: values; and on either side of a change, so that it lasts
GOES_ON = 0.75  # bound: of the intervals; a count that begins anew more often says little of the others
EPOCHS = 3  # bound: epochs on either side, of which two can be compared with one another
FACTOR = 1.5  # of the steps of an epoch; bound: batches come in powers of two, and data sets grow by less
# what a step takes, not what an evaluation does
_COUNTS = lazy_re(
    r"(?i)^(?!.*(?:val|eval|test|total|seen|consumed)).*?(?:^|[/_. ])(?:samples|examples|sequences|sentences|images|rows|graphs|pairs|bs|batch)"
    r"(?:[_ /](?:per|in|a)[_ /](?:step|update|batch|iteration|iter))?$"
)


@dataclass(frozen=True)
class BatchChange:
    """From `step` on a step takes other samples than before: as counted, or, with `of_epoch`, as steps of an epoch."""

    step: int
    before: float
    after: float
    of_epoch: bool = False

    @property
    def title(self) -> str:
        what = "Steps per epoch go" if self.of_epoch else "Batch size goes"
        return f"{what} from {self.before:g} to {self.after:g} at step {self.step}"

    @property
    def text(self) -> str:
        what = "steps an epoch" if self.of_epoch else "samples a step"
        return f"{self.before:g} {what} before step {self.step}, {self.after:g} from it on"


def batch_change(run: Run) -> BatchChange | None:
    """The first that shows; None where none does, and where sizes ramp up or only the last batch of an epoch is short."""
    for step, size in _counted(run):
        if found := _lasting(step, size):
            return found
    return _told(run) or _by_epochs(run) or _by_shares(run)


def _counted(run: Run) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """(steps, samples of each) by every count of them."""
    told = series(run, "batch.size")
    if told is not None and len(told) >= LEAST:
        yield told.step[told.alive], told.value[told.alive]
    else:
        yield from _listed(run)
    for so_far in (s for name in COUNTERS if (s := series(run, name)) is not None and len(s) > LEAST):
        if not np.isfinite(so_far.value).all():
            continue
        within = np.diff(so_far.attempt) == 0  # another launch may count anew
        apart, more = np.diff(so_far.step)[within], np.diff(so_far.value)[within]
        goes_on = more > 0  # a count within the data begins anew with each pass
        if (apart > 0).all() and goes_on.mean() >= GOES_ON:
            if so_far.name == "samples.seen" and so_far.unit in ("", "samples"):
                yield so_far.step[1:][within][goes_on], (more / apart)[goes_on]
        elif _whole(so_far):  # called so by who means those of a step
            yield so_far.step[so_far.alive], so_far.value[so_far.alive]
    for name in names(run, LEAST):
        if name.startswith("other/") and _COUNTS.match(name.removeprefix("other/")) and (s := series(run, name)) is not None and _whole(s):
            yield s.step[s.alive], s.value[s.alive]


def _whole(s: Series) -> bool:
    """Whole numbers that do not grow from row to row: what a step takes, not what was taken so far."""
    x = s.value[s.alive]
    return bool(np.isfinite(x).all() and (x > 0).all() and (x == np.round(x)).all() and not (np.diff(x) > 0).sum() > len(x) / 2)


def _listed(run: Run) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """From the files that list the batches."""
    table = run.tables["batches"]
    if not table.num_rows:
        return
    kept = arrow.present(table["sample"]) & arrow.present(table["step"])
    attempt = arrow.filled(table["attempt"], 0)[kept]
    step = arrow.filled(table["step"], 0)[kept]
    keys, counts = np.unique(np.stack([attempt, step]), axis=1, return_counts=True)
    order = np.argsort(keys[1], kind="stable")
    yield keys[1][order], counts[order].astype(np.float64)


def _lasting(step: NDArray[np.int64], size: Floats) -> BatchChange | None:
    change = np.flatnonzero(np.diff(size) != 0)
    if not 1 <= len(change) <= 2 or len(size) < LEAST:  # a ramp changes oftener; a last short batch changes back
        return None
    i, j = int(change[0]), int(change[-1])
    if min(i, len(size) - i) < STAYS or (len(change) == 2 and size[-1] == size[0]):
        return None
    after = size[j + 1] if j == i + 1 else size[i + 1]  # a mean over an interval in which it changed is neither
    return BatchChange(int(step[i + 1]), float(size[i]), float(after))


def _told(run: Run) -> BatchChange | None:
    """The same, where each epoch tells how many steps it took (``epoch 8 loss=1.05 steps=137``)."""
    s = series(run, "step")
    found = _lasting(s.step[s.alive], s.value[s.alive]) if s is not None and s.alive.any() and _whole(s) else None
    if found is None or max(found.before, found.after) < FACTOR * min(found.before, found.after):
        return None
    return replace(found, of_epoch=True)


def _by_epochs(run: Run) -> BatchChange | None:
    """The same data in more or fewer steps: epochs of one length, and from one of them on of another length."""
    s = series(run, "epoch")
    if s is None or not s.usable.any():
        return None
    step, epoch = s.step[s.usable], np.floor(s.value[s.usable])
    rows = np.append(np.flatnonzero(np.diff(epoch)), len(epoch) - 1)  # the last row of each epoch
    gaps, passed = np.diff(step[rows]).astype(np.float64), np.diff(epoch[rows])
    if len(gaps) < 2 * EPOCHS or (passed != 1).any() or (gaps <= 0).any():
        return None
    ends_short = gaps[:-1] if gaps[-1] < gaps[-2] else gaps  # a run may end within an epoch
    slack = 0.0 if len(rows) == len(epoch) else 2.0 * s.interval  # a row an epoch says its length exactly
    moves = np.flatnonzero(np.abs(np.diff(ends_short)) > slack)
    if len(moves) != 1:
        return None
    i = int(moves[0]) + 1
    before, after = median(ends_short[:i]), median(ends_short[i:])
    if min(i, len(ends_short) - i) < EPOCHS or max(before, after) < FACTOR * min(before, after):
        return None
    return BatchChange(int(step[rows[i]]), before, after, of_epoch=True)


def _by_shares(run: Run) -> BatchChange | None:
    """The same, where rows tell which share of an epoch is over: how much of it a step takes, on one level and from a row on on another one."""
    s = series(run, "epoch")
    if s is None or s.usable.sum() < 2 * STAYS:
        return None
    step, epoch = s.step[s.usable], s.value[s.usable]
    apart, more = np.diff(step), np.diff(epoch)
    goes_on = (apart > 0) & (more > 0)
    if (epoch == np.floor(epoch)).all() or goes_on.mean() < GOES_ON:
        return None
    taken, since = more[goes_on] / apart[goes_on], step[:-1][goes_on]
    i = int(np.argmax(np.abs(np.diff(np.log(taken))))) + 1  # where it moves most
    before, after = taken[:i], taken[i:]
    falls = float(before.min() / after.max()), float(after.min() / before.max())
    if min(len(before), len(after)) < STAYS or max(falls) < FACTOR:
        return None
    lengths = [float(round(1 / x.mean())) for x in (before, after)]
    return BatchChange(int(since[i]), lengths[0], lengths[1], of_epoch=True)
