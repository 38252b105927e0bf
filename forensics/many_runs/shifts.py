"""The shifts between the step counters of runs: which clusters of spikes are one batch seen through two counters.

One match can always be had by some shift. What counts is the second: at the shift that fits one batch, another one has to
be met by more runs than chance allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from forensics.many_runs.chance import rare_tail, some_tail

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


class _Spikes:
    """The spikes of runs in one row, sorted by step: what many runs do at a step is found without asking each."""

    def __init__(self, runs: list[Spiked]) -> None:
        self.runs = runs
        self.first, self.last = (np.array(x, np.int64) for x in ([r.first for r in runs], [r.last for r in runs]))
        self.own = np.array([_own(r) for r in runs])
        step = np.concatenate([r.spikes for r in runs]).astype(np.int64)
        run = np.repeat(np.arange(len(runs)), [len(r.spikes) for r in runs])
        order = np.argsort(step, kind="stable")
        self.step, self.run = step[order], run[order]
        self.half = np.array([r.window // 2 for r in runs])[self.run]
        self.farthest = int(self.half.max())

    def hits(self, t: int) -> dict[str, int]:
        """id -> the spike nearest to t, where one lies within the window of the run."""
        a, b = np.searchsorted(self.step, [t - self.farthest, t + self.farthest + 1])
        step, run = self.step[a:b], self.run[a:b]
        apart = np.abs(step - t)
        order = np.lexsort((step, apart, run))
        order = order[apart[order] <= self.half[a:b][order]]
        nearest = order[np.flatnonzero(np.diff(run[order], prepend=-1))]
        return {self.runs[r].id: s for r, s in zip(run[nearest].tolist(), step[nearest].tolist(), strict=True)}

    def tail(self, t: int, hits: int) -> float:
        """How likely so many are at t by chance."""
        return rare_tail(self.own[(self.first <= t) & (t <= self.last)], hits)


def batches_of(runs: list[Spiked], clusters: list[Cluster]) -> tuple[list[Batch], dict[str, int]]:
    """The clusters as batches, those merged that are one batch seen through two counters; and the shift of each run."""
    base = _one_counter(clusters)
    batches = [Batch(c.at, dict(c.steps), c.p) for c in base]
    offsets = {name: 0 for c in base for name in c.steps}
    if len(batches) > 1:
        _align_groups(runs, batches, offsets)
        _align_single(runs, batches, offsets)
    counted = set(map(id, base))
    for c in clusters:
        if id(c) in counted:
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
        crowd = _within(shifts, count)
        together = _Spikes(rest)
        best: tuple[float, int, list[dict[str, int]]] | None = None
        for i in np.lexsort((np.abs(shifts), -crowd))[:30] if len(shifts) else ():
            hits = [together.hits(b.at + int(shifts[i])) for b in batches]
            tails = sorted(together.tail(b.at + int(shifts[i]), len(h)) for b, h in zip(batches, hits, strict=True))
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
        looked = shifts[np.abs(shifts) <= run.length // 2]
        place = looked[:, None] + at[None, :]
        met = _met(run, place).sum(axis=1)
        inside = ((run.first <= place) & (place <= run.last)).sum(axis=1)
        for i in np.flatnonzero(met >= 2):
            p = len(shifts) * len(apart) * some_tail([_own(run)] * (int(inside[i]) - 1), int(met[i]) - 1)
            if p < ALIGNED and (best is None or (p, abs(int(looked[i]))) < (best[0], abs(best[1]))):
                best = p, int(looked[i]), [_Spikes([run]).hits(int(t)) for t in place[i]]
        if best is not None:
            _assign(best[1], best[2], batches, offsets)


def _own(run: Spiked) -> float:
    """The chance that one of a run's spikes lies within the window of a step."""
    return -math.expm1(-len(run.spikes) * run.window / run.length)


def _met(run: Spiked, place: np.ndarray) -> np.ndarray:
    """Whether a spike of the run lies within its window of each place."""
    half = run.window // 2
    out: np.ndarray = np.searchsorted(run.spikes, place + half, "right") > np.searchsorted(run.spikes, place - half, "left")
    return out


def _within(shifts: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Of each shift (sorted), how many lie within the tolerance of it."""
    total = np.concatenate([[0], np.cumsum(count)])
    out: np.ndarray = (
        total[np.searchsorted(shifts, shifts + TOLERANCE, "right")] - total[np.searchsorted(shifts, shifts - TOLERANCE, "left")]
    )
    return out


def _assign(shift: int, hits: list[dict[str, int]], batches: list[Batch], offsets: dict[str, int]) -> None:
    differences = [s - b.at for b, h in zip(batches, hits, strict=True) for s in h.values()]
    shift = int(np.median(differences)) if differences else shift
    for batch, found in zip(batches, hits, strict=True):
        for name, step in found.items():
            batch.steps[name] = step
            offsets[name] = shift
