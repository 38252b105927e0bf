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
from typing import Any

from forensics.many_runs.brief import Brief, is_seed
from forensics.many_runs.chance import some_tail, strata_tail
from forensics.run.seed_group import FREE

ALPHA = 0.01  # after correction
LEAST_HITS = 3
MOST = 100
PLACES = ("host", "shard")  # whoever runs the machines can act on these at once; a setting that picks out the same runs stands with them


def find(runs: Sequence[Brief]) -> list[dict[str, Any]]:
    """Entries ``{"cause", "key", "value", "runs", "expected", "p", "of", "ids", "same_runs"}``: nodes and shards, then settings, each the
    most certain first."""
    marked: dict[str, set[int]] = defaultdict(set)
    for i, r in enumerate(runs):
        if r.unhealthy:
            marked["any"].add(i)
            if r.cause not in (None, "unknown"):
                marked[str(r.cause)].add(i)
    values = _values(runs)
    families = {f: {i for i, r in enumerate(runs) if r.family == f} for f in {r.family for r in runs}}
    known = {key: set().union(*by_value.values()) for key, by_value in values.items()}
    pairs = [
        (cause, key, value, have)
        for cause in sorted(marked)
        for key, by_value in sorted(values.items())
        for value, have in sorted(by_value.items())
        if 2 <= len(have) < len(known[key]) and len(marked[cause] & known[key]) >= LEAST_HITS
    ]
    found = []
    for cause, key, value, have in pairs:
        hits = have & marked[cause]
        if len(hits) < LEAST_HITS:
            continue
        strata = _strata(have, marked[cause], known[key], families)
        expected = sum(n * m / total for n, m, total in strata)
        p = len(pairs) * strata_tail(len(hits), strata)
        if p < ALPHA:
            found.append(_entry(runs, (cause, key, value), hits, len(have), expected, p))
    found += _shards(runs)
    found.sort(key=lambda e: (e["key"] not in PLACES, e["p"], e["cause"] == "any", len(e["key"]), e["key"]))
    return _merged(found)[:MOST]


def _strata(have: set[int], marked: set[int], known: set[int], families: dict[str, set[int]]) -> list[tuple[int, int, int]]:
    """(with the value, with the cause, in all) of each family that has the value."""
    parts = [(have & f, marked & known & f, known & f) for f in families.values()]
    return [(len(h), len(m), len(k)) for h, m, k in parts if h]


def _values(runs: Sequence[Brief]) -> dict[str, dict[str, set[int]]]:
    """key -> value -> runs. Names and places are no settings; a key with another value in nearly every run is one of them."""
    values: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for i, r in enumerate(runs):
        for host in r.hosts:
            values["host"][host].add(i)
        for key, value in r.config.items():
            if is_seed(key) or not FREE.search(key):
                values[key][value].add(i)
    return {k: v for k, v in values.items() if 1 < len(v) <= max(len(runs) / 2, 2)}


def _shards(runs: Sequence[Brief]) -> list[dict[str, Any]]:
    """Shards that the spikes of more runs fall into than the shards' share of the steps explains."""
    tested = sorted({s for r in runs for s in r.struck})
    found = []
    for shard in tested:
        reading = [(i, r) for i, r in enumerate(runs) if r.struck and shard in r.shards]
        hits = {i for i, r in reading if shard in r.struck}
        if len(hits) < LEAST_HITS:
            continue
        chances = [1 - (1 - min(r.shards[shard], 1.0)) ** len(r.struck) for _, r in reading]
        p = len(tested) * some_tail(chances, len(hits))
        if p < ALPHA:
            found.append(_entry(runs, ("any", "shard", shard), hits, len(reading), sum(chances), p))
    return found


def _entry(runs: Sequence[Brief], what: tuple[str, str, str], hits: set[int], of: int, expected: float, p: float) -> dict[str, Any]:
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
