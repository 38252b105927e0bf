"""Steps that a loop undid by itself, as a line between them says: no process ended there."""

from __future__ import annotations

from forensics.run import endings
from forensics.run.once import once
from parsers.tables import Run


@once
def returns(run: Run) -> frozenset[int]:
    """The steps that the loop went back to: the first one behind each such line, where it lies below the last one above it."""
    found = set[int]()
    for e in endings.events(run, "goes_back"):
        at, step = endings.progress(run).get(str(e["source"]), (None, None))
        if at is None or step is None:
            continue
        above, below = step[at <= (e["at"] or 0)], step[at > (e["at"] or 0)]
        if len(above) and len(below) and below[0] < above[-1]:
            found.add(int(below[0]))
    return frozenset(found)
