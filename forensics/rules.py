"""The rules, detectors and causes: ours, those of installed packages, and what each cause says of itself beside its ``weigh``."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any

from parsers import plugins

ENTRY_POINTS = {"detectors": "run_forensics.detectors", "causes": "run_forensics.hypotheses"}  # of other packages


@cache
def modules(kind: str) -> tuple[ModuleType, ...]:
    """The ``detectors`` or ``causes``: the modules of that folder, then those of installed packages."""
    package = importlib.import_module(f"forensics.{kind}")
    ours = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return (*ours, *plugins.load(ENTRY_POINTS[kind]))


def id_of(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[-1]


@cache
def said(name: str) -> dict[str, Any]:
    """What causes say under a name (CONTRIBUTING.md lists the names), by cause id; causes that say nothing are left out."""
    return {id_of(m): getattr(m, name) for m in modules("causes") if hasattr(m, name)}


def outcome_weights(*outcomes: str) -> dict[str, float]:
    """Decibans by cause of what an experiment showed: of several words for it, the one that a cause weighs highest."""
    told = {cause: [weight for o, weight in weights.items() if o in outcomes] for cause, weights in said("OUTCOMES").items()}
    return {cause: max(weights) for cause, weights in told.items() if weights}
