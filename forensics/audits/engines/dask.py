"""A Dask cluster: the client that is there, that of DASK_SCHEDULER_ADDRESS, else a cluster on this machine."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from forensics.audits.engines.cluster import Cluster, lost
from forensics.audits.engines.probe import Answer, Probe
from forensics.audits.engines.work import Task, failure
from forensics.errors import ForensicsError


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
            client, ours = distributed.default_client(), False
        except ValueError:
            client, ours = _client(distributed, width, stack)
        yield _cluster(client, None if ours else jobs)


def _client(distributed: Any, width: int, stack: contextlib.ExitStack) -> tuple[Any, bool]:
    """A client, and whether its cluster is one of ours."""
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    try:
        if address:
            return stack.enter_context(distributed.Client(address)), False
        quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        once = {"allowed_failures": 0}  # work.py tries again what was in hand when a worker died
        here = distributed.LocalCluster(n_workers=width, threads_per_worker=1, processes=True, scheduler_kwargs=once, **quiet)
        return stack.enter_context(distributed.Client(stack.enter_context(here))), True
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


def _cluster(client: Any, jobs: int | None) -> Cluster:
    name = f"the Dask cluster at {client.scheduler.address}"
    bound: dict[Any, frozenset[str]] = {}  # futures that only some workers may take
    stranded: set[Any] = set()  # of these, those that lost the last one

    def workers() -> dict[str, int]:
        present: dict[str, int] = client.nthreads()
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
        if future.status == "finished":
            return ""
        if future in stranded:
            return "every worker that could do it ended"
        if future.status != "error":
            raise lost(name)
        e = future.exception()
        return failure(e, death=type(e).__name__ == "KilledWorker")

    def cancel(futures: list[Any]) -> None:
        if futures and client.status == "running":
            client.cancel(futures)

    return Cluster(name, "Dask workers", jobs, workers, partial(_in_a_thread, client), submit, why, cancel)


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
