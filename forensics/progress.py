"""A progress bar for long work, on a terminal only: nothing is shown for the first second, nothing when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0


@contextmanager
def bar(quiet: bool = False) -> Iterator[Any]:
    """A callable (what, done, total) that draws a bar once the work has taken longer than a second."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    shown: list[Any] = []

    def tick(what: str, done: int, total: int) -> None:
        if not shown and time.monotonic() - began > PATIENCE:
            from rich.console import Console
            from rich.progress import Progress

            progress = Progress(console=Console(stderr=True), transient=True)
            progress.start()
            shown.extend([progress, progress.add_task("", total=max(total, 1))])
        if shown:
            shown[0].update(shown[1], completed=done, description=what[-40:].replace("[", "("))

    try:
        yield tick
    finally:
        if shown:
            shown[0].stop()
