"""Batches that are bad for many runs: runs over one data order spike where they read the same batch.

One run's spike may be anybody's fault; twenty runs that spike at the same step read the same batch there, and that needs
no replay. Step counters may be shifted against each other (another warmup, a log that counts otherwise), so the shift is
estimated too.

How it decides
    1. Positions. A cluster is a step where more runs spike (within `TOLERANCE` steps, or one logging interval) than
       chance allows: each run's chance of a spike there is its own number of spikes over its own length, raised where
       the runs of the family tend to spike in that phase anyway (the spikes around it, without those at the step
       itself, within a twentieth of the length and less). The tail is exact (Poisson binomial), corrected for every place
       looked at, and has to be below `ALPHA`.
    2. Shifts of groups. The clusters that the same runs are in have one counter. All other runs together are laid over
       these batches at every shift that their spikes allow. One match can always be had by some shift, so what counts is
       the second: at the shift that fits one batch best, another has to be met by more runs than chance allows.
    3. Shifts of single runs. What is left is tried alone in the same way, corrected for the shifts and runs tried.

Cannot tell
    One bad batch seen through shifted counters only: a single coincidence fits any shift. And where all counters agree, a
    schedule that changes at that very step in every run looks the same; the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.many_runs.chance import rare_tail
from forensics.many_runs.shifts import TOLERANCE, Batch, Cluster, Spiked, batches_of

ALPHA = 1e-4  # of a whole family, after correction
PHASES = (0.05, 0.02, 0.008)  # of the length: how near two spikes are "in the same phase" of the training
LEAST_RUNS = 3
MOST_PLACES = 200  # looked at for one cluster, the most crowded first


def find(runs: Sequence[Spiked]) -> list[dict[str, Any]]:
    """The shared batches of all families, the most certain first; the keys are those of `audit.json`."""
    families: dict[str, list[Spiked]] = {}
    for run in runs:
        families.setdefault(run.family, []).append(run)
    crowded = {k: v for k, v in families.items() if sum(bool(len(r.spikes)) for r in v) >= LEAST_RUNS}
    found = [b for name in sorted(crowded) for b in _family(crowded[name], len(crowded))]
    return sorted(found, key=lambda b: (b["p"], -b["runs"], b["first"]))


def _family(runs: list[Spiked], families: int) -> list[dict[str, Any]]:
    clusters = _clusters(runs, families)
    if not clusters:
        return []
    batches, offsets = batches_of(runs, clusters)
    return [_entry(b, offsets, runs) for b in batches if _same_samples(b, runs) is not False]


# ---------------------------------------------------------------------------------------------------- 1. positions


class _Table:
    """The runs of a family as arrays, and their spikes in one sorted row."""

    def __init__(self, runs: list[Spiked]) -> None:
        self.runs = runs
        self.first, self.last, self.length, self.window, self.count = (
            np.array([f(r) for r in runs], np.int64)
            for f in (lambda r: r.first, lambda r: r.last, lambda r: r.length, lambda r: r.window, lambda r: len(r.spikes))
        )
        step = np.concatenate([r.spikes for r in runs]).astype(np.int64)
        order = np.argsort(step, kind="stable")
        self.step, self.run = step[order], np.repeat(np.arange(len(runs)), self.count)[order]
        self.left = np.ones(len(step), bool)  # not yet in a cluster

    def near(self, t: int, reach: float) -> slice:
        a, b = np.searchsorted(self.step, [t - reach, t + reach + 1e-9], side="left")
        return slice(int(a), int(b))

    def at(self, t: int) -> np.ndarray:
        """The spikes near enough to t for the run that has the widest window."""
        here = self.near(t, int(self.window.max()) // 2)
        return np.arange(here.start, here.stop)

    def hits(self, t: int) -> dict[int, int]:
        """run -> the free spike nearest to t, within the window of that run."""
        rows = self.at(t)
        rows = rows[self.left[rows] & (np.abs(self.step[rows] - t) <= self.window[self.run[rows]] // 2)]
        rows = rows[np.argsort(-np.abs(self.step[rows] - t), kind="stable")]
        return dict(zip(self.run[rows].tolist(), self.step[rows].tolist(), strict=True))

    def take(self, t: int) -> None:
        rows = self.at(t)
        self.left[rows[np.abs(self.step[rows] - t) <= self.window[self.run[rows]] // 2]] = False

    def chances(self, t: int) -> np.ndarray:
        """Of each run that covers t: a spike of its own within the window, by its count, its length, and the phase."""
        here = self.near(t, TOLERANCE)
        inside = here.stop - here.start
        phase = 0.0
        for share in PHASES:
            reach = max(share * int(self.length.max()), 10 * TOLERANCE)
            around = self.near(t, reach)
            beside = around.stop - around.start - inside
            phase = max(phase, beside / max(len(self.step) - inside, 1) / (2 * (reach - TOLERANCE)))
        covering = (self.first <= t) & (t <= self.last)
        density = np.maximum(1 / self.length, phase)
        out: np.ndarray = -np.expm1(-(self.count * density * self.window)[covering])
        return out


def _clusters(runs: list[Spiked], families: int) -> list[Cluster]:
    """Greedily: the most surprising step first, its spikes taken out, and again."""
    table = _Table(runs)
    looks = families * max(int(table.last.max() - table.first.min()), 1) / (2 * TOLERANCE + 1)
    found: list[Cluster] = []
    widest = int(table.window.max())
    known: dict[int, Cluster | None] = {}  # what was found at a step; it stays so until spikes near it are taken
    while (best := _best(table, looks, known)) is not None:
        found.append(best)
        table.take(best.at)
        known = {t: c for t, c in known.items() if abs(t - best.at) > widest}
    return found


def _best(table: _Table, looks: float, known: dict[int, Cluster | None]) -> Cluster | None:
    free = table.step[table.left]
    places = np.unique(free)
    crowd = np.searchsorted(free, places + TOLERANCE, "right") - np.searchsorted(free, places - TOLERANCE, "left")
    best: Cluster | None = None
    for i in np.lexsort((places, -crowd))[:MOST_PLACES]:
        if crowd[i] < LEAST_RUNS or (best is not None and crowd[i] < 0.5 * len(best.steps)):
            break
        t = int(places[i])
        if t not in known:
            known[t] = _cluster(table, t, looks)
        cluster = known[t]
        if cluster is not None and (best is None or (cluster.p, -len(cluster.steps)) < (best.p, -len(best.steps))):
            best = cluster
    return best


def _cluster(table: _Table, t: int, looks: float) -> Cluster | None:
    hits = table.hits(t)
    if len(hits) < LEAST_RUNS:
        return None
    chances = table.chances(t)
    likely = looks * rare_tail(chances, len(hits))
    if likely >= ALPHA:
        return None
    steps = {table.runs[i].id: step for i, step in hits.items()}
    return Cluster(int(np.median(list(steps.values()))), steps, likely)


# ---------------------------------------------------------------------------------------------------- what is said


def _same_samples(batch: Batch, runs: list[Spiked]) -> bool | None:
    """Whether the recorded batches agree (most pairs of the runs that record them); None where fewer than two do."""
    seen = [r.batches[batch.steps[r.id]] for r in runs if r.id in batch.steps and batch.steps[r.id] in r.batches]
    if len(seen) < 2:
        return None
    return max(seen.count(s) for s in set(seen)) * 2 > len(seen)


def _entry(batch: Batch, offsets: dict[str, int], runs: list[Spiked]) -> dict[str, Any]:
    groups: dict[int, list[str]] = {}
    for name in sorted(batch.steps):
        groups.setdefault(offsets.get(name, 0), []).append(name)
    known = {r.id: r for r in runs}
    reached = [r for r in runs if r.first <= batch.at + offsets.get(r.id, 0) <= r.last]
    spared = sorted(r.id for r in reached if r.id not in batch.steps and (r.id in offsets or len(r.spikes) == 0))
    recorded = _same_samples(batch, runs)
    return {
        "first": min(batch.steps.values()),
        "steps": {name: batch.steps[name] for name in sorted(batch.steps)},
        "offset_groups": [{"offset": o, "runs": groups[o]} for o in sorted(groups, key=lambda o: (-len(groups[o]), o))],
        "runs": len(batch.steps),
        "exposed": len(reached),
        "spared": spared[:200],
        "p": batch.p,
        "samples_recorded": recorded is True,
        "family": known[next(iter(batch.steps))].family,
        "says": _says(batch, groups, reached, recorded),
    }


def _says(batch: Batch, groups: dict[int, list[str]], reached: list[Spiked], recorded: bool | None) -> str:
    ways = f", in {len(groups)} groups whose step counters are shifted" if len(groups) > 1 else ""
    said = f"{len(batch.steps)} of {len(reached)} runs that get there spike at step {batch.at}{ways}."
    if recorded:
        said += " Their files record the same samples there: the batch is bad."
    elif len(groups) > 1:
        said += " The spike follows the data, not the step number: the batch is bad."
    else:
        said += " All count steps alike: a bad batch, unless a schedule changes at this step in all of them."
    if len(batch.steps) < len(reached):
        said += " Some runs pass it unharmed, so the state matters, too."
    return said
