"""Whether to start a run again: would the outcome matter, can the cause be fixed, and from which checkpoint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from forensics.audits import gpu_hours
from forensics.case import Case, Finding, Hypothesis
from forensics.causes.files import UNKNOWN, causes
from forensics.certainty import OPEN, certainty, within
from forensics.checkpoints import run_saves
from forensics.detectors import nonfinite
from forensics.findings import GRAVE
from forensics.many_runs.brief import Brief
from forensics.run import endings
from parsers.tables import Run

LONGEST = 160  # characters of what to change
RESUME, KEEP = "Resume from", "Keep the run"  # interventions that say what the checkpoint says here, and that nothing is to be started
LOOKS = (
    "Look ",
    "Print ",
    "Check ",
    "Find ",
    "Compare ",
    "Log ",
    "Decide ",
)  # these come first in a case, but change nothing by themselves
HARMLESS_AFTERWARDS = (
    "restart",
    "throughput",
    "stall",
    "memory",
    "grad_spike",
    "loss_spike",
    "nonfinite",
)  # of a run that finished all the same
NOT_OURS = {
    "interrupt": "stopped by hand: its owner knows why",
    "cut": "the log just stops: nothing says whether the run went on",
    "unknown": "nothing says whether it finished",
}


def of(run: Run, case: Case) -> tuple[dict[str, str | None], dict[str, str]]:
    """(the columns last_good_checkpoint and rerun; column -> why it is empty)."""
    good = run_saves.last_good(run, case.findings)
    found = {"last_good_checkpoint": run_saves.name(good, run) if good is not None else None}
    why = {} if good is not None else {"last_good_checkpoint": _no_checkpoint(run)}
    told, reason = _advice(case, f"from {found['last_good_checkpoint']}" if good is not None else _without(run))
    return found | {"rerun": told}, why | ({"rerun": reason} if told is None else {})


def _saved(run: Run) -> list[int]:
    """The steps of which the log says that they were saved."""
    return [e["step"] for e in endings.events(run, "checkpoint_saved") if e["step"]]


def _no_checkpoint(run: Run) -> str:
    if run.tables["checkpoints"].num_rows:
        return "no checkpoint is whole and older than the trouble"
    if saved := _saved(run):
        return f"the log says that step {max(saved)} was saved, but no checkpoint lies among its files"
    return "no checkpoint lies among its files"


def _without(run: Run) -> str:
    if not run.tables["checkpoints"].num_rows and _saved(run):
        return "from a checkpoint that was not among its files"
    return "from the start"


def _advice(case: Case, start: str) -> tuple[str | None, str]:
    """What `rerun` says, or None and why."""
    status, kind = case.run["status"], case.run["ending"]["kind"]
    if status == "running":
        return "no: it is still running", ""
    if case.verdict == "unhealthy":
        return _of_trouble(case, start)
    if status == "finished":
        return ("no: finished and healthy", "") if case.verdict == "healthy" else (None, "cannot tell whether it is healthy")
    if kind in NOT_OURS:
        return None, NOT_OURS[kind]
    return f"yes, {start}: nothing measured needs fixing", ""


def _of_trouble(case: Case, start: str) -> tuple[str | None, str]:
    if case.run["status"] == "finished" and all(map(_passed, (f for f in case.findings if f.severity in GRAVE))):
        return "no: finished, and what went wrong did not last", ""
    leader = case.hypotheses[0] if case.hypotheses else None
    if leader is None or leader.id == UNKNOWN or certainty(leader.probability, True) == OPEN:
        return None, "its cause is open"
    cause = causes().get(leader.id)
    if cause is not None and cause.no_rerun:
        return f"no: {cause.no_rerun}", ""
    change = _change(leader)
    if change.startswith(KEEP):
        return f"no: {_shortened(change)}", ""
    return (f"yes, {start}: {_shortened(change)}", "") if change else (None, f"nothing is known that fixes {within(leader.title)}")


def _passed(f: Finding) -> bool:
    if isinstance(f.facts, nonfinite.Facts) and not f.facts.recovered:
        return False
    return f.kind in HARMLESS_AFTERWARDS and not gpu_hours.lasts(f.facts)


def _change(leader: Hypothesis) -> str:
    """The first intervention that changes something, else the first."""
    told = [text for text in leader.interventions if not text.startswith(RESUME)]
    return next((text for text in told if not text.startswith(LOOKS)), told[0] if told else "")


def _shortened(text: str) -> str:
    said = within(text).rstrip(".")
    return said if len(said) <= LONGEST else said[: LONGEST - 1].rstrip() + "\u2026"


def superseded(rows: Sequence[dict[str, Any]], briefs: Sequence[Brief]) -> Iterator[tuple[int, str]]:
    """(index, what `rerun` says) of the runs to start again of which another with the same config and seed has finished healthy."""
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    recipes: dict[Any, Any] = {}  # each held once
    for i, b in enumerate(briefs):
        if recipe := b.recipe:
            alike[b.family, b.seed, recipes.setdefault(recipe, recipe)].append(i)
    for members in alike.values():
        done = [rows[i]["id"] for i in members if rows[i]["verdict"] == "healthy" and rows[i]["status"] == "finished"]
        for i in members if done else ():
            if (rows[i]["rerun"] or "").startswith("yes"):
                yield i, f"no: {done[0]} finished healthy with the same config"
