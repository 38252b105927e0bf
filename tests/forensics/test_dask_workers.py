"""Workers of a Dask cluster on this machine."""

from __future__ import annotations

import os
import signal
import time

import pytest

from forensics.audits.engines import dask


def test_a_worker_that_no_nanny_starts_again_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it dies while it starts."""
    distributed = pytest.importorskip("distributed")

    async def leaves_it(*_: object) -> None: ...

    monkeypatch.setattr(distributed.Nanny, "_on_worker_exit", leaves_it)
    monkeypatch.setattr(dask, "MISSED", 1.0)
    with dask.opened(None, 1) as here:
        [first] = here.workers()
        [pid] = distributed.default_client().run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        for _ in range(600):
            if set(here.workers()) - {first}:
                break
            time.sleep(0.1)
        assert set(here.workers()) - {first}
