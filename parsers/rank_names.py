"""How the names of files and folders tell the process that wrote them: ``rank_3.jsonl``, ``attempt_0/3/``, ``mp_rank_00_model_states.pt``."""

from __future__ import annotations

from parsers.lazy_regex import lazy_re

_PROCESS = r"(?:(?:local|global|data_parallel|model|tensor|zero_pp|mp|tp|dp)_?)?rank|worker(?:log)?|node|process|gpu"
_NUMBERED = lazy_re(rf"(?i)[-_.]?(?:{_PROCESS})[-_.]?\d+")
_SHARD = lazy_re(rf"(?i)(?:[-_.]?(?:{_PROCESS})[-_.]?|consolidated\.|-model_)\d+")  # Llama and Mistral number model-parallel shards
_RANK = lazy_re(r"(?i)(?<![a-z])(?<!lora[-_.])(?<!low[-_.])rank[-_.]?(\d{1,6})(?!\d)")  # the rank of an adapter is no process
_PADDLE = lazy_re(r"(?:^|/)workerlog\.(\d{1,6})$")  # paddle.distributed.launch: one file a rank
_BY_RANK = lazy_re(r"(?i)^(?:(?:per|by|all)[-_.]?)?ranks?[-_.]|[-_.](?:(?:per|by|all)[-_.]?)ranks?$|[-_.]ranks$")
_TORCHRUN = lazy_re(r"(?:^|(?<=/))(attempt_\d+)/(\d{1,6})(?=/)")  # torch.distributed.elastic: <run id>/attempt_0/<local rank>/stderr.log


def without(path: str) -> str:
    """A name or path without its ranks: the same for all processes of one job."""
    return _NUMBERED.sub("", _TORCHRUN.sub(r"\1", path))


def of_one_job(a: str, b: str) -> bool:
    """Do two paths differ in the number of the process alone?"""
    return a != b and without(a) == without(b)


def number(path: str) -> int | None:
    """The rank that a file's name says, else its folders; the number of a node, a worker or a device is none."""
    found = [m[1] for m in _RANK.finditer(path)] or [m[2] for m in _TORCHRUN.finditer(path)] or _PADDLE.findall(path)
    return int(found[-1]) if found else None


def shard_of(path: str) -> str | None:
    """A checkpoint file's path without the first number of a rank; None where it has none."""
    return _SHARD.sub("", path, count=1) if _SHARD.search(path) else None


def of_element(tag: str, place: object) -> str | None:
    """The tag of one number of a list that has one for each process (``rank_loss: [2.1, 2.2]``); None of any other list."""
    rest, listed = _BY_RANK.subn("", tag)
    return f"rank{place}/{rest}" if listed and rest and isinstance(place, int) else None
