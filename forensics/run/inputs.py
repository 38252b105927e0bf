"""What detectors begin with: the series that they need, and its rows that count."""

from __future__ import annotations

import numpy as np

from forensics.errors import CannotTell
from forensics.run.series import Ints, Series, series
from parsers.tables import Run


def needed(run: Run, name: str) -> Series:
    """A metric that the detector's NEEDS names. Raises CannotTell where it was not logged."""
    s = series(run, name)
    if s is None:
        raise CannotTell(f"{name} was not logged")
    return s


def surviving(s: Series) -> Ints:
    """The rows with a finite value that no later attempt logged again."""
    return np.flatnonzero(s.alive & np.isfinite(s.value))


def loss_of(run: Run) -> Series:
    """The loss to look at: the training loss, else what is there."""
    s = series(run, "loss.train") or series(run, "loss.eval")
    if s is None:
        raise CannotTell("no loss was logged with a step")
    return s


def finite_loss(run: Run, least: int) -> tuple[Series, Ints]:
    """The loss to look at and its rows that count. Raises CannotTell where they are fewer than `least`."""
    s = loss_of(run)
    rows = surviving(s)
    if len(rows) < least:
        raise CannotTell(f"only {len(rows)} finite values of {s.tag}")
    return s, rows
