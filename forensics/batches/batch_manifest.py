"""A manifest that the user names (``--batches FILE``): its batches take the place of what the run's own files list."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from forensics.errors import ForensicsError
from parsers.records import manifest
from parsers.tables import Run, Source


def attach(run: Run, path: Path) -> None:
    """Puts the manifest's rows into the run's table of batches. Raises ForensicsError where the file says nothing of use."""
    try:
        table = manifest.read(path)
    except (OSError, ValueError, pa.ArrowInvalid) as e:
        raise ForensicsError(
            f"cannot use {path} as a list of batches: {e}",
            "Its rows need a step, and sample ids, a batch id, a shard or a source: JSON lines, CSV, Parquet or log lines.",
        ) from e
    steps = table["step"].to_pylist()
    attempts = pa.array(attempts_of(steps, table["rank"].to_pylist(), [tuple(a["steps"]) for a in run.attempts]), pa.int32())
    run.tables["batches"] = table.set_column(table.column_names.index("attempt"), "attempt", attempts)
    run.sources.append(Source(str(path), "manifest", path.stat().st_size, table.num_rows, note="given with --batches"))
    run.cache.clear()  # what was derived from the table before


def attempts_of(steps: list[int | None], ranks: list[int | None], spans: list[tuple[int, int]]) -> list[int]:
    """The attempt of each row: a manifest whose steps go back (on one rank) begins another attempt; without, each step's last attempt.

    `spans` are the (first, last) logged steps of the run's attempts.
    """
    if not spans:
        return [0] * len(steps)
    part, parts, last = 0, [], dict[int | None, int]()
    for step, rank in zip(steps, ranks, strict=True):
        if step is not None:
            if step < last.get(rank, step):
                part, last = part + 1, {}
            last[rank] = step
        parts.append(part)
    if part + 1 == len(spans):
        return parts
    ends = [b for _, b in spans]
    found = []
    for step in steps:
        reached = [i for i, (a, b) in enumerate(spans) if step is not None and a <= step <= b]
        found.append(max(reached) if reached else next((i for i, e in enumerate(ends) if step is not None and step <= e), len(spans) - 1))
    return found
