"""`forensics replay --score`: which batches of a window stand out, by one forward pass over each; weights are all it needs.

Every batch of the window, and many ordinary ones, are looked at with the weights of one checkpoint. A p-value is the share of
ordinary batches that cost as much; the corrected one is that of the highest among as many ordinary batches as the window has.
It ranks what to read and what to replay first. It proves no cause: a rare batch may be sound, and a bad one cheap.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from forensics.case import Case
from forensics.errors import ForensicsError
from forensics.replays import start_checkpoints
from forensics.replays.agreement import printed_unit
from forensics.replays.check import OFFSETS
from forensics.replays.client import ReplayFailed, Worker
from forensics.replays.request import Options, Progress, started
from forensics.replays.runner import spread
from forensics.replays.session import with_order
from forensics.replays.targets import Logged, logged, troubles
from forensics.run.endings import step_origin
from parsers.tables import Run

BACK = 16  # steps before an effect that are looked at where no window is named
ORDINARY = 20  # ordinary batches a batch of the window: the corrected p-value of one that stands out is below 1 in 20
MOST = 512  # ordinary batches
STANDS_OUT = 0.05  # corrected p-value
SAME = 1e-3  # of a logged loss: what another kernel or its rounding may make of it


def scored(run: Run, case: Case, options: Options, progress: Progress) -> dict[str, Any]:
    """``{"from", "steps", "ordinary", "counts", "rows", "says"}``; rows by p-value: ``step``, ``loss``, ``z``, ``p``, ``corrected``, and of its costliest
    sample ``sample``, ``sample_loss``, ``sample_p``. Raises ForensicsError without a window, ReplayFailed as a replay does."""
    found = troubles(run, case.findings, options.steps)
    if not found:
        raise ForensicsError("there is no step to look at: no grave finding has one", "Name a window with --steps A:B.")
    first, last = options.steps or (found[0].onset - BACK, found[0].peak)
    options = with_order(run, options, first)
    start_checkpoints.fetch(run, first, last)
    log, origin = logged(run, found[0].attempt), step_origin(run)
    with started(options, run.root) as worker:
        about = worker.open(options.device, options.threads or max(1, (os.cpu_count() or 2) // 2), options.memory)
        known = start_checkpoints.good(run, about["checkpoints"])
        start = (
            start_checkpoints.Start(-1, options.checkpoint)
            if options.checkpoint
            else start_checkpoints.before(known, first - origin, first - origin)
        )
        told = worker.ask("start", path=start.path, name="start")
        done = start_checkpoints.step_of(told, start)
        shift, how = _counting(worker, log, done, origin)
        window = [s for s in range(max(first - shift, 0), last - shift + 1) if about["last_step"] is None or s < about["last_step"]]
        ordinary = _ordinary(window, about["last_step"], options.budget, done + origin - shift, origin - shift)
        losses = _losses(worker, [*window, *ordinary], progress)
        ids = worker.ask("ids", batches=window)["ids"]
    null = [losses[b] for b in ordinary if b in losses and all(map(math.isfinite, losses[b]))]
    rows = _rows(window, losses, null, ids, shift)
    place = os.path.relpath(start.path, run.root) if start.path else "the model as built"
    document = {"from": {"step": done, "checkpoint": place}, "steps": [first, last], "ordinary": len(null), "counts": how, "rows": rows}
    return document | {"says": _says(rows, len(null))}


def _counting(worker: Worker, log: Logged, done: int, origin: int) -> tuple[int, str]:
    """(label - number of the adapter's batch, how that is known): the batch whose loss at this state is the logged one."""
    label = done + origin
    value = log.loss.get(label)
    if value is None or not math.isfinite(value):
        return origin, "The log has no loss at the step of the checkpoint: that the adapter's batches are the run's is taken on trust."
    allowed = 0.5 * printed_unit([log.loss[s] for s in sorted(log.loss)][:200]) + SAME * abs(value)
    for offset in (0, *OFFSETS):
        try:
            seen = float(worker.ask("losses", state="start", batches=[max(done + offset, 0)])["losses"][0])
        except ReplayFailed as e:
            if e.kind != "adapter":
                raise
            continue
        if abs(seen - value) <= allowed:
            number = "step" if label == done + offset else f"step {'+' if done + offset > label else '-'} {abs(done + offset - label)}"
            return (
                origin - offset,
                f"The batch of step {label} costs {seen:.4g} at this state, as logged: the batch of a logged step is batch({number}).",
            )
    return (
        origin,
        f"No batch near the checkpoint costs the {value:.4g} that the log has there: the adapter's order or state may not be the run's (--check).",
    )


def _ordinary(window: Sequence[int], last: int | None, most: int | None, done: int, lowest: int) -> list[int]:
    """Numbers of batches outside the window: as the window's, such that these weights have not learnt from, then older ones, latest first."""
    if not window:
        return []
    wanted = min(most or MOST, ORDINARY * len(window))
    end = window[-1] + 1 + wanted
    unseen = [*range(max(done, lowest), window[0]), *range(window[-1] + 1, end if last is None else min(end, last))]
    return [*unseen, *range(min(done, window[0]) - 1, lowest - 1, -1)][:wanted]


def _losses(worker: Worker, batches: Sequence[int], progress: Progress) -> dict[int, list[float]]:
    """One loss a sample of each batch; batches that are not there are left out."""
    found: dict[int, list[float]] = {}
    for i, b in enumerate(batches):
        progress("looking at batches", i, len(batches))
        try:
            row = worker.ask("losses", state="start", batches=[b], rows=True, evaluate=True)["losses"][0]
        except ReplayFailed as e:
            if e.kind != "adapter" or i == 0:
                raise
            continue
        found[b] = [float(x) for x in row]
    return found


def _rows(
    window: Sequence[int], losses: dict[int, list[float]], null: Sequence[Sequence[float]], ids: Sequence[Any], shift: int
) -> list[dict[str, Any]]:
    means, tops = [_mean(x) for x in null], [_top(x) for x in null]
    level, sigma = spread(means)
    rows = []
    for b, names in zip(window, ids, strict=True):
        if b not in losses:
            continue
        each = losses[b]
        mean, top = _mean(each), _top(each)
        worst = next((i for i, x in enumerate(each) if _high(x) == top), 0)
        p = _share(mean, means)
        rows.append({
            "step": b + shift, "loss": mean, "z": (mean - level) / sigma if sigma and math.isfinite(mean) else None, "p": p, "corrected": min(1.0, len(window) * p),
            "sample": names[worst] if names else worst, "sample_loss": each[worst], "sample_p": _share(top, tops),
        })  # fmt: skip
    return sorted(rows, key=lambda r: (min(r["p"], r["sample_p"]), -_high(r["loss"])))


def _share(x: float, null: Sequence[float]) -> float:
    """The share of ordinary values that are as high, this one counted among them (Phipson and Smyth 2010: never zero)."""
    return (1 + sum(_high(v) >= _high(x) for v in null)) / (1 + len(null))


def _high(x: float) -> float:
    """A value that is not finite is above all others."""
    return x if math.isfinite(x) else math.inf


def _mean(each: Sequence[float]) -> float:
    return sum(each) / len(each) if each else math.nan


def _top(each: Sequence[float]) -> float:
    return max(map(_high, each), default=math.inf)


def _says(rows: Sequence[dict[str, Any]], ordinary: int) -> str:
    out = [r for r in rows if not math.isfinite(r["loss"]) or min(r["corrected"], len(rows) * r["sample_p"]) <= STANDS_OUT]
    if not rows:
        return "No batch of the window could be looked at."
    if not out:
        r = rows[0]
        return f"No batch of the window stands out: {max(round(r['p'] * (ordinary + 1)) - 1, 0)} of {ordinary} ordinary ones cost as much as the batch of step {r['step']}."
    named = ", ".join(f"{r['step']}" for r in out[:5])
    return f"Read first, and replay first: the batch{'es' * (len(out) > 1)} of step{'s' * (len(out) > 1)} {named}. A high loss ranks; it proves no harm."
