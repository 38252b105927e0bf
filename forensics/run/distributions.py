"""Logged histograms as series: the spread and the largest size of the values of each, one value a step."""

from __future__ import annotations

import numpy as np

from forensics.run.once import once
from forensics.run.order import alive_rows
from forensics.run.series import Series
from parsers import arrow
from parsers.tables import Run

LEAST = 2  # bound: one value has no spread


@once
def spreads(run: Run) -> list[Series]:
    """The standard deviation within each histogram of several values, by its tag."""
    return _series(run, "std", "spread")


@once
def extremes(run: Run) -> list[Series]:
    """The largest size of a value within each histogram, by its tag."""
    return _series(run, "max", "largest value")


def _series(run: Run, column: str, words: str) -> list[Series]:
    t = run.tables["histograms"]
    if not t.num_rows or not (there := arrow.present(t["step"]) & (arrow.filled(t["count"], 0) >= LEAST)).any():
        return []
    t = t.filter(arrow.flags(there))
    tag = t["tag"].combine_chunks().cast("string").dictionary_encode()
    code, tags = arrow.filled(tag.indices, -1), tag.dictionary.to_pylist()
    source = t["source"].combine_chunks().cast("string").dictionary_encode()
    step, attempt = arrow.filled(t["step"], 0), arrow.filled(t["attempt"], 0).astype(np.int32)
    value = arrow.filled(t[column], np.nan)
    if column == "max":
        value = np.maximum(np.abs(value), np.abs(arrow.filled(t["min"], np.nan)))
    by_tag = np.lexsort((step, attempt, code))
    found = []
    for rows in np.split(by_tag, np.flatnonzero(np.diff(code[by_tag])) + 1):
        keep = np.append((np.diff(step[rows]) != 0) | (np.diff(attempt[rows]) != 0), True)  # the last of several at a step
        rows = rows[keep]
        gaps = np.diff(step[rows])
        found.append(
            Series(
                name=f"histogram/{column}", tag=f"{words} of {tags[int(code[rows[0]])]}", step=step[rows], value=value[rows],
                time=arrow.filled(t["time"], np.nan)[rows], attempt=attempt[rows], alive=alive_rows(step[rows], attempt[rows]),
                source=source.dictionary.to_pylist(), source_code=arrow.filled(source.indices, 0).astype(np.int32)[rows],
                at=arrow.filled(t["at"], -1)[rows], interval=max(int(np.median(gaps[gaps > 0])), 1) if (gaps > 0).any() else 1,
            )
        )  # fmt: skip
    return found
