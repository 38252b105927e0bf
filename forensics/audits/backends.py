"""Many places at once, through joblib: processes here (loky), or a Dask or Ray cluster that is already there.

A worker that dies takes down what joblib has in flight. So each process notes what it has in hand (worker.py); after such a
death the noted places are tried again, each alone, and the one that kills its worker again is given up, with the reason in its row. All others go on.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from forensics import safe_path
from forensics.audits import interrupts
from forensics.errors import ForensicsError

T = TypeVar("T")
Task = Callable[[T], str]
Pool = Callable[[Any, Any, int], Iterator[str]]  # (task, items, how many at once) -> keys as they are done


@dataclass(frozen=True)
class Workers:
    """An engine that is running: how it does a task for many items, how many at once, and the folder of its workers' notes."""

    pool: Pool
    jobs: int
    notes: Path


@dataclass(frozen=True)
class Work(Generic[T]):
    """A task for every item (key -> item), that gives back the key."""

    items: dict[str, T]
    task: Task[T]
    done: Callable[[str], bool]  # is the result of a key there?
    give_up: Callable[[T, str], None]  # notes an item that ends its worker, and why
    tick: Callable[[int], None]  # hears how many are finished


def run(work: Work[T], workers: Workers) -> None:
    """Does the work; an item that ends its worker twice is given up, and the others go on."""
    left, total = dict(work.items), len(work.items)
    while left:
        try:
            for key in workers.pool(work.task, list(left.values()), workers.jobs):
                left.pop(key, None)
                work.tick(total - len(left))
            if left:
                raise RuntimeError("the pool ended early")
        except ForensicsError:
            raise
        except Exception:  # TerminatedWorkerError, KilledWorker, WorkerCrashedError: each engine has its own
            left = {k: v for k, v in left.items() if not work.done(k)}
            for key in _suspects(workers, left):
                _alone(work, workers, key)
                del left[key]
                work.tick(total - len(left))


def _suspects(workers: Workers, left: dict[str, Any]) -> list[str]:
    """What was in hand when a worker died; without notes (another machine's) the next few."""
    noted = []
    for note in sorted(workers.notes.glob("now-*")):
        noted.append(note.read_text())
        note.unlink(missing_ok=True)
    return [k for k in dict.fromkeys(noted) if k in left] or list(left)[: 2 * workers.jobs]


def _alone(work: Work[T], workers: Workers, key: str) -> None:
    item, why = work.items[key], "it gave no result"
    try:
        if not _hung(workers.notes, key):
            list(workers.pool(work.task, [item], 1))
    except ForensicsError:
        raise
    except Exception as e:
        why = f"the process that worked at it died ({type(e).__name__}): killed, or out of memory"
    if not work.done(key):
        work.give_up(item, _hung(workers.notes, key) or why)
    for note in workers.notes.glob("now-*"):
        note.unlink(missing_ok=True)


def _hung(notes: Path, key: str) -> str:
    """Why the watchdog ended a worker; empty where it did not."""
    trace = notes / f"hung-{key}"
    try:
        text = trace.read_text(errors="replace")
    except OSError:
        return ""
    if "Timeout" not in text:
        return ""
    places = [line.strip() for line in text.splitlines() if line.strip().startswith("File")]
    return f"took too long and was ended{'; it was at ' + places[0] if places else ''}"


@contextmanager
def opened(name: str, jobs: int, notes: Path) -> Iterator[Workers]:
    """The engine, for as long as it is needed; ``notes``: an empty folder here."""
    from joblib import parallel_config

    def workers(pool: Pool) -> Workers:
        return Workers(pool, jobs, notes)

    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(safe_path.ENVIRONMENT))
        if name == "dask":
            with interrupts.undisturbed():
                stack.enter_context(_dask(jobs))
            stack.enter_context(parallel_config(backend="dask"))
            yield workers(_streamed)
        elif name == "ray":
            (empty := notes / "empty").mkdir()
            with interrupts.undisturbed():
                stack.enter_context(_ray(jobs, empty))
            stack.enter_context(parallel_config(backend="ray"))
            yield workers(_in_chunks)
        elif name == "here":  # in this process: for file systems that live in it
            yield workers(lambda task, items, jobs: iter(map(task, items)))
        else:
            few = {n: "1" for n in ("POLARS_MAX_THREADS", "ARROW_NUM_THREADS", "ARROW_IO_THREADS") if n not in os.environ}
            stack.enter_context(_environment(few))  # of a library's threads: there is one process a core
            stack.enter_context(_environment({"PYTHONWARNINGS": "ignore"}))  # of loky's tracker, of what an interrupted pool left
            stack.enter_context(interrupts.in_silence())
            stack.enter_context(parallel_config(backend="loky", inner_max_num_threads=1))
            yield workers(_streamed)


def _streamed(task: Task[T], items: Sequence[T], jobs: int) -> Iterator[str]:
    from joblib import Parallel, delayed

    if jobs == 1:  # joblib would do one job in this process, where a death is ours
        options: dict[str, Any] = {"n_jobs": 2, "pre_dispatch": 1, "batch_size": 1}
    else:
        options = {"n_jobs": jobs, "pre_dispatch": "4*n_jobs", "batch_size": "auto"}
    with interrupts.undisturbed():  # the call starts the processes and hands out the first tasks
        results = Parallel(return_as="generator_unordered", **options)(delayed(task)(i) for i in items)
    yield from results


def _in_chunks(task: Task[T], items: Sequence[T], jobs: int) -> Iterator[str]:
    """For a backend that gives its results at the end only."""
    from joblib import Parallel, delayed

    size = 16 * max(jobs, 2)
    for i in range(0, len(items), size):
        yield from Parallel(n_jobs=max(jobs, 2))(delayed(task)(x) for x in items[i : i + size])


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for the processes that start meanwhile."""
    before = {n: os.environ.get(n) for n in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for n, v in before.items():
            if v is None:
                os.environ.pop(n, None)
            else:
                os.environ[n] = v


@contextmanager
def _dask(jobs: int) -> Iterator[None]:
    """The client that is there; that of DASK_SCHEDULER_ADDRESS; else a cluster here."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as e:
        raise ForensicsError("--engine dask needs Dask", "pip install 'run-forensics[dask]'") from e
    try:
        distributed.default_client()
        yield
        return
    except ValueError:
        pass
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    with contextlib.ExitStack() as stack:
        try:
            cluster = address or stack.enter_context(
                distributed.LocalCluster(n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50)
            )
            stack.enter_context(distributed.Client(cluster))
        except OSError as e:
            raise ForensicsError(f"cannot reach the Dask scheduler: {e}", "DASK_SCHEDULER_ADDRESS names it.") from e
        yield


@contextmanager
def _ray(jobs: int, empty: Path) -> Iterator[None]:
    """The cluster that is there; that of RAY_ADDRESS; else one here. Ray puts the folder in which it is started on the path
    of its workers, so it is started in an empty one."""
    try:
        ray: Any = importlib.import_module("ray")
        register_ray: Any = importlib.import_module("ray.util.joblib").register_ray
    except ImportError as e:
        raise ForensicsError("--engine ray needs Ray", "pip install 'run-forensics[ray]'") from e
    started = not ray.is_initialized()
    if started:
        address = os.environ.get("RAY_ADDRESS")
        options: dict[str, Any] = {"address": address} if address else {"num_cpus": max(jobs, 2), "include_dashboard": False}
        try:
            with contextlib.chdir(empty):
                ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, RuntimeError, ValueError) as e:
            raise ForensicsError(f"cannot start or reach Ray: {e}", "RAY_ADDRESS names a cluster.") from e
    register_ray()
    try:
        yield
    finally:
        if started:
            ray.shutdown()
