"""Causes that come oftener on one host, in one shard, under one setting, than chance allows.

Each pair of a cause and a value is tested by Fisher's exact test (one-sided: more than expected) among the runs whose
value of that key is known, kept apart by family (framework and tag of the loss): that one project uses another value than the
others and breaks oftener is no effect of the value. p is corrected for all pairs looked at (Bonferroni). Spikes in a shard are tested against the
share of the steps that read it. Settings that pick out the same runs are one entry: from outside they cannot be told apart.
The cause "any" stands for "went wrong at all", and is listed only where no single cause is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.many_runs.brief import Brief, is_free, is_seed
from forensics.many_runs.chance import rare_tail, strata_tail

ALPHA = 0.01  # after correction
LEAST_HITS = 3
MOST = 100
PLACES = ("host", "shard")  # whoever runs the machines can act on these at once; a setting that picks out the same runs stands with them
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Pair:
    """A cause and a value that come together oftener than expected: the runs with the value (by index) and those that have the cause, too;
    of each family, the runs with the cause and all, among those whose value of the key is known."""

    cause: str
    key: str
    value: str
    have: Ints
    hits: Ints
    marked: Ints
    total: Ints

    def strata(self, family: Ints) -> list[tuple[int, int, int]]:
        """(with the value, with the cause, in all) of each family that has the value."""
        here, drawn = np.unique(family[self.have], return_counts=True)
        return list(zip(drawn.tolist(), self.marked[here].tolist(), self.total[here].tolist(), strict=True))


def find(runs: Sequence[Brief]) -> list[dict[str, Any]]:
    """Entries ``{"cause", "key", "value", "runs", "expected", "p", "of", "ids", "same_runs"}``: nodes and shards, then settings, each the
    most certain first."""
    numbers: dict[str, int] = {}
    family = np.array([numbers.setdefault(r.family, len(numbers)) for r in runs], np.int64)
    marks, looked, found = _marks(runs), 0, []
    pairs: list[_Pair] = []
    for key, values in _values(runs).items():
        count, hopeful = _pairs(key, values, marks, family)
        looked += count
        pairs += hopeful
    for pair in sorted(pairs, key=lambda p: (p.cause, p.key, p.value)):
        strata = pair.strata(family)
        if (p := looked * strata_tail(len(pair.hits), strata)) < ALPHA:
            expected = sum(n * m / total for n, m, total in strata)
            found.append(_entry(runs, (pair.cause, pair.key, pair.value), pair.hits.tolist(), len(pair.have), expected, p))
    found += _shards(runs)
    found.sort(key=lambda e: (e["key"] not in PLACES, e["p"], e["cause"] == "any", len(e["key"]), e["key"]))
    return _merged(found)[:MOST]


def _marks(runs: Sequence[Brief]) -> dict[str, np.ndarray]:
    """cause -> whether each run has it."""
    marked: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(runs), bool))
    for i, r in enumerate(runs):
        if r.unhealthy:
            marked["any"][i] = True
            if r.cause not in (None, "unknown"):
                marked[str(r.cause)][i] = True
    return marked


def _values(runs: Sequence[Brief]) -> dict[str, dict[str, list[int]]]:
    """key -> value -> runs. Names and places are no settings; a key with another value in nearly every run is one of them."""
    values: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, r in enumerate(runs):
        for host in dict.fromkeys(r.hosts):
            values["host"][host].append(i)
        for key, value in r.config.items():
            if is_seed(key) or not is_free(key):
                values[key][value].append(i)
    return {k: v for k, v in values.items() if 1 < len(v) <= max(len(runs) / 2, 2)}


def _pairs(key: str, values: dict[str, list[int]], marks: dict[str, np.ndarray], family: Ints) -> tuple[int, list[_Pair]]:
    """(how many pairs of a cause and a value of this key are looked at, those that come together oftener than expected: no others can be
    significant, see `chance.rare_tail`)."""
    runs = np.array([i for have in values.values() for i in have], np.int64)
    of = np.array([len(have) for have in values.values()])
    ends, value = np.cumsum(of), np.repeat(np.arange(len(of)), of)
    names, known = list(values), np.unique(runs)
    tested = (of >= 2) & (of < len(known))
    total = np.bincount(family[known], minlength=int(family.max()) + 1)
    looked, found = 0, []
    for cause, mark in marks.items():
        if mark[known].sum() < LEAST_HITS:
            continue
        looked += int(tested.sum())
        marked = np.bincount(family[known[mark[known]]], minlength=len(total))
        hits = np.bincount(value, weights=mark[runs])
        expected = np.bincount(value, weights=(marked / np.maximum(total, 1))[family[runs]])
        for v in np.flatnonzero(tested & (hits >= LEAST_HITS) & (hits > expected * (1 - 1e-9))):
            have = runs[ends[v] - of[v] : ends[v]]
            found.append(_Pair(cause, key, names[v], have, have[mark[have]], marked, total))
    return looked, found


def _shards(runs: Sequence[Brief]) -> list[dict[str, Any]]:
    """Shards that the spikes of more runs fall into than the shards' share of the steps explains."""
    tested = sorted({s for r in runs for s in r.struck})
    reading: dict[str, list[int]] = {s: [] for s in tested}
    for i, r in enumerate(runs):
        for shard in r.shards if r.struck else ():
            if shard in reading:
                reading[shard].append(i)
    found = []
    for shard in tested:
        hits = [i for i in reading[shard] if shard in runs[i].struck]
        if len(hits) < LEAST_HITS:
            continue
        chances = [1 - (1 - min(runs[i].shards[shard], 1.0)) ** len(runs[i].struck) for i in reading[shard]]
        p = len(tested) * rare_tail(np.array(chances), len(hits))
        if p < ALPHA:
            found.append(_entry(runs, ("any", "shard", shard), hits, len(reading[shard]), sum(chances), p))
    return found


def _entry(runs: Sequence[Brief], what: tuple[str, str, str], hits: list[int], of: int, expected: float, p: float) -> dict[str, Any]:
    cause, key, value = what
    return {
        "cause": cause,
        "key": key,
        "value": value,
        "runs": len(hits),
        "of": of,
        "expected": round(expected, 3),
        "p": p,
        "ids": sorted(runs[i].id for i in hits)[:200],
        "same_runs": [],
    }


def _merged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for what picks out the same runs; "any" gives way to a cause."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    named = {(e["key"], e["value"]) for e in found if e["cause"] != "any"}
    for e in found:
        if e["cause"] == "any" and (e["key"], e["value"]) in named:
            continue
        first = kept.setdefault((e["cause"], tuple(e["ids"]), e["of"]), e)
        if first is not e:
            first["same_runs"].append(f"{e['key']}={e['value']}")
    return list(kept.values())
