"""Which framework wrote a run: by its tags, its config's keys, its formats and its files, as ``names.toml`` says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from parsers.name_rules import LONGEST, data, found


def detect(tags: Iterable[str], config_keys: Iterable[str] = (), formats: Iterable[str] = (), file_names: Iterable[str] = ()) -> str | None:
    """The framework that wrote a run, or None where nothing tells it.

    All that logs through Hugging Face's Trainer (TRL, Axolotl, LLaMA-Factory, ms-swift) is "hf-trainer", YOLOv5 is
    "ultralytics".
    """
    said = {"tag": tags, "config": config_keys, "format": formats}
    paths = _lines_of(file_names)
    files = frozenset(sign for sign in _file_signs() if paths and found(sign.partition(":")[2], paths, re.MULTILINE))
    return _detected(*((where, _lines_of(names)) for where, names in said.items()), files=files)


def _lines_of(names: Iterable[str]) -> str:
    return "\n".join(sorted({x[:LONGEST] for x in names}))


@cache
def _file_signs() -> frozenset[str]:
    """Each sign that a file name gives."""
    entries = data()["framework"].values()
    return frozenset(s for entry in entries for signs in entry["signs"] for s in signs if s.startswith("file:"))


@lru_cache(maxsize=64)  # the runs of a folder log the same tags; only their files are called otherwise
def _detected(*said: tuple[str, str], files: frozenset[str]) -> str | None:
    text = dict(said)

    def told(sign: str) -> bool:
        where, _, pattern = sign.partition(":")
        return sign in files if where == "file" else bool(text[where]) and _is_in(pattern, text[where])

    frameworks = data()["framework"].items()
    return next((name for name, entry in frameworks if any(all(map(told, signs)) for signs in entry["signs"])), None)


@lru_cache(maxsize=4096)
def _is_in(pattern: str, text: str) -> bool:
    return found(pattern, text, re.MULTILINE)
