"""What of a file tells where one process ends and the next begins: its steps, and values of what counts launches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Evidence:
    """What shows it, in words, and where these stand."""

    text: str
    source: str = ""
    at: int | None = None


@dataclass(frozen=True)
class Values:
    """The rows of one tag."""

    at: NDArray[np.int64]
    step: NDArray[np.int64]
    value: NDArray[np.float64]


@dataclass(frozen=True)
class Clock:
    """The rows of the tag whose steps tell a file's attempts best; places and values of what tells launches."""

    step: NDArray[np.int64]
    at: NDArray[np.int64]
    time: NDArray[np.float64]
    names: frozenset[str]
    tags: frozenset[str] = frozenset()
    epoch: Values | None = None
    loss: Values | None = None
    elapsed: Values | None = None  # time since the launch
    of_epochs: bool = False  # the steps are epochs
    launches: Values | None = None  # which launch this is, as the rows count

    @property
    def interval(self) -> int:
        """Usual steps between two rows."""
        grown = np.diff(self.step)
        grown = grown[grown > 0]
        return int(np.median(grown)) if len(grown) else 1
