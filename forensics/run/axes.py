"""Epoch numbers that a writer logged as steps: a tag counts 0, 1, 2 while the rest of the run counts iterations."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run.order import Floats, Ints

LEAST = 3  # epochs: two points lie on any line
LONGER = 5  # steps of the run to one of the tag: what is logged every few steps is on the same axis
STRAIGHT = 0.1  # of an epoch: how far a row may lie from its place if all epochs are of one length
CLOCKS = ("loss.train", "lr", "grad.norm")  # what is logged by step


def placed(columns: dict[str, Any], rows: Ints, name: str) -> Ints:
    """The steps of these rows; of a tag that counts epochs, the last step that the run had logged before each row.

    It counts epochs where its numbers rise one by one, and by the clock (in one file, by the order) the run goes on by the same many
    steps from each to the next.
    """
    step: Ints = columns["step"][rows]
    if name in CLOCKS or len(step) < LEAST or not (np.diff(step) == 1).all() or "attempt" not in columns["constant"]:
        return step
    main = _main(columns)
    if not len(main) or int(step[-1]) * LONGER > int(columns["step"][main].max()):
        return step
    when = _common(columns, rows, main)
    if when is None:
        return step
    mine, others = when
    order = np.argsort(others, kind="stable")
    before = np.searchsorted(others[order], mine, side="right") - 1
    if (before < 0).any():
        return step
    carried: Ints = np.maximum.accumulate(columns["step"][main][order])[before]
    slope, start = np.polyfit(step.astype(float), carried.astype(float), 1)
    apart = np.abs(carried - (slope * step + start)).max()
    return carried if slope >= LONGER and apart <= max(STRAIGHT * slope, 1.0) else step


def _main(columns: dict[str, Any]) -> Ints:
    """Rows of the tag that is logged by step, the one with the most."""
    best = np.zeros(0, np.int64)
    for name in CLOCKS:
        code = columns["code_of"].get(name)
        if code is not None:
            rows = columns["by_name"][columns["ends"][code] : columns["ends"][code + 1]]
            rows = rows[columns["stepped"][rows]]
            tag = columns["tag"][rows]
            rows = rows[tag == np.bincount(tag).argmax()] if len(rows) else rows
            best = rows if len(rows) > len(best) else best
    return best


def _common(columns: dict[str, Any], a: Ints, b: Ints) -> tuple[Floats, Floats] | None:
    """What tells which rows came first: the clock, else the order of the one file that holds both."""
    if np.isfinite(columns["time"][a]).all() and np.isfinite(columns["time"][b]).all():
        return columns["time"][a], columns["time"][b]
    source = columns["source"]
    one = (source[a] == source[a[0]]).all() and (source[b] == source[a[0]]).all()
    return (a.astype(np.float64), b.astype(np.float64)) if one else None
