"""A Ray cluster: the one this process is in, that of RAY_ADDRESS, else one on this machine."""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forensics.audits.engines.cluster import Cluster, lost
from forensics.audits.engines.probe import Probe
from forensics.audits.engines.work import Task, failure
from forensics.errors import ForensicsError

_DEATHS = ("WorkerCrashedError", "OutOfMemoryError")  # of the process that had the task; a node that dies is no fault of it


@contextmanager
def opened(jobs: int | None, width: int, notes: Path) -> Iterator[Cluster]:
    """``jobs``: at most so many at once, where the cluster is there already; ``width``: processes, where there is none. Ray puts the
    folder in which it is started on the path of its workers, so it is started in an empty one."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as e:
        raise ForensicsError("--engine ray needs Ray", "pip install 'run-forensics[ray]'") from e
    address = os.environ.get("RAY_ADDRESS")
    there = ray.is_initialized()
    if not there:
        options: dict[str, Any] = (
            {"address": address} if address else {"address": "local", "num_cpus": max(width, 2), "include_dashboard": False}
        )
        (empty := notes / "empty").mkdir()
        try:
            with contextlib.chdir(empty):
                ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, RuntimeError, ValueError) as e:
            raise ForensicsError(f"cannot start or reach Ray: {e}", "RAY_ADDRESS names a cluster.") from e
    try:
        yield _cluster(ray, jobs if there or address else None)
    finally:
        if not there:
            ray.shutdown()


def _cluster(ray: Any, jobs: int | None) -> Cluster:
    head = _head(ray)
    name = f"the Ray cluster at {head}"
    pinned_to: Any = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    do = ray.remote(max_retries=0)(_do)
    on: dict[Any, str] = {}  # the node of a future that was sent to one

    def workers() -> dict[str, int]:
        if ":" in head:
            socket.create_connection(_place(head), timeout=5).close()  # before Ray is asked, which waits for a lost head until it ends us
        return {n["NodeID"]: int(n["Resources"]["CPU"]) for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1}

    def ask(probe: Probe, worker: str) -> Any:
        return do.options(num_cpus=0, scheduling_strategy=pinned_to(worker, soft=False)).remote(Probe.__call__, probe).future()

    def submit(task: Task[Any], item: Any, usable: dict[str, int] | None) -> Any:
        if not usable:
            return do.remote(task, item).future()
        held = Counter(on.values())
        node = min(usable, key=lambda n: held[n] / usable[n])
        future = do.options(scheduling_strategy=pinned_to(node, soft=False)).remote(task, item).future()
        on[future] = node
        return future

    def why(future: Any) -> str:
        on.pop(future, None)
        e = future.exception()
        if e is None:
            return ""
        if type(e).__name__ == "LocalRayletDiedError":  # Ray's process on this machine, without which nothing goes on
            raise lost(name)
        cause = getattr(e, "cause", None)  # what a task raised
        return failure(cause or e, death=type(e).__name__ in _DEATHS)

    def cancel(futures: list[Any]) -> None:
        for future in futures:
            ray.cancel(future.object_ref)

    return Cluster(name, "Ray nodes", jobs, workers, ask, submit, why, cancel)


def _do(task: Task[Any], item: Any) -> Any:
    return task(item)


def _head(ray: Any) -> str:
    """The address of the head; of a client (ray://) the address it was given."""
    try:
        return str(ray.get_runtime_context().gcs_address)
    except Exception:
        return os.environ.get("RAY_ADDRESS", "ray")


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
