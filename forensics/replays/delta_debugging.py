"""Delta debugging: the smallest set of indices for which a yes/no question still has the answer yes.

Pure. Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002 (ddmin).
Candidates come in the order of suspicion, so that one culprit ranked first costs two questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


class OutOfBudget(Exception):
    """Raised by a question that may not be asked any more; `best` is the smallest set known to suffice."""

    best: list[int]


def minimal(candidates: Sequence[int], suffices: Callable[[list[int]], bool], most: int = 3) -> list[int]:
    """A 1-minimal set: it suffices, and without any one of its members it does not.

    `suffices(candidates)` must be true. First the `most` first candidates are tried alone, then prefixes of the order grow
    by doubling (the culprits of a good order are among the first), then ddmin shrinks the prefix.
    """
    asked: dict[frozenset[int], bool] = {}
    best = list(candidates)

    def ask(some: Sequence[int]) -> bool:
        nonlocal best
        key = frozenset(some)
        if key not in asked:
            try:
                asked[key] = suffices(list(some))
            except OutOfBudget as e:
                e.best = best
                raise
        if asked[key] and len(some) < len(best):
            best = list(some)
        return asked[key]

    for one in candidates[:most]:
        if len(candidates) == 1 or ask([one]):
            return [one]
    size = 2
    while size < len(candidates) and not ask(candidates[:size]):
        size *= 2
    return _ddmin(list(candidates[:size]), ask)


def _ddmin(items: list[int], ask: Callable[[Sequence[int]], bool]) -> list[int]:
    parts = 2
    while len(items) >= 2:
        cuts = [items[i * len(items) // parts : (i + 1) * len(items) // parts] for i in range(parts)]
        smaller = next((c for c in cuts if c and ask(c)), None)
        if smaller is not None:
            items, parts = smaller, 2
            continue
        rest = next((r for c in cuts if (r := [x for x in items if x not in c]) and len(r) < len(items) and ask(r)), None)
        if rest is not None:
            items, parts = rest, max(parts - 1, 2)
        elif parts < len(items):
            parts = min(len(items), 2 * parts)
        else:
            break
    return items
