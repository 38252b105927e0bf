"""What a replay will cost, before it starts: steps, time, and room for the states that it keeps."""

from __future__ import annotations

from forensics.replays.request import Asked

STATES = 48  # that are kept along the way; each is the beginning of some experiments
FEWEST = 6
ON_DISK = 8  # times the memory for states, that they may take with those on disk


def most_states(asked: Asked) -> int:
    """How many states may be kept, however long the window is."""
    room = ON_DISK * asked.options.memory // max(int(asked.about["state_bytes"]), 1)
    return max(FEWEST, min(STATES, room))


def words(asked: Asked, steps: int) -> str:
    """At most so many steps, by the time of those that were run to check the adapter."""
    worker = asked.worker
    size = f"states of {_bytes(int(asked.about['state_bytes']))}"
    if not worker.steps:
        return f"at most {steps:,} steps; {size}"
    each = worker.seconds / worker.steps
    return f"at most {steps:,} steps of {_seconds(each)}, {_seconds(steps * each)}; {size}"


def _seconds(s: float) -> str:
    if s < 1:
        return f"{1000 * s:.2g} ms" if s < 0.01 else f"{1000 * s:.0f} ms"
    return f"{s:.2g} s" if s < 10 else f"{s:.0f} s" if s < 100 else f"{s / 60:.0f} min" if s < 7200 else f"{s / 3600:.1f} h"


def _bytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB" if n >= 1e6 else f"{n / 1e3:.0f} kB"
