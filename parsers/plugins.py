"""Modules that other packages bring along: parsers, detectors and causes by entry point."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any


def load(group: str) -> list[ModuleType]:
    """The modules of an entry point group, by name; one that cannot be loaded is left out with a warning."""
    found = []
    for entry in sorted(_installed().select(group=group), key=lambda e: e.name):
        try:
            found.append(entry.load())
        except Exception as e:  # somebody else's package must not stop ours
            warnings.warn(f"{entry.value} ({group}) cannot be loaded: {type(e).__name__}: {e}", stacklevel=2)
    return found


@cache
def _installed() -> Any:  # its type is another one before Python 3.12
    """Of all packages at once: to find them costs more than a small log does."""
    return entry_points()
