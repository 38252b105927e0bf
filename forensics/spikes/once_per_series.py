"""Several detectors judge one series: what was worked out of the last ones is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")

KEPT, KEPT_VALUES = 24, 1 << 25  # bound: answers, and values of all their series together, 256 MB

_kept: dict[tuple[Any, ...], tuple[int, Any]] = {}  # the last used at the end; (values of its series, answer)


def once_per_series(compute: Callable[Concatenate[Floats, P], T]) -> Callable[Concatenate[Floats, P], T]:
    """A function of a series and of arguments that can be hashed, whose last answers are kept, arrays write-protected."""

    @wraps(compute)
    def kept(x: Floats, /, *args: P.args, **kwargs: P.kwargs) -> T:
        x = np.ascontiguousarray(x, np.float64)
        key = (compute, hashlib.sha1(x.data, usedforsecurity=False).digest(), *args, *sorted(kwargs.items()))
        size, answer = _kept.pop(key, (len(x), None))
        if answer is None:
            answer = compute(x, *args, **kwargs)
            if isinstance(answer, np.ndarray):
                answer.flags.writeable = False
        _kept[key] = size, answer
        with suppress(RuntimeError, StopIteration, KeyError):  # of another thread that does the same
            while len(_kept) > KEPT or (len(_kept) > 1 and sum(size for size, _ in _kept.values()) > KEPT_VALUES):
                del _kept[next(iter(_kept))]
        found: T = answer
        return found

    return kept
