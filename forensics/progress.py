"""A progress bar for long work, on a terminal only: nothing is shown for the first second, nothing when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0


@contextmanager
def bar(quiet: bool = False, *, shown_as: Callable[[str], str], rate: bool = False) -> Iterator[Any]:
    """A callable (what, done, total) that draws a bar once the work has taken longer than a second.

    `what` may be the name of a file that anybody made: `shown_as` makes it safe for a terminal. With `rate` it shows how many are done of how many, how many a second, and the time left.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    shown: list[Any] = []

    def tick(what: str, done: int, total: int) -> None:
        if not shown and time.monotonic() - began > PATIENCE:
            from rich.console import Console
            from rich.progress import Progress

            columns = _with_rate() if rate else ()
            progress = Progress(*columns, console=Console(stderr=True), transient=True)
            progress.start()
            shown.extend([progress, progress.add_task("", total=max(total, 1), completed=done, first=done, rate="")])
        if shown:
            task = shown[0].tasks[0]
            spent = time.monotonic() - began
            if done < task.completed or total != task.total:  # another stretch of work, with a count of its own
                shown[0].reset(shown[1], total=max(total, 1), completed=done)
            a_second = max(done - task.fields["first"], 0) / max(spent, 1e-3)
            shown[0].update(shown[1], completed=done, description=shown_as(what)[-40:].replace("[", "("), rate=f"{a_second:.1f}/s")

    try:
        yield tick
    finally:
        if shown:
            shown[0].stop()


def _with_rate() -> tuple[Any, ...]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    done, rate = MofNCompleteColumn(), TextColumn("{task.fields[rate]}")
    return TextColumn("{task.description}"), BarColumn(), done, rate, TimeRemainingColumn()
