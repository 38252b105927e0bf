"""Detectors, ours and those of installed packages, and the causes of installed packages (ours are data: ``forensics.causes``)."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from parsers import plugins


@cache
def detectors() -> tuple[ModuleType, ...]:
    """The modules of that folder, then those of installed packages."""
    package = importlib.import_module("forensics.detectors")
    ours = (importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__))
    return (*ours, *plugins.load("run_forensics.detectors"))


@cache
def further_causes() -> tuple[ModuleType, ...]:
    """Those of installed packages, each with a ``weigh(run, findings) -> Hypothesis | None``."""
    return tuple(plugins.load("run_forensics.hypotheses"))


def id_of(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[-1]
