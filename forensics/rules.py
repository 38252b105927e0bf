"""Detectors, ours and those of installed packages, and the causes of installed packages (ours are data: ``forensics.causes``)."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from parsers import plugins

ENTRY_POINTS = {"detectors": "run_forensics.detectors", "causes": "run_forensics.hypotheses"}  # of other packages


@cache
def modules(kind: str) -> tuple[ModuleType, ...]:
    """The ``detectors``: the modules of that folder, then those of installed packages. The ``causes`` of installed packages."""
    package = importlib.import_module("forensics.detectors")
    names = [m.name for m in pkgutil.iter_modules(package.__path__)] if kind == "detectors" else []
    return (*(importlib.import_module(f"{package.__name__}.{name}") for name in names), *plugins.load(ENTRY_POINTS[kind]))


def id_of(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[-1]
