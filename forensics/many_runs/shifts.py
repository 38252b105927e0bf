"""The shifts between the step counters of runs: which clusters of spikes are one batch seen through two counters.

One match can always be had by some shift. What counts is the second: at the shift that fits one batch, another one has to
be met by more runs than chance allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from forensics.many_runs.chance import some_tail

TOLERANCE = 2  # steps that the start of a spike may be off
ALIGNED_GROUP = 1e-4  # of a group of runs at a shift: its second batch
ALIGNED = 0.01  # of all single runs of a family that are tried at other shifts, after correction


@dataclass(frozen=True, eq=False)
class Spiked:
    """One run: the steps it logged the loss at, first to last, and where its spikes begin."""

    id: str
    first: int
    last: int
    spikes: np.ndarray  # sorted, in steps
    interval: int = 1
    family: str = ""
    batches: dict[int, str] = field(default_factory=dict)  # step -> fingerprint of the samples, where a file records them

    @property
    def length(self) -> int:
        return max(self.last - self.first + 1, 1)

    @property
    def window(self) -> int:
        return 2 * max(TOLERANCE, self.interval) + 1


@dataclass
class Cluster:
    """A step where many runs spike: id -> step, and how likely chance is."""

    at: int
    steps: dict[str, int]
    p: float


@dataclass
class Batch:
    at: int  # in the counter of the largest group
    steps: dict[str, int]
    p: float


def batches_of(runs: list[Spiked], clusters: list[Cluster]) -> tuple[list[Batch], dict[str, int]]:
    """The clusters as batches, those merged that are one batch seen through two counters; and the shift of each run."""
    base = _one_counter(clusters)
    batches = [Batch(c.at, dict(c.steps), c.p) for c in base]
    offsets = {name: 0 for c in base for name in c.steps}
    if len(batches) > 1:
        _align_groups(runs, batches, offsets)
        _align_single(runs, batches, offsets)
    for c in clusters:
        if c in base:
            continue
        fresh = {n: s for n, s in c.steps.items() if not any(abs(b.steps.get(n, s + 10**9) - s) <= 2 * TOLERANCE for b in batches)}
        if len(fresh) > len(c.steps) / 2:
            batches.append(Batch(c.at, fresh, c.p))
    return batches, offsets


def _one_counter(clusters: list[Cluster]) -> list[Cluster]:
    """The largest cluster, and those that the same runs are in."""
    largest = max(clusters, key=lambda c: (len(c.steps), -c.at))
    return [c for c in clusters if len(c.steps.keys() & largest.steps.keys()) > min(len(c.steps), len(largest.steps)) / 2]


def _align_groups(runs: list[Spiked], batches: list[Batch], offsets: dict[str, int]) -> None:
    """All runs without a shift together, at the shift that fits most of them; then those that are left, again."""
    at = np.array([b.at for b in batches])
    while rest := [r for r in runs if r.id not in offsets and len(r.spikes)]:
        apart = np.concatenate([(r.spikes[:, None] - at[None, :]).ravel() for r in rest])
        shifts, count = np.unique(apart[np.abs(apart) <= max(r.length for r in rest) // 2], return_counts=True)
        crowd = np.array([count[np.abs(shifts - o) <= TOLERANCE].sum() for o in shifts])
        best: tuple[float, int, list[dict[str, int]]] | None = None
        for i in np.lexsort((np.abs(shifts), -crowd))[:30] if len(shifts) else ():
            hits = [_hits(rest, b.at + int(shifts[i])) for b in batches]
            tails = sorted(
                some_tail([_own(r) for r in rest if r.first <= b.at + shifts[i] <= r.last], len(h))
                for b, h in zip(batches, hits, strict=True)
            )
            p = tails[1] * len(batches) ** 2
            better = best is None or (p, abs(int(shifts[i]))) < (best[0], abs(best[1]))
            if p < ALIGNED_GROUP and better and len(set().union(*hits)) > 1:
                best = p, int(shifts[i]), hits
        if best is None:
            return
        _assign(best[1], best[2], batches, offsets)


def _align_single(runs: list[Spiked], batches: list[Batch], offsets: dict[str, int]) -> None:
    apart = [r for r in runs if r.id not in offsets and len(r.spikes) >= 2]
    at = np.array([b.at for b in batches])
    for run in apart:
        best: tuple[float, int, list[dict[str, int]]] | None = None
        shifts = np.unique((run.spikes[:, None] - at[None, :]).ravel())
        for shift in shifts[np.abs(shifts) <= run.length // 2]:
            hits = [_hits([run], int(t + shift)) for t in at]
            met = sum(map(bool, hits))
            if met < 2:
                continue
            inside = sum(run.first <= t + shift <= run.last for t in at)
            p = len(shifts) * len(apart) * some_tail([_own(run)] * (inside - 1), met - 1)
            if p < ALIGNED and (best is None or (p, abs(int(shift))) < (best[0], abs(best[1]))):
                best = p, int(shift), hits
        if best is not None:
            _assign(best[1], best[2], batches, offsets)


def _own(run: Spiked) -> float:
    """The chance that one of a run's spikes lies within the window of a step."""
    return -math.expm1(-len(run.spikes) * run.window / run.length)


def _hits(runs: list[Spiked], t: int) -> dict[str, int]:
    """id -> the spike nearest to t, where one lies within the window."""
    found = {}
    for r in runs:
        i = int(np.argmin(np.abs(r.spikes - t)))
        if abs(int(r.spikes[i]) - t) <= r.window // 2:
            found[r.id] = int(r.spikes[i])
    return found


def _assign(shift: int, hits: list[dict[str, int]], batches: list[Batch], offsets: dict[str, int]) -> None:
    differences = [s - b.at for b, h in zip(batches, hits, strict=True) for s in h.values()]
    shift = int(np.median(differences)) if differences else shift
    for batch, found in zip(batches, hits, strict=True):
        for name, step in found.items():
            batch.steps[name] = step
            offsets[name] = shift
