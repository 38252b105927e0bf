"""What the comparisons across runs need of one run, small enough to hold ten thousand of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from forensics.many_runs.shifts import Spiked
from forensics.run.seed_group import FREE
from parsers.lazy_regex import lazy_re

_SEED = lazy_re(r"(?i)(?<!\w)\w*+(?<=seed)$")
LEAST_PROBABILITY = 0.3  # a cause less probable than this is not counted as the run's


@dataclass(frozen=True, eq=False)
class Brief:
    """One run; texts are interned, so that what a thousand configs share is held once."""

    id: str
    path: str
    family: str  # runs of one family log alike: framework and tag of the loss
    unhealthy: bool
    cause: str | None
    config: Mapping[str, str]
    settings: Mapping[str, Any]  # by meaning: lr, batch_size, warmup_steps ...
    levels: Mapping[str, tuple[float, float]]  # metric -> (last level, its standard error)
    hosts: tuple[str, ...] = ()
    shards: Mapping[str, float] = field(default_factory=dict)  # shard -> share of the steps that read it
    struck: tuple[str, ...] = ()  # shards that the spikes fell into, one each
    prefixes: str = ""  # `points:step:hash` of growing beginnings of the loss
    spiked: Spiked | None = None
    spikes: int = 0

    @property
    def recipe(self) -> tuple[tuple[str, str], ...]:
        """The config without seeds, names, places and moments."""
        return tuple(sorted((k, v) for k, v in self.config.items() if is_setting(k)))

    @property
    def seed(self) -> str | None:
        seeds = sorted((len(k), k) for k in self.config if is_seed(k))
        return self.config[seeds[0][1]] if seeds else None


@lru_cache(1 << 16)  # a thousand configs have the same keys
def is_seed(key: str) -> bool:
    return _SEED.search(key) is not None


@lru_cache(1 << 16)
def is_free(key: str) -> bool:
    """Whether it may differ between runs that are the same but for the seed: names, places, moments."""
    return FREE.search(key) is not None


def is_setting(key: str) -> bool:
    """Neither a seed, nor a name, a place or a moment."""
    return not is_seed(key) and not is_free(key)


def differences(a: Brief, b: Brief, *, seeds: bool = True) -> list[dict[str, Any]]:
    """Settings that differ, but for names and places."""
    one, two = ({k: v for k, v in r.config.items() if (seeds if is_seed(k) else not is_free(k))} for r in (a, b))
    return [{"key": k, "a": one.get(k), "b": two.get(k)} for k in sorted(one.keys() | two.keys()) if one.get(k) != two.get(k)]


def independent(runs: Sequence[Brief], duplicates: Sequence[Mapping[str, Any]]) -> list[Brief]:
    """Without the copies of a run, which would count it twice."""
    copies = {name for d in duplicates if d["kind"] != "fork" for name in d["runs"][1:]}
    return [r for r in runs if r.id not in copies]
