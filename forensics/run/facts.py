"""The plain facts of a run, each with the place it stands at: how far it came, how far it was to go, last values under their own names,
framework, devices, precision. As logged: no medians, no units added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.batches import sample_order
from forensics.run import evaluation_power, how_it_ended, plan, reach, schedule_name, settings
from forensics.run.inputs import leading_term
from forensics.run.metric_columns import arrays
from forensics.run.once import once
from forensics.run.series import Series, series
from parsers import arrow
from parsers.records.vocabulary import COMPOSED_STEPS
from parsers.tables import Run

_LAST = ("loss.train", "loss.eval", "ppl.train", "ppl.eval", "bpb.eval", "acc.train", "acc.eval", "rl.reward")
_STATE = {"lr", "lr.mult", "loss_scale", "skip.count"}  # what an engine prints of itself when it is built, before a step
_STATE_TAGS = {"mom", "momentum", "betas", "wd", "weight_decay", "hp_metric"}  # the last one Lightning writes beside its hyperparameters
WORKED_OUT = ("schedule", "scatter", "order of the samples")  # facts that no line of the log states
Fact = dict[str, Any]


@once
def axis(run: Run) -> dict[str, Any]:
    """What the steps of the tables and of every finding count: ``unit`` step or epoch, ``steps`` first and last, ``says`` where they are
    made of an epoch and an iteration in it."""
    return {"unit": plan.unit(run), "steps": _span(run), "says": COMPOSED_STEPS if reach.composed(run) else ""}


@once
def labels(run: Run) -> tuple[list[int | None], str]:
    """First and last step in the labels that the log prints, and what they count: epochs where no line names a step through the run."""
    epoch = series(run, "epoch")
    if plan.counts_epochs(run) and epoch is not None:
        return [int(epoch.value.min()), int(epoch.value.max())], "epoch"
    return _span(run), plan.unit(run)


def label(run: Run, step: int | None) -> int | None:
    """A step of the tables as the log prints it: the epoch that it falls in, where `labels` are epochs."""
    if step is None or not labels_differ(run):
        return step
    begins, epochs = _epochs(run)
    return int(epochs[max(int(np.searchsorted(begins, step, "right")) - 1, 0)])


@once
def labels_differ(run: Run) -> bool:
    """Does the log print other labels than the steps that the tables count?"""
    return labels(run) != (_span(run), plan.unit(run))


@once
def _epochs(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The first step of each epoch, in order, and the epochs."""
    epoch = series(run, "epoch")
    assert epoch is not None  # labels differ for it alone
    order = np.lexsort((epoch.step, epoch.value))
    value, step = epoch.value[order], epoch.step[order]
    first = np.append(True, np.diff(value) > 0)
    begins, epochs = step[first], value[first]
    order = np.argsort(begins, kind="stable")
    return begins[order], epochs[order]


def planned(run: Run) -> plan.Plan | None:
    """How far it was to go, in the labels that the log prints; where nothing tells, as far as it came before it finished by its own word or looks
    finished, unless it stopped itself early."""
    (first, last), unit = labels(run)
    told, ended = plan.labelled(run), how_it_ended.ending(run)
    if told is not None or last is None or ended.kind != "finished" or ended.how not in ("said", "guess"):
        return told
    return plan.Plan(last + (unit == "epoch" and first == 0), unit, f"where it finished: {ended.says}", ended.where)


def facts(run: Run) -> list[Fact]:
    """``{"what", "value", "where"}`` each, with ``step`` where the value belongs to one and ``says`` where it was worked out."""
    (first, last), unit = labels(run)
    found = []
    for what, step, end in (("first", first, 0), ("last", last, -1)):
        if step is not None:
            found.append({"what": f"{what} {unit}", "value": step, "where": _place(run, end)})
    if (told := planned(run)) is not None:
        rivals = {"against": list(told.against)} if told.against else {}
        found.append({"what": f"planned {told.unit}s", "value": told.value, "where": told.where, "says": told.says} | rivals)
    found += [_last_value(run, s) for s in _shown(run)]
    rate, named = series(run, "lr"), schedule_name.named(run)
    if rate is not None and named is not None:
        says = "by the path of the logged rate"
        found.append(
            {"what": "schedule", "value": named[0], "where": rate.place(run, named[1]), "step": int(rate.step[named[1]]), "says": says}
        )
    for s, row, text, says in evaluation_power.told(run):
        found.append({"what": f"scatter of {s.tag}", "value": text, "where": s.place(run, row), "says": says})
    if order := sample_order.told(run):
        found.append({"what": "order of the samples", "value": order, "where": "", "says": "by the files that list the batches"})
    if (devices := settings.setting(run, "world_size")) is not None:
        found.append({"what": "devices", "value": devices.value, "where": devices.where, "says": f"the setting {devices.key}"})
    if run.framework:
        found.append({"what": "framework", "value": run.framework, "where": ""})
    if (precision := settings.precision(run)) is not None:
        found.append({"what": "precision", "value": precision, "where": settings.settings(run, "precision")[0].where})
    return found


def _shown(run: Run) -> list[Series]:
    found = [s for name in _LAST if (s := series(run, name)) is not None and len(s)]
    term = leading_term(run) if not any(s.name.startswith("loss.") for s in found) else None
    return found + ([term] if term is not None and len(term) else [])


def _last_value(run: Run, s: Series) -> Fact:
    row = int(np.lexsort((np.arange(len(s)), s.step, s.attempt))[-1])
    return {"what": f"last {s.tag}", "value": float(s.value[row]), "where": s.place(run, row), "step": int(s.step[row])}


def _span(run: Run) -> list[int | None]:
    """The first step that was measured and the last; of saved files where nothing was logged."""
    steps = [s for a in run.attempts for s in a["steps"]]
    if not steps:
        saved = arrow.distinct(run.tables["checkpoints"]["step"])
        return [saved[0], saved[-1]] if saved else [None, None]
    reached = [n for n, _ in plan.said(run, "reached")]  # where the bar over the training stood at last
    return [_first_measured(run, min(steps)), max([*steps, *reached])]


def _first_measured(run: Run, first: int) -> int:
    """Without a line that an engine prints of itself before its first step: nothing but rate, loss scale and momentum."""
    columns = arrays(run)
    state = np.isin(columns["name"], [i for i, n in enumerate(columns["names"]) if n in _STATE])
    state |= np.isin(columns["tag"], [i for i, t in enumerate(columns["tags"]) if t in _STATE_TAGS])
    measured, rates = columns["stepped"] & ~state, columns["stepped"] & state & (columns["name"] == columns["code_of"].get("lr", -2))
    begin = int(columns["step"][measured].min()) if measured.any() else first
    return begin if len(np.unique(columns["step"][rates & (columns["step"] < begin)])) < 2 else first


def _place(run: Run, end: int) -> str:
    """File and place of the first (0) or the last (-1) row of the table's steps."""
    columns, steps = arrays(run), _span(run)
    rows: list[int] = np.flatnonzero(columns["stepped"] & (columns["step"] == steps[end])).tolist() if steps[end] is not None else []
    if not rows:
        return ""
    row = rows[end]
    at = int(columns["at"][row])
    return run.where(columns["sources"][int(columns["source"][row])], at if at >= 0 else None)
