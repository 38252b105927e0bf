"""Runs that differ only in the seed: their spread, runs off it, and whether one recipe beats another beyond it.

How it decides
    A group has one config but for seeds, names and places. The yardstick is the last level of the evaluation loss (else of the training
    loss). A run is off the spread where a t-test of it against the others, corrected for their number, is below 1 %. Two
    groups that differ in at most `FEW` settings are compared: paired by seed where at least three seeds are common (the
    same data order and init go into both), else by Welch's test; the interval is at 99 % after correction for the number of
    comparisons (Bonferroni), and a difference is called one only where the interval leaves out zero.

Cannot tell
    With one seed a side; and where the runs' configs are not logged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from forensics.detectors.seed_spread import APART, ERRORS
from forensics.many_runs.brief import Brief, differences
from forensics.many_runs.chance import t_limit, t_tail

ALPHA, OFF = 0.01, 0.01
FEW, MOST_COMPARED = 6, 400
METRICS = ("loss.eval", "loss.train")


def find(runs: Sequence[Brief]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """-> (groups, comparisons); docs/audit.md lists the keys."""
    by_recipe: dict[tuple[Any, ...], list[Brief]] = {}
    for r in runs:
        if r.seed is not None and (recipe := r.recipe):
            by_recipe.setdefault((r.family, recipe), []).append(r)
    members = [m for m in by_recipe.values() if len({r.seed for r in m}) > 1]
    members.sort(key=lambda m: (-len(m), m[0].id))
    groups = [_group(m) for m in members]
    pairs = list(islice(_alike([m[0] for m in members]), MOST_COMPARED))
    told = [(j, i, d, c) for i, j, d in pairs if (c := compare(members[j], members[i], len(pairs))) is not None]
    return groups, [{"a": a, "b": b, "differs": d} | c for a, b, d, c in told]


def _alike(firsts: Sequence[Brief]) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
    """(i, an earlier j of the same family, the settings that differ), where they are few. The values of a setting are numbered, so that one
    run is held against all earlier ones at once."""
    families: dict[str, list[int]] = {}
    for i, r in enumerate(firsts):
        families.setdefault(r.family, []).append(i)
    place = {i: (codes, n, at) for at in families.values() for codes in [_codes([firsts[i] for i in at])] for n, i in enumerate(at)}
    for i, r in enumerate(firsts):
        codes, n, at = place[i]
        apart = (codes[:n] != codes[n]).sum(axis=1)
        for m in np.flatnonzero((apart > 0) & (apart <= FEW)):
            yield i, at[m], differences(firsts[at[m]], r, seeds=False)


def _codes(runs: Sequence[Brief]) -> np.ndarray:
    """runs x settings: the number of the value, 0 where it is not set; only settings that are not the same in all runs."""
    configs = [dict(r.recipe) for r in runs]
    known: dict[str, dict[str | None, int]] = {k: {None: 0} for c in configs for k in c}
    table = [[of.setdefault(c.get(k), len(of)) for k, of in known.items()] for c in configs]
    codes = np.array(table, np.int32).reshape(len(runs), len(known))
    out: np.ndarray = codes[:, (codes != codes[0]).any(axis=0)]
    return out


def _metric(runs: Sequence[Brief]) -> str | None:
    """The first yardstick that at least two of the runs have."""
    return next((m for m in METRICS if sum(m in r.levels for r in runs) > 1), None)


def _group(runs: list[Brief]) -> dict[str, Any]:
    metric = _metric(runs)
    known = [r for r in runs if metric in r.levels]
    level = np.array([r.levels[str(metric)][0] for r in known])
    finite = level[np.isfinite(level)]
    return {
        "runs": [r.id for r in runs],
        "seeds": [r.seed for r in runs],
        "metric": metric,
        "mean": float(finite.mean()) if len(finite) else None,
        "sd": float(finite.std(ddof=1)) if len(finite) > 1 else None,
        "low": float(finite.min()) if len(finite) else None,
        "high": float(finite.max()) if len(finite) else None,
        "off": _off(known, level),
        "wide": wide(known, str(metric)),
    }


def _off(runs: list[Brief], level: np.ndarray) -> list[dict[str, Any]]:
    """Runs off the spread of the others; p is corrected for their number."""
    off: list[dict[str, Any]] = [{"id": r.id, "p": 0.0} for r, x in zip(runs, level, strict=True) if not math.isfinite(x)]
    finite = np.isfinite(level)
    for i, r in enumerate(runs):
        others = level[finite & (np.arange(len(level)) != i)]
        if not finite[i] or len(others) < 3:
            continue
        spread = float(others.std(ddof=1)) * math.sqrt(1 + 1 / len(others))
        p = len(runs) * t_tail((level[i] - others.mean()) / spread, len(others) - 1) if spread > 0 else 1.0
        if p < OFF:
            off.append({"id": r.id, "p": p})
    return off


def wide(runs: Sequence[Brief], metric: str) -> bool:
    """Whether the seed alone decides where a run ends: the rule of the detector `seed_spread`."""
    known = sorted(r.levels[metric] for r in runs if metric in r.levels and math.isfinite(r.levels[metric][0]))
    if len(known) < 2 or known[0][0] <= 0:
        return False
    (low, low_error), (high, high_error) = known[0], known[-1]
    apart = math.log(high / low)
    return apart > APART and apart > ERRORS * math.hypot(low_error / low, high_error / high)


def compare(a: Sequence[Brief], b: Sequence[Brief], comparisons: int = 1) -> dict[str, Any] | None:
    """b against a: effect (positive: b is higher) with its interval, and the verdict; None without a common yardstick."""
    metric = next((m for m in METRICS if all(sum(m in r.levels for r in x) > 1 for x in (a, b))), None)
    if metric is None:
        return None
    sides = [{str(r.seed): r.levels[metric] for r in x if metric in r.levels and math.isfinite(r.levels[metric][0])} for x in (a, b)]
    lost = len(a) + len(b) - len(sides[0]) - len(sides[1])
    common = sorted(sides[0].keys() & sides[1].keys())
    once = len(sides[0]) == len(a) and len(sides[1]) == len(b)  # no seed twice, no run without a level
    paired = len(common) >= 3 and once
    if paired:
        x = np.array([sides[1][s][0] - sides[0][s][0] for s in common])
        error = [math.hypot(sides[0][s][1], sides[1][s][1]) for s in common]
        effect, freedom = float(x.mean()), float(len(x) - 1)
        se = math.hypot(float(x.std(ddof=1)), float(np.mean(error))) / math.sqrt(len(x))
    else:
        one, two = (np.array([v[0] for v in s.values()]) for s in sides)
        if len(one) < 2 or len(two) < 2:
            return None
        effect = float(two.mean() - one.mean())
        noise = [float(np.mean([v[1] for v in s.values()])) for s in sides]
        parts = [(float(y.var(ddof=1)) + e * e) / len(y) for y, e in ((one, noise[0]), (two, noise[1]))]
        se = math.sqrt(sum(parts))
        spent = sum(p * p / (len(y) - 1) for p, y in zip(parts, (one, two), strict=True))
        freedom = se**4 / spent if spent > 0 else 1.0
    p = t_tail(effect / se, freedom) if se > 0 else float(effect == 0)
    half = t_limit(ALPHA / comparisons, freedom) * se
    different = p * comparisons < ALPHA
    return {
        "metric": metric,
        "pairs": len(common) if paired else 0,
        "runs": [len(sides[0]), len(sides[1])],
        "left_out": lost,
        "effect": effect,
        "interval": [effect - half, effect + half],
        "p": min(p * comparisons, 1.0),
        "verdict": ("b higher" if effect > 0 else "b lower") if different else "not separable from seed noise",
    }
