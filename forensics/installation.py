"""What is installed around us: versions, extras, and what this machine trains on. For `forensics doctor`."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from typing import Any

from forensics import memory_limit
from forensics.version import VERSION
from parsers.lazy_regex import lazy_re

NAME = "run-forensics"
# What an extra is for: the formats that need it first
FOR = {
    "hdf5": "reads Keras .h5 and .keras checkpoints",
    "images": "PNG and JPEG for --show-data",
    "remote": "runs on S3, Google Cloud Storage, Azure or the Hugging Face Hub",
    "verify": "forensics tables --verify",
    "replay": "forensics replay, if the training environment is this one",
    "dask": "forensics audit --engine dask",
    "ray": "forensics audit --engine ray",
    "wandb": "runs that live on Weights & Biases",
    "mcp": "forensics mcp, for agents",
    "pandas": "run.metrics.to_pandas() in Python",
    "docs": "make docs-site",
}
_REQUIREMENT = lazy_re(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*([^;]*)(?:;.*extra\s*==\s*[\"']([\w-]+)[\"'])?")
_LEAST = lazy_re(r">=\s*([\d.]+)")


def report() -> dict[str, Any]:
    """``python``, ``platform``, ``forensics``, ``packages`` (what every install has), ``extras``, ``accelerator``, ``memory_limit`` (bytes or null)
    and ``problems``: sentences."""
    needed = _requirements()
    base = [_package(name, bound) for name, bound, extra in needed if not extra]
    extras = {
        extra: {"for": FOR.get(extra, ""), "packages": [_package(name, bound) for name, bound, e in needed if e == extra]}
        for extra in dict.fromkeys(e for _, _, e in needed if e and e not in ("test", "all"))
    }
    problems = [f"{p['name']} {p['version'] or 'is missing'}: {NAME} needs {p['needs']}" for p in base if not p["ok"]]
    problems += [] if needed else [f"{NAME} is not installed as a package: what it needs is not known"]
    limit = memory_limit.limit()
    if limit is not None and limit < memory_limit.LEAST:
        problems.append(memory_limit.sentence().partition(": ")[2])
    return {
        "forensics": VERSION,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": base,
        "extras": extras,
        "accelerator": accelerator(),
        "memory_limit": limit,
        "problems": problems,
    }


def _requirements() -> list[tuple[str, str, str]]:
    """Package, bound and extra ("" for every install) of each thing that we need."""
    try:
        texts = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        return []
    found = [m.groups("") for text in texts if (m := _REQUIREMENT.match(text))]
    return [(name, bound.strip(), extra) for name, bound, extra in found if name != NAME]


def _package(name: str, bound: str) -> dict[str, Any]:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = ""
    least = _LEAST.search(bound)
    ok = bool(version) and (least is None or _numbers(version) >= _numbers(least[1]))
    return {"name": name, "version": version or None, "needs": bound or "any version", "ok": ok}


def _numbers(version: str) -> list[int]:
    """1.10.0rc1 -> [1, 10, 0]"""
    whole = re.match(r"[\d.]*", version)
    return [int(n) for n in (whole[0] if whole else "").split(".") if n]


def accelerator() -> dict[str, Any]:
    """Which torch is here, and which devices it can use: ``torch`` (version or null), ``devices``, ``says``."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return {"torch": None, "devices": [], "says": "torch is not installed; only replay needs it"}
    try:
        import torch

        cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
        mps = ["Apple GPU (mps)"] if torch.backends.mps.is_available() else []
    except Exception as e:  # a build whose libraries are missing has errors of its own
        return {"torch": version, "devices": [], "says": f"torch cannot be imported: {type(e).__name__}: {e}"[:300]}
    return {"torch": version, "devices": cuda + mps, "says": "" if cuda or mps else "no GPU that torch can use; replay runs on the CPU"}
