"""Checkpoint damage

What it sees
    Checkpoint files that are empty, cut off, or not what their header says; values in them that are not finite, or of a
    size that no training reaches, or that Adam cannot have brought there since the save before; pickles that ask their reader to run
    something. Checkpoints that could not be written.

How it decides
    A safetensors file must end where its header says, a zip must have its directory. Then every value of weights and
    moments is looked at once (up to 2 GB in all): NaN and infinities; magnitudes above 1e6; a single value that holds nine
    tenths of its tensor's squares and is fifty times what the others are worth. Masks full of infinities are no damage. Adam moves a value by at
    most 3.2 times the rate in an update: of two saves of one attempt the later one holds none that is half as far again beyond that.
    Weights that are zero or constant throughout, variances and second moments below zero, moments of other shapes than their
    weights, a file of weights without a tensor and a loss scale that fell below one are told as `forensics checkpoint` tells them.
    An error that was raised in a save is told by its words: a warning where the run ended of it, information where it went on.

Cannot tell
    For formats that carry no length (legacy pickles, raw arrays), beyond the budget, and where there is no checkpoint in the folder
    and no save failed.

Folklore
    "Keep-3 deleted the last healthy checkpoint": know which one is whole before you need it. Megatron-LM#5281: a corrupt
    checkpoint that loads, and gives NaN three steps later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from forensics import evidence
from forensics.case import BaseFacts, Evidence, Finding
from forensics.checkpoints import run_saves
from forensics.checkpoints.between_saves import beyond_adam
from forensics.checkpoints.buffers import batchnorm
from forensics.checkpoints.describe import Checkpoint
from forensics.checkpoints.layers import alike, empty
from forensics.checkpoints.optimizer import moments, scaler
from forensics.checkpoints.sick_document import row
from forensics.checkpoints.sick_values import absurd, blown_up, foreign_code, nonfinite, without_tensors
from forensics.errors import CannotTell
from forensics.run import failed_saves, fatal_lines
from forensics.run.endings import Event
from forensics.run.how_it_ended import ending
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["checkpoints"]
_COLUMNS = ("name", "role", "shape", "norm", "absmax", "nonfinite")
SMALLEST_EFFECT = "one byte missing at the end, one value that is not finite"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """One file, or one kind of sickness of the checkpoints' values."""

    path: str
    bytes: int | None = None  # of a file that is damaged
    what: str | None = None  # kind of sickness
    absurd: bool | None = None  # a value of a size that no training reaches
    checkpoints: int | None = None  # how many are like this
    unwritten: int | None = None  # saves that failed


def detect(run: Run) -> Iterator[Finding]:
    table, failed = run.tables["checkpoints"], failed_saves.errors(run)
    if failed:
        yield _unwritten(run, failed)
    elif not table.num_rows:
        raise CannotTell("there is no checkpoint in the folder")
    broken = [c for c in table.to_pylist() if c["complete"] is False]
    for c in broken[:20]:
        why = next((g.what for g in run.gaps if g.path == c["source"]), "incomplete")
        shown = evidence.table("the file", ["file", "bytes", "what is wrong"], [[c["source"], c["bytes"], why]], c["source"])
        facts = Facts(c["source"], bytes=c["bytes"])
        title, key = f"Checkpoint {c['source']} is damaged: {why}", f"{c['step']}-{c['path']}"
        yield evidence.found(facts, title, (c["step"], c["step"]), "warning", shown, key=key, times=(c["time"], None))
    yield from _values(run)


def _unwritten(run: Run, failed: list[Event]) -> Finding:
    """The last save that failed: what the run ended of, or else what it survived."""
    e, end = failed[-1], ending(run)
    step = e["step"] if e["step"] is not None else end.step
    fatal = end.died and (end.kind == "disk" or any(run.where(x["source"], x["at"]) == end.where for x in failed))
    place, words = run.where(e["source"], e["at"]), fatal_lines.words(e)
    shown = evidence.text("the error", str(e["text"]).splitlines()[-5:], place)
    facts = Facts(place, unwritten=len(failed))
    title = f"A checkpoint could not be written: {words}"
    return evidence.found(
        facts,
        title,
        (step, step),
        "warning" if fatal and failed_saves.for_want_of_room(e) else "info",
        shown,
        key=f"unwritten-{step}",
        times=(e["time"], None),
    )


def _values(run: Run) -> Iterator[Finding]:
    """One finding for each kind of sickness: the first checkpoint that has it, and how many do."""
    found = run_saves.tensors(run)
    yield from _leaps(run, found)
    for kind, look, severity in (
        ("nonfinite", nonfinite, "critical"),
        ("absurd", absurd, "critical"),
        ("blown_up", blown_up, "critical"),
        ("code", foreign_code, ""),
        ("no_tensors", without_tensors, ""),
        ("zero", empty, ""),
        ("alike", alike, ""),
        ("batchnorm", batchnorm, ""),
        ("moments", moments, ""),
        ("scaler", scaler, ""),
    ):
        sick = [(c, told[0]) for c in found if (told := [f for f in look(c) if f["severity"] != "info"])]
        if not sick:
            continue
        first, worst = sick[0]
        place = run_saves.name(first, run)
        more = f"; {len(sick)} of {len(found)} checkpoints are like this" if len(sick) > 1 else ""
        facts = Facts(place, what=kind, absurd=kind == "absurd", checkpoints=len(sick))
        graveness = "warning" if worst["severity"] == "warning" else severity or "critical"
        steps, shown = (first.step, sick[-1][0].step), _shown(first, worst["tensors"], place)
        yield evidence.found(facts, f"Checkpoint {place}: {worst['title']}{more}", steps, graveness, shown, key=f"{kind}-{first.step}")


def _leaps(run: Run, found: list[Checkpoint]) -> Iterator[Finding]:
    """The first pair of saves of one attempt between which a weight went further than its optimizer takes it."""
    launches = [a["steps"][0] for a in run.attempts[1:]]
    for a, b in pairwise([c for c in found if c.step is not None and c.stats]):
        told = [] if any((a.step or 0) < begins <= (b.step or 0) + 1 for begins in launches) else list(beyond_adam(a, b))
        if told:
            place = run_saves.name(b, run)
            facts = Facts(place, what="absurd", absurd=True, checkpoints=1)
            shown = _shown(b, told[0]["tensors"], place)
            yield evidence.found(
                facts, f"Before {place} was saved {told[0]['title']}", (a.step, b.step), "critical", shown, key=f"leap-{b.step}"
            )
            return


def _shown(c: Checkpoint, names: list[str], place: str) -> Evidence:
    named = set(names)
    rows = [[_plain(r[k]) for k in _COLUMNS] for t in c.contents.tensors if t.name in named and (r := row(t, c.stats.get(t.name)))]
    return evidence.table("the tensors", _COLUMNS, rows[:20], place)


def _plain(x: object) -> object:
    return float(f"{x:.6g}") if isinstance(x, float) else x if isinstance(x, (int, str)) else str(x)
