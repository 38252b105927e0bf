"""The comparisons across many runs are fast because they skip work: here against the plain way, which asks every pair."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from forensics.many_runs import seed_groups, shared_causes
from forensics.many_runs.brief import Brief, differences
from forensics.many_runs.chance import rare_tail, some_tail, strata_tail
from forensics.many_runs.shifts import Spiked, _Spikes


def one_by_one(chances: np.ndarray, hits: int) -> float:
    state = np.zeros(hits + 1)
    state[0] = 1.0
    for p in chances:
        state[1:-1], state[-1] = state[1:-1] * (1 - p) + state[:-2] * p, state[-1] + state[-2] * p
        state[0] *= 1 - p
    return float(state[-1])


@pytest.mark.parametrize("kind", ["small", "alike", "uneven", "some certain", "large"])
def test_the_tail_of_many_events_is_that_of_one_after_the_other(kind: str) -> None:
    rng = np.random.default_rng(0)
    for n in (501, 900, 2000):
        chances = {
            "small": rng.uniform(0, 0.02, n), "alike": np.full(n, 0.003), "uneven": rng.beta(0.3, 10, n),
            "some certain": np.where(rng.random(n) < 0.02, rng.uniform(0.3, 1, n), rng.uniform(0, 0.01, n)), "large": rng.uniform(0, 1, n),
        }[kind]  # fmt: skip
        mean = chances.sum()
        for hits in (1, int(mean / 3) + 1, int(mean), int(mean) + 2, int(mean + 5 * math.sqrt(mean)), int(mean + 15 * math.sqrt(mean))):
            if hits <= n:
                assert some_tail(chances, hits) == pytest.approx(one_by_one(chances, hits), rel=1e-9, abs=1e-300), hits
            if hits <= mean:
                assert (rare_tail(chances, hits) == 1.0 and one_by_one(chances, hits) >= 0.5) or hits == 0
    assert some_tail(np.full(5000, 0.01), 4000) == 0.0


def test_spikes_near_a_step_are_those_that_each_run_has() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        runs = [
            Spiked(f"r{i}", 0, 200, np.unique(rng.integers(0, 200, rng.integers(1, 9))), interval=int(rng.integers(1, 8))) for i in range(9)
        ]
        t = int(rng.integers(-5, 205))
        nearest = {r.id: int(r.spikes[np.argmin(np.abs(r.spikes - t))]) for r in runs}
        assert _Spikes(runs).hits(t) == {r.id: nearest[r.id] for r in runs if abs(nearest[r.id] - t) <= r.window // 2}


def briefs(rng: np.random.Generator, count: int, families: int) -> list[Brief]:
    found = []
    for i in range(count):
        config = {f"k{k}": str(rng.integers(1, 4)) for k in range(9) if rng.random() < 0.9} | {"seed": str(i % 3), "name": f"x{i}"}
        bad = rng.random() < (0.8 if config.get("k0") == "1" else 0.2)
        cause = str(rng.choice(["a", "b"])) if bad else None
        family = f"f{rng.integers(families)}"
        found.append(Brief(f"r{i}", "", family, bad, cause, config, {}, {"loss.train": (float(rng.normal()), 0.1)}, hosts=(f"h{i % 5}",)))
    return found


def test_groups_are_compared_that_differ_in_few_settings() -> None:
    rng = np.random.default_rng(2)
    for families in (1, 5):
        runs = briefs(rng, 60, families)
        plain = [
            (i, j, d)
            for i in range(60)
            for j in range(i)
            if runs[i].family == runs[j].family and 0 < len(d := differences(runs[j], runs[i], seeds=False)) <= seed_groups.FEW
        ]
        assert plain and list(seed_groups._alike(runs)) == plain


def every_pair(runs: list[Brief]) -> list[tuple[str, str, str, int, float]]:
    """Fisher's test for each cause and value, in sets."""
    marked = {c: {r.id for r in runs if r.unhealthy and c in ("any", r.cause)} for c in ("any", "a", "b")}
    values: dict[tuple[str, str], set[str]] = {}
    for r in runs:
        for k, v in [("host", h) for h in r.hosts] + [(k, v) for k, v in r.config.items() if k != "name"]:
            values.setdefault((k, v), set()).add(r.id)
    known = {key: set().union(*(have for (k, _), have in values.items() if k == key)) for key, _ in values}
    pairs = [
        (c, k, v, have)
        for c, bad in marked.items()
        for (k, v), have in values.items()
        if 2 <= len(have) < len(known[k]) and len(bad & known[k]) >= shared_causes.LEAST_HITS
    ]
    found = []
    for c, k, v, have in pairs:
        families = [{r.id for r in runs if r.family == f} & known[k] for f in sorted({r.family for r in runs})]
        p = len(pairs) * strata_tail(len(have & marked[c]), [(len(have & f), len(marked[c] & f), len(f)) for f in families if have & f])
        if p < shared_causes.ALPHA and len(have & marked[c]) >= shared_causes.LEAST_HITS:
            found.append((c, k, v, len(have & marked[c]), p))
    return found


@pytest.mark.parametrize("families", [1, 4, 40])
def test_shared_causes_are_those_of_every_pair(families: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_causes, "_merged", lambda found: found)
    met = 0
    for seed in range(10):
        runs = briefs(np.random.default_rng(seed), 150, families)
        told: list[dict[str, Any]] = shared_causes.find(runs)
        plain = every_pair(runs)
        assert sorted((e["cause"], e["key"], e["value"], e["runs"]) for e in told) == sorted(x[:4] for x in plain)
        assert sorted(e["p"] for e in told) == pytest.approx(sorted(x[4] for x in plain))
        met += len(plain)
    assert met > 10
    assert shared_causes.find([replace(r, unhealthy=False) for r in runs]) == []
