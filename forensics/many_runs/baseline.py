"""A known good run beside the run in question (`analyze --baseline`): where they part, and what that says about each cause.

The finding is information, not a fault of its own: to be unlike the baseline is no illness. Its clues go to causes that were
weighed already. They rest on the settings that differ, on the steps to which both computed equal values, and on whether the baseline, too, spikes
on the same data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Check, Finding
from forensics.errors import ForensicsError
from forensics.many_runs import config_diff, parting
from forensics.many_runs.side_by_side import data_order
from forensics.run.recipe import Recipe, recipe
from forensics.run.series import series
from parsers import arrow
from parsers.tables import Run

KIND = "baseline_parting"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Where run and baseline part."""

    baseline: str  # path
    equal: int  # logged values that are equal
    level: int | None  # step from which on the levels differ
    last_difference: float

    @classmethod
    def detector(cls) -> str:
        return KIND


@dataclass(frozen=True)
class Beside:
    """The run and its baseline, with what the clues ask for."""

    run: Run
    base: Run
    parted: parting.Parting | None
    differs: list[dict[str, Any]]
    order: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def recipes(self) -> tuple[Recipe, Recipe]:
        return recipe(self.run), recipe(self.base)


def beside(run: Run, base: Run) -> Beside:
    """Compares the two; its ``findings`` are at most one."""
    one, two = series(base, "loss.train"), series(run, "loss.train")
    parted = parting.find(one, two) if one is not None and two is not None else None
    equal = parted is not None and parted.equal >= 3
    differs = config_diff.differences(base, run, equal_at_first=equal)
    order = data_order(base, run)
    return Beside(run, base, parted, differs, order, tuple(_findings(base, parted, differs)))


def _findings(base: Run, parted: parting.Parting | None, differs: list[dict[str, Any]]) -> list[Finding]:
    if parted is None:
        return []
    at = parted.level if parted.level is not None else parted.excursion
    if at is None:
        return []
    equal = f" (equal to step {parted.last_equal})" if parted.equal >= 3 else ""
    what = "The loss leaves the baseline's" if parted.level is not None else "The loss jumps where the baseline's does not"
    first = differs[0] if differs and differs[0]["suspicion"] >= 30 else None
    blame = (
        f"; the most suspect setting: {first['key']}, {first['a']} there, {first['b']} here"
        if first
        else "; no setting that was logged explains it"
    )
    rows = [[d["key"], str(d["a"]), str(d["b"]), f"{d['suspicion']:.0f}", d["why"]] for d in differs[:30]]
    shown = evidence.table(
        "settings that differ from the baseline", ["setting", "baseline", "this run", "suspicion", "why"], rows, base.path
    )
    facts = Facts(base.path, parted.equal, parted.level, parted.last_difference)
    return [evidence.found(facts, f"{what} at step {at}{equal}{blame}", (at, at), "info", shown)]


def check(b: Beside) -> Check:
    if b.parted is None:
        return Check(KIND, "cannot_tell", "the loss of this run and of the baseline have too few steps in common")
    if b.findings:
        return Check(KIND, "fired", "1 found")
    return Check(KIND, "clear", "", f"a level that differs by {parting.SMALLEST:.1%} beyond the noise, over {b.parted.common} common steps")


def refuse_itself(run: Run, baseline: Run) -> None:
    """Raises ForensicsError where the baseline logged the same values of the same tags at the same steps: it would witness for itself."""
    a, b = run.tables["metrics"], baseline.tables["metrics"]
    if not a.num_rows or a.num_rows != b.num_rows:
        return
    columns = (("step", -1), ("value", np.nan))
    same = all(np.array_equal(arrow.filled(a[c], fill), arrow.filled(b[c], fill), equal_nan=c == "value") for c, fill in columns)
    if same and a["tag"].to_pylist() == b["tag"].to_pylist():
        raise ForensicsError("the baseline is the run itself, or a copy of it", "Give a run of the same recipe that went well.")
