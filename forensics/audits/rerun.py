"""What the row of a run says of starting it again, and what other runs add to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from forensics.case import Case
from forensics.checkpoints import run_saves
from forensics.many_runs.brief import Brief
from forensics.run import endings
from parsers.tables import Run

OUTSIDE = ("interrupt", "scheduler", "signal", "hardware", "disk")  # endings that neither the recipe nor the code chose


def of(run: Run, case: Case) -> tuple[dict[str, str | None], dict[str, str]]:
    """(the columns last_good_checkpoint and rerun; column -> why it is empty)."""
    good = run_saves.last_good(run, case.findings)
    again = case.run["again"]
    found = {"last_good_checkpoint": run_saves.name(good, run) if good is not None else None, "rerun": again["says"]}
    why = {"last_good_checkpoint": _no_checkpoint(run), "rerun": again["why"]}
    return found, {column: reason for column, reason in why.items() if found[column] is None}


def _no_checkpoint(run: Run) -> str:
    if run.tables["checkpoints"].num_rows:
        return "no checkpoint is whole and older than the trouble"
    if saved := [e["step"] for e in endings.events(run, "checkpoint_saved") if e["step"]]:
        return f"the log says that step {max(saved)} was saved, but no checkpoint lies among its files"
    return "no checkpoint lies among its files"


def superseded(rows: Sequence[dict[str, Any]], briefs: Sequence[Brief]) -> Iterator[tuple[int, str]]:
    """(index, what `rerun` says) of the runs to start again of which another with the same config and seed has finished healthy: the same config
    is not the same code, so only what came from outside is done with."""
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    recipes: dict[Any, Any] = {}  # each held once
    for i, b in enumerate(briefs):
        if recipe := b.recipe:
            alike[b.family, b.seed, recipes.setdefault(recipe, recipe)].append(i)
    for members in alike.values():
        done = [rows[i]["id"] for i in members if rows[i]["verdict"] == "healthy" and rows[i]["status"] == "finished"]
        for i in members if done else ():
            row, again = rows[i], rows[i]["rerun"] or ""
            if again.startswith(("yes", "not yet")) and row["id"] not in done:
                said = f"{done[0]} finished healthy with the same config"
                yield i, f"no: {said}" if row["ending"] in OUTSIDE and row["grave"] <= 1 else f"{again}; {said}: compare the code"
