"""How the names of files and folders tell the process that wrote them: ``rank_3.jsonl``, ``node-0/``, ``mp_rank_00_model_states.pt``."""

from __future__ import annotations

import re

_PROCESS = r"(?:(?:local|global|data_parallel|model|tensor|zero_pp|mp|tp|dp)_?)?rank|worker|node|process|gpu"
_NUMBERED = re.compile(rf"(?i)[-_.]?(?:{_PROCESS})[-_.]?\d+")
_SHARD = re.compile(rf"(?i)(?:[-_.]?(?:{_PROCESS})[-_.]?|consolidated\.|-model_)\d+")  # Llama and Mistral number model-parallel shards
_RANK = re.compile(r"(?i)rank[-_.]?(\d{1,6})(?!\d)")


def without(path: str) -> str:
    """A name or path without its ranks: the same for all processes of one job."""
    return _NUMBERED.sub("", path)


def of_one_job(a: str, b: str) -> bool:
    """Do two paths differ in the number of the process alone?"""
    return a != b and without(a) == without(b)


def number(name: str) -> int | None:
    """The rank that a file's name says; the number of a node, a worker or a device is none."""
    found = _RANK.search(name)
    return int(found[1]) if found else None


def shard_of(path: str) -> str | None:
    """A checkpoint file's path without the first number of a rank; None where it has none."""
    return _SHARD.sub("", path, count=1) if _SHARD.search(path) else None
