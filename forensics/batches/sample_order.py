"""In which order samples came, where files list them: as they lie in the data, shuffled in blocks, well shuffled; and whether passes differ.

Batches of a well shuffled set are as wide as the set: within a batch, row numbers scatter as much as over all batches. Batches of
a set that is shuffled in blocks (by shard, or through a small buffer) are narrower, so that neighbours meet.
"""

from __future__ import annotations

import numpy as np

from forensics.batches.data_passes import contents, passes, surviving
from forensics.run.once import once
from parsers.tables import Run

LEAST_BATCHES, LEAST_SAMPLES = 30, 4  # bound: a scatter within a batch needs four; thirty batches make its mean good to 10 %
# statistical: of 30 batches of four, the mean scatter is off by 6 %: wide ones are never below it
NARROW = 0.7
IN_ORDER = 0.99  # correlation of a batch's place with its rows: of shuffled batches chance gives 0.6 at most
SAME = 0.9  # share of the batches of a pass that hold what those of the first did


@once
def told(run: Run) -> str:
    """One sentence; empty where no file lists the samples as row numbers, or too few batches."""
    path = {s: x for s, x in surviving(contents(run)).items() if len(x) >= LEAST_SAMPLES and all(i.isdecimal() and len(i) < 16 for i in x)}
    begins = passes(path)
    if len(path) < LEAST_BATCHES or not begins:
        return ""
    steps = list(path)
    first = [s for s in steps if len(begins) < 2 or s < begins[1]]
    order = _order([np.array(sorted(map(int, path[s])), np.float64) for s in first]) if len(first) >= LEAST_BATCHES else ""
    return "; ".join(filter(None, (order, _again(path, steps, begins))))


def _order(batches: list[np.ndarray]) -> str:
    middle = np.array([np.median(b) for b in batches])
    whole = float(np.concatenate(batches).std())
    if whole <= 0 or not np.ptp(middle):
        return ""
    within = float(np.sqrt(np.mean([b.var(ddof=1) for b in batches]))) / whole
    if abs(float(np.corrcoef(np.arange(len(middle)), middle)[0, 1])) >= IN_ORDER:
        return f"samples come as they lie in the data, unshuffled ({len(batches)} batches)"
    if within < NARROW:
        return f"samples are shuffled in blocks: the rows of a batch scatter {within:.0%} as much as those of all {len(batches)} batches"
    return f"samples are well shuffled: the rows of a batch scatter as much as those of all {len(batches)} batches ({within:.0%})"


def _again(path: dict[int, frozenset[str]], steps: list[int], begins: list[int]) -> str:
    """Whether the second pass goes through the same batches."""
    if len(begins) < 2:
        return ""
    at = [steps.index(b) for b in begins[:2]]
    length = min(at[1] - at[0], len(steps) - at[1])
    if length < LEAST_SAMPLES:
        return ""
    same = sum(path[steps[at[0] + i]] == path[steps[at[1] + i]] for i in range(length))
    return (
        f"the second pass goes through the same batches in the same order ({same} of {length})"
        if same >= SAME * length
        else "passes differ"
    )
