"""Checkpoint damage

What it sees
    Checkpoint files that are empty, cut off, or not what their header says.

How it decides
    A safetensors file must end where its header says, a zip must have its directory. Contents are not read.

Cannot tell
    For formats that carry no length (legacy pickles, raw arrays), and where no checkpoint lies in the folder.

Folklore
    "Keep-3 deleted the last healthy checkpoint": know which one is whole before you need it.
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics import evidence
from forensics.case import Finding
from forensics.errors import CannotTell
from parsers.tables import Run

NEEDS: list[str] = []


def detect(run: Run) -> Iterator[Finding]:
    table = run.tables["checkpoints"]
    if not table.num_rows:
        raise CannotTell("no checkpoint lies in the folder")
    broken = [c for c in table.to_pylist() if c["complete"] is False]
    for c in broken[:20]:
        why = next((g.what for g in run.gaps if g.path == c["source"]), "incomplete")
        shown = evidence.table("the file", ["file", "bytes", "what is wrong"], [[c["source"], c["bytes"], why]], c["source"])
        yield Finding(f"checkpoint_damage-{c['step']}-{c['path']}", "checkpoint_damage", f"Checkpoint {c['source']} is damaged: {why}", c["step"],
                      c["step"], "warning", (shown,), {"path": c["source"], "bytes": c["bytes"]}, (c["time"], None))


def smallest_effect(run: Run) -> str:
    return "one byte missing at the end"
