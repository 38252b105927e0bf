"""A way in which the run may have read its data: what it rests on, and the samples it gives a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from forensics.batches.torch_random import Ids

Turns = Sequence[Sequence[Ids]]  # [batch][rank] -> samples, of one epoch
Step = Callable[[int], list[Ids]]  # steps done before -> samples of each rank; [] where the order ends or is not known there


@dataclass(frozen=True)
class Loader:
    """`length` is the optimizer steps of an epoch, `size` the samples of the data set; None where unknown."""

    what: str
    step: Step
    rests_on: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    length: float | None = None
    size: int | None = None
    trust: float = 0.9  # that this is the loader, before the log is asked
    ids: str = "row numbers of the data set"
    resumes: tuple[str, ...] = ("continues",)  # what it may do after a restart, see `shifted`
    named: bool = True  # framework or config name it; else it is one of the usual ways
    total: int | None = None  # samples of a step, where its program may count epochs in samples done


def step_of(turns: Turns, accumulation: int, within: int) -> list[Ids]:
    """The samples of each rank in optimizer step `within` of an epoch (from 0), the last one smaller; [] beyond its end."""
    picked = turns[within * accumulation : (within + 1) * accumulation]
    return [np.concatenate([t[r] for t in picked]) for r in range(len(picked[0]))] if picked else []


def in_epochs(turns: Callable[..., Turns], accumulation: int, length: int, done: int) -> list[Ids]:
    """The same after `done` steps of all; `turns` is asked with ``epoch=``, `length` is the optimizer steps of one."""
    now, within = divmod(done, length)
    return step_of(turns(epoch=now), accumulation, within) if done >= 0 else []


def shifted(loader: Loader, resume: str, first: int) -> Loader:
    """The loader as it is after a restart whose first step has `first` steps done before it.

    "continues": goes on where it was. "begins the epoch again": from the first batch of that epoch. "begins anew": from the
    first batch of all.
    """
    if resume == "continues" or first == 0:
        return loader
    again = 0 if resume == "begins anew" else int(first // loader.length * loader.length) if loader.length else 0
    return replace(loader, step=lambda done: loader.step(done - first + again), what=f"{loader.what}; after the restart it {resume}")
