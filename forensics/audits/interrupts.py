"""Ctrl-C while there are workers: the terminal sends it to all of them, and one line is enough."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def undisturbed() -> Iterator[None]:
    """Processes that start meanwhile, and later from threads that start meanwhile, do not hear Ctrl-C: it is ours to end them, and
    without a traceback from each. A Ctrl-C of the meantime counts afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def in_silence() -> Iterator[None]:
    """After a Ctrl-C loky's thread may trip over the pool that is being taken from it: nothing that a user has to see."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted: list[int] = []
    shown, heard = threading.excepthook, signal.getsignal(signal.SIGINT)

    def hear(number: int, frame: Any) -> None:
        interrupted.append(number)
        signal.default_int_handler(number, frame)

    threading.excepthook = lambda error: None if interrupted else shown(error)
    if heard is signal.default_int_handler:
        signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if heard is signal.default_int_handler:
            signal.signal(signal.SIGINT, heard)
        if not interrupted:  # the thread may end later
            threading.excepthook = shown
