"""What does the work: this process, processes on this machine, or a Dask or Ray cluster. One engine a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from forensics import safe_path
from forensics.audits import interrupts
from forensics.audits.engines import cluster, dask, loky, ray
from forensics.audits.engines.environment import environment
from forensics.audits.engines.probe import Probe
from forensics.audits.engines.team import Team
from forensics.audits.engines.work import Ended, Engine, Work


@contextmanager
def opened(name: str, jobs: int | None, notes: Path, probe: Callable[[], Probe]) -> Iterator[Engine]:
    """The engine, for as long as it is needed; ``jobs`` as the user says it, ``notes`` an empty folder here, ``probe`` gives what a
    worker on a cluster is asked."""
    from joblib import cpu_count

    width = jobs or int(cpu_count())
    with contextlib.ExitStack() as stack:
        stack.enter_context(environment(safe_path.ENVIRONMENT))
        if name == "here":  # in this process: for file systems that live in it
            yield Engine(_here, notes)
        elif name not in ("dask", "ray"):
            yield stack.enter_context(loky.opened(width, notes))
        else:
            with interrupts.undisturbed():
                found = stack.enter_context(dask.opened(jobs, width) if name == "dask" else ray.opened(jobs, width, notes))
            pulse = stack.enter_context(cluster.beating(found, Team(found.ask, probe(), found.kind)))
            yield Engine(partial(cluster.stream, found, pulse), notes)


def _here(work: Work[Any], items: dict[str, Any]) -> Iterator[Ended]:
    return ((work.take(work.task(item)), "") for item in items.values())
