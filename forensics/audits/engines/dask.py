"""A Dask cluster: the client that is there, that of DASK_SCHEDULER_ADDRESS, else a cluster on this machine."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from forensics.audits.engines.cluster import Cluster, lost
from forensics.audits.engines.probe import Answer, Probe
from forensics.audits.engines.work import Task, failure
from forensics.errors import ForensicsError

MISSED = 20.0  # seconds; bound: a worker that is started again is back in a few, on a busy machine in ten


@contextmanager
def opened(jobs: int | None, width: int) -> Iterator[Cluster]:
    """``jobs``: at most so many at once, where the cluster is there already; ``width``: processes, where there is none."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as e:
        raise ForensicsError("--engine dask needs Dask", "pip install 'run-forensics[dask]'") from e
    with contextlib.ExitStack() as stack:
        stack.enter_context(_in_silence())
        try:
            client, ours = distributed.default_client(), None
        except ValueError:
            client, ours = _client(distributed, width, stack)
        yield _cluster(client, jobs, _as_it_is) if ours is None else _cluster(client, None, partial(_refill, ours, width, _Since()))


@dataclass
class _Since:
    """When a worker of ours was missed first."""

    moment: float | None = None


def _as_it_is(present: int) -> None:
    """A cluster of others."""


def _refill(here: Any, width: int, missed: _Since, present: int) -> None:
    """Starts workers in the place of those that stay away: a nanny whose worker dies while it starts does not start it again."""
    now = time.monotonic()
    if present >= width:
        missed.moment = None
    elif missed.moment is None:
        missed.moment = now
    elif now - missed.moment > MISSED:
        here.scale(len(here.worker_spec) + width - present)
        missed.moment = None


def _client(distributed: Any, width: int, stack: contextlib.ExitStack) -> tuple[Any, Any]:
    """A client, and its cluster where that is one of ours."""
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    try:
        if address:
            return stack.enter_context(distributed.Client(address)), None
        quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        once = {"allowed_failures": 0}  # work.py tries again what was in hand when a worker died
        here = distributed.LocalCluster(n_workers=width, threads_per_worker=1, processes=True, scheduler_kwargs=once, **quiet)
        return stack.enter_context(distributed.Client(stack.enter_context(here))), here
    except OSError as e:
        raise ForensicsError(f"cannot reach the Dask scheduler: {e}", "DASK_SCHEDULER_ADDRESS names it.") from e


@contextmanager
def _in_silence() -> Iterator[None]:
    """What Dask logs of a lost cluster is one sentence of ours."""
    named = [n for n in logging.root.manager.loggerDict if n.startswith(("distributed", "tornado"))]
    loggers = [logging.getLogger(n) for n in named]
    before = [log.level for log in loggers]
    for log in loggers:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(loggers, before, strict=True):
            log.setLevel(level)


def _cluster(client: Any, jobs: int | None, refill: Callable[[int], None]) -> Cluster:
    name = f"the Dask cluster at {client.scheduler.address}"
    bound: dict[Any, frozenset[str]] = {}  # futures that only some workers may take
    stranded: set[Any] = set()  # of these, those that lost the last one

    def workers() -> dict[str, int]:
        present: dict[str, int] = client.nthreads()
        refill(len(present))
        for future, allowed in list(bound.items()):
            if not allowed & present.keys():
                stranded.add(future)
                future.cancel()
        return present

    def submit(task: Task[Any], item: Any, usable: dict[str, int] | None) -> Any:
        future = client.submit(task, item, pure=False, retries=0, workers=None if usable is None else sorted(usable))
        if usable is not None:
            bound[future] = frozenset(usable)
        return future

    def why(future: Any) -> str:
        bound.pop(future, None)
        return _why(future, stranded, name)

    def cancel(futures: list[Any]) -> None:
        if futures and client.status == "running":
            client.cancel(futures)

    return Cluster(name, "Dask workers", jobs, workers, partial(_in_a_thread, client), submit, why, cancel)


def _why(future: Any, stranded: set[Any], name: str) -> str:
    """Why an ended future has no result; empty where it has. ``stranded``: those that we cancelled. Raises what ends the audit."""
    status = future.status  # read once, and first: it changes while we look
    if status == "finished":
        return ""
    if future in stranded:
        return "every worker that could do it ended"
    if status == "cancelled":
        raise lost(name)
    if status != "error":  # "lost", or "pending" anew: the scheduler will do it once more
        return "the worker that held its result ended"
    e = future.exception()
    return failure(e, death=type(e).__name__ == "KilledWorker")


def _in_a_thread(client: Any, probe: Probe, worker: str) -> Future[Any]:
    """Not as a task, which a busy worker would do late; and a worker that does not answer holds up nobody."""
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(client.run(_beside, probe, workers=[worker], on_error="return")[worker])
        except BaseException as e:  # it left, or cannot read the question
            answer.set_exception(e)

    threading.Thread(target=ask, name="forensics-probe", daemon=True).start()
    return answer


async def _beside(probe: Probe) -> Answer:
    """On a worker, without stopping what it does."""
    import asyncio  # Dask has it; the workers of other engines import this module, too

    return await asyncio.to_thread(probe)
