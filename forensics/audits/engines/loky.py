"""Processes on this machine, through joblib.

A process that dies takes down what joblib has in flight. So each process notes what it has in hand (one_place.at_work): after a death
what was noted has ended without a result, and the rest goes on in new processes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from forensics.audits import interrupts
from forensics.audits.engines.environment import environment
from forensics.audits.engines.work import Ended, Engine, Task, Work, failure

_FEW = ("POLARS_MAX_THREADS", "ARROW_NUM_THREADS", "ARROW_IO_THREADS")  # of a library's threads: there is one process a core


@contextmanager
def opened(jobs: int, notes: Path) -> Iterator[Engine]:
    from joblib import parallel_config

    with contextlib.ExitStack() as stack:
        stack.enter_context(environment({n: "1" for n in _FEW if n not in os.environ}))
        stack.enter_context(environment({"PYTHONWARNINGS": "ignore"}))  # of loky's tracker, of what an interrupted pool left
        stack.enter_context(interrupts.in_silence())
        stack.enter_context(parallel_config(backend="loky", inner_max_num_threads=1))
        yield Engine(partial(_stream, partial(_parallel, jobs), notes, jobs), notes)


Pool = Callable[[Task[Any], Sequence[Any]], Iterator[str]]


def _stream(pool: Pool, notes: Path, jobs: int, work: Work[Any], items: dict[str, Any]) -> Iterator[Ended]:
    left = dict(items)
    while left:
        try:
            for result in pool(work.task, list(left.values())):
                del left[key := work.take(result)]
                yield key, ""
            if left:
                raise RuntimeError("the pool ended early")
        except Exception as e:
            why = failure(e, death=isinstance(e, BrokenProcessPool))
            ended = [(k, "") for k in left if work.done(k)]  # before the death, and not told any more
            ended += [(k, why) for k in _in_hand(notes, left.keys() - dict(ended).keys(), jobs)]
            for key, why in ended:
                del left[key]
                yield key, why


def _in_hand(notes: Path, left: set[str], jobs: int) -> list[str]:
    """What was noted when a process died; without notes the next few."""
    noted = []
    for note in sorted(notes.glob("now-*")):
        noted.append(note.read_text())
        note.unlink(missing_ok=True)
    return [k for k in dict.fromkeys(noted) if k in left] or sorted(left)[: 2 * jobs]


def _parallel(jobs: int, task: Task[Any], items: Sequence[Any]) -> Iterator[str]:
    from joblib import Parallel, delayed

    if jobs == 1 or len(items) == 1:  # joblib would do one job in this process, where a death is ours
        options: dict[str, Any] = {"n_jobs": 2, "pre_dispatch": 1, "batch_size": 1}
    else:
        options = {"n_jobs": jobs, "pre_dispatch": "4*n_jobs", "batch_size": "auto"}
    _start_trackers()
    with interrupts.undisturbed():  # the call starts the processes and hands out the first tasks
        results = Parallel(return_as="generator_unordered", **options)(delayed(task)(i) for i in items)
    yield from results


def _start_trackers() -> None:
    """Those of multiprocessing and of loky: their start lets signals through again, which the workers then would hear."""
    from multiprocessing import resource_tracker as ours

    from joblib.externals.loky.backend import resource_tracker as theirs

    ours.ensure_running()
    theirs.ensure_running()
