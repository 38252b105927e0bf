"""The samples of a run's batches as its files list them: what survived its restarts, and where each pass through the data begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from forensics.run.once import once
from parsers.tables import Run

Batches = dict[tuple[int, int], frozenset[str]]  # (attempt, step) -> samples
Attempt = Mapping[int, frozenset[str]]  # of one attempt: step -> samples


@once
def contents(run: Run) -> Batches:
    """The samples of each (attempt, step), ranks together."""
    table = run.tables["batches"]
    found: dict[tuple[int, int], set[str]] = {}
    for attempt, step, sample in zip(*(table[c].to_pylist() for c in ("attempt", "step", "sample")), strict=True):
        if sample is not None and step is not None:
            found.setdefault((attempt or 0, step), set()).add(sample)
    return {k: frozenset(v) for k, v in found.items()}


def surviving(batches: Batches, before: int | None = None) -> dict[int, frozenset[str]]:
    """step -> samples of what was built upon: of each step the last attempt's, up to the restart that begins attempt `before`."""
    attempts = sorted({a for a, _ in batches if before is None or a < before})
    begins = {a: min(s for b, s in batches if b == a) for a in attempts}
    path: dict[int, frozenset[str]] = {}
    for a in attempts:
        path = {s: x for s, x in path.items() if s < begins[a]}
        path.update({s: x for (b, s), x in batches.items() if b == a})
    return dict(sorted(path.items()))


def passes(path: Mapping[int, frozenset[str]]) -> list[int]:
    """The steps at which a pass through the data begins; only the first where samples are drawn with replacement.

    A pass ends where most of a batch was seen in it. Samples that come again before that are no passes.
    """
    begins: list[int] = []
    seen: set[str] = set()
    drawn = again = 0
    for step, batch in path.items():
        known = len(batch & seen)
        if not begins or known > len(batch) / 2:
            if again > 0.02 * drawn + 1:
                return begins[:1]
            begins.append(step)
            seen, drawn, again = set(), 0, 0
            known = 0
        seen |= batch
        drawn += len(batch)
        again += known
    return begins


def size_of(samples: frozenset[str]) -> int:
    """How many samples the data have at least: those seen, or up to the largest id where ids are row numbers."""
    numbers = [int(x) for x in samples if x.isdecimal() and len(x) < 10]
    largest = max(numbers) + 1 if len(numbers) == len(samples) and numbers else 0
    return max(len(samples), largest if largest <= 50 * len(samples) else 0)


def union(batches: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*batches)
