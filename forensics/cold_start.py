"""What a process of the command spares itself: most of the CPU time of a small run is the start of Python and its libraries."""

from __future__ import annotations

import gc
import os

_THREADS = "OPENBLAS_NUM_THREADS"  # NumPy's linear algebra starts a thread a core when it loads; no product here is worth a second one
_NEW_OBJECTS = 50_000  # collected after so many (CPython 3.11: 700); measured: looking at what stays took 6 % of the time of `tables`, 9 % of `analyze`
_ours: set[str] = set()


def prepare() -> None:
    """Before anything heavy is imported, in a process that runs this command and nothing else."""
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    if _THREADS not in os.environ:
        os.environ[_THREADS] = "1"
        _ours.add(_THREADS)


def environment() -> dict[str, str]:
    """The environment for programs of the user, which may want every core."""
    return {name: value for name, value in os.environ.items() if name not in _ours}
