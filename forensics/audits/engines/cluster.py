"""Work on a cluster: few tasks in flight, each told as it ends; a pulse tells a lost cluster from a task that kills its worker."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from forensics.audits.engines.team import Ask, Team
from forensics.audits.engines.work import Ended, Task, Work, failure
from forensics.errors import ForensicsError

AHEAD = 4  # tasks in flight for each that can run, so that no worker waits for us
EVERY = 1.0  # seconds between two looks at the cluster
PATIENCE = 30.0  # seconds without an answer: a restarted scheduler is back by then, and after 60 Ray ends the process that waits for its
# head (gcs_rpc_server_reconnect_timeout_s in ray_config_def.h)
UNSTAFFED = 120.0  # seconds without a worker: a cluster that grows with its tasks has to start machines
GOES_ON = "What is finished is kept: --resume (resume=True in Python) goes on from there, on this engine or another."


@dataclass(frozen=True)
class Cluster:
    """What an engine can do on its cluster. A worker is an address or an id, a future has ``add_done_callback``."""

    name: str  # "the Dask cluster at tcp://10.0.0.1:8786"
    kind: str  # of its workers: "Dask workers"
    most: int | None  # at once, where the user says so
    workers: Callable[[], dict[str, int]]  # those that are there, and how many tasks each runs at once; may raise, or hang
    ask: Ask
    submit: Callable[[Task[Any], Any, dict[str, int] | None], Any]  # to any of these workers; None: of all -> a future
    why: Callable[[Any], str]  # why an ended future has no result; empty where it has. Raises what ends the audit
    cancel: Callable[[list[Any]], None]


class Pulse:
    """The workers that can be used now, looked up every second beside the work."""

    def __init__(self, cluster: Cluster, team: Team) -> None:
        self._cluster, self._team = cluster, team
        self.usable: dict[str, int] = {}
        self.present = 0
        self.heard = self.staffed = time.monotonic()
        self.over = threading.Event()

    def beat(self) -> None:
        present = self._cluster.workers()
        able = self._team.able(present)
        self.usable = {w: n for w, n in present.items() if w in able}
        self.present = len(present)
        self.heard = time.monotonic()
        if self.usable:
            self.staffed = self.heard
        if self.usable and not self._team.waits():
            self._team.tell()

    def keep_beating(self) -> None:
        while not self.over.wait(EVERY):
            self._try_to_beat()

    def _try_to_beat(self) -> None:
        with contextlib.suppress(Exception):  # no answer: that is what `check` tells
            self.beat()

    def check(self) -> None:
        """Raises ForensicsError where the cluster is lost."""
        now = time.monotonic()
        if now - self.heard > PATIENCE:
            raise lost(self._cluster.name)
        if now - self.staffed > UNSTAFFED and not self._team.waits():
            raise ForensicsError(f"{self._cluster.name} has had no worker for {UNSTAFFED:.0f} s that can do the work", GOES_ON)

    def begin(self) -> None:
        """Asks every worker. Raises ForensicsError where none can do the work."""
        try:
            self.beat()
        except Exception as e:  # each engine has errors of its own
            raise lost(self._cluster.name) from e
        starter = [] if self.present else [self._cluster.submit(_nothing, "", None)]  # for which a cluster starts a worker
        while self._team.waits() or not (self.usable or self._team.unable()):
            time.sleep(EVERY / 20)
            self._try_to_beat()
            self.check()
        self._cluster.cancel(starter)
        if not self.usable:
            hint = "A worker needs this version of forensics, and the roots and the audit's folder under the same paths, with credentials."
            raise ForensicsError(f"no worker of {self._cluster.name} can do the work: {self._team.unable()}", hint)


def _nothing(item: str) -> str:
    return item


def lost(name: str) -> ForensicsError:
    return ForensicsError(f"lost {name}", GOES_ON)


@contextmanager
def beating(cluster: Cluster, team: Team) -> Iterator[Pulse]:
    pulse = Pulse(cluster, team)
    pulse.begin()
    beats = threading.Thread(target=pulse.keep_beating, name="forensics-pulse", daemon=True)
    beats.start()
    try:
        yield pulse
    finally:
        pulse.over.set()
        beats.join(timeout=10)  # who asks Ray after its end starts it again; one that waits for a lost cluster is left to wait


def stream(cluster: Cluster, pulse: Pulse, work: Work[Any], items: dict[str, Any]) -> Iterator[Ended]:
    """Each item as it ends. That one has no result counts where the cluster has answered since: else it is the cluster that is lost."""
    ended: SimpleQueue[Any] = SimpleQueue()
    waiting, flight, doubted = deque(items.items()), dict[Any, str](), list[tuple[float, str, str]]()
    try:
        while waiting or flight or doubted:
            while waiting and len(flight) < _room(cluster, pulse):
                key, item = waiting.popleft()
                future = cluster.submit(work.task, item, pulse.usable if len(pulse.usable) < pulse.present else None)
                flight[future] = key
                future.add_done_callback(ended.put)
            with contextlib.suppress(Empty):
                future = ended.get(timeout=EVERY)
                key, why = flight.pop(future), cluster.why(future) or _taken(work, future)
                if why:
                    doubted.append((time.monotonic(), key, why))
                else:
                    yield key, ""
            heard = pulse.heard
            yield from ((key, why) for when, key, why in doubted if when < heard)
            doubted = [d for d in doubted if d[0] >= heard]
            pulse.check()
    finally:
        cluster.cancel(list(flight))


def _taken(work: Work[Any], future: Any) -> str:
    """Why what a task gave back cannot be had; empty where it was taken."""
    try:
        work.take(future.result())
    except Exception as e:  # the worker that held it is gone
        return failure(e, death=False)
    return ""


def _room(cluster: Cluster, pulse: Pulse) -> int:
    """How many tasks may be in flight."""
    width = sum(pulse.usable.values())
    return cluster.most if cluster.most is not None and cluster.most < width else AHEAD * width
