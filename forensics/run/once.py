"""Facts of a run that many ask for are worked out once and kept with the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from parsers.tables import Run

P = ParamSpec("P")
T = TypeVar("T")


def once(compute: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """A function of a run, and of arguments that can be hashed, whose answer is kept in ``run.cache``. An exception is not."""

    @wraps(compute)
    def kept(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (compute, *args, *sorted(kwargs.items())) if kwargs else (compute, *args)  # asked 2,000 times a run
        found: T = run.cache.get(key, run)
        if found is run:
            found = run.cache[key] = compute(run, *args, **kwargs)
        return found

    return kept
