"""`forensics replay --across`: the same batches at every checkpoint, to find the stretch in which a slow trouble began.

A spike has a step; a loss that creeps up, or stops falling, has none. The batches come from before the first checkpoint, so that every
checkpoint has seen them alike and their losses can be compared one by one. Forward passes only; weights are enough.
"""

from __future__ import annotations

import math
import os
from typing import Any

from forensics.errors import ForensicsError
from forensics.replays import start_checkpoints
from forensics.replays.request import Options, Progress, started
from forensics.replays.session import with_order
from parsers.tables import Run

BATCHES = 16
CLEAR = 4.0  # standard errors of the mean change: of forty intervals one in 500 goes so far by chance
MOST = 40  # checkpoints


def across(run: Run, options: Options, progress: Progress) -> dict[str, Any]:
    """``{"rows", "worst", "says"}``; a row has ``step``, ``checkpoint``, ``loss``, ``change``, ``error`` (from the row before), ``norm`` (of all weights).
    Raises ForensicsError where fewer than two checkpoints can be used, ReplayFailed as a replay does."""
    options = with_order(run, options, None)
    start_checkpoints.fetch(run, None)
    with started(options, run.root) as worker:
        about = worker.open(options.device, options.threads or max(1, (os.cpu_count() or 2) // 2), options.memory)
        known = start_checkpoints.good(run, about["checkpoints"])
        known = [known[round(i * (len(known) - 1) / (MOST - 1))] for i in range(MOST)] if len(known) > MOST else known
        if len(known) < 2:
            raise ForensicsError(f"{len(known)} checkpoints can be used: nothing to compare", "Two sound ones with their steps are needed.")
        batches = _probes(known[0].step, options.order)
        rows: list[dict[str, Any]] = []
        before: list[float] = []
        for i, start in enumerate(known):
            progress("looking at checkpoints", i, len(known))
            worker.ask("start", path=start.path, name="across")
            told = worker.ask("losses", state="across", batches=batches, evaluate=True, norm=True)
            each = [float(x) for x in told["losses"]]
            change, error = _change(before, each)
            place = os.path.relpath(start.path or "", run.root)
            rows.append(
                {
                    "step": start.step,
                    "checkpoint": place,
                    "loss": sum(each) / len(each),
                    "change": change,
                    "error": error,
                    "norm": float(told["norm"]),
                }
            )
            before = each
    worst = _worst(rows)
    return {"rows": rows, "batches": len(batches), "worst": worst, "says": _says(rows, worst)}


def _probes(first: int, order: dict[int, list[Any]] | None) -> list[int]:
    """Batches that every checkpoint has seen alike: from before the first one; where that is at the very beginning, the first there are."""
    have = sorted(order) if order else list(range(1, max(first, BATCHES + 1)))
    have = [b for b in have if b < first] or have
    every = max(len(have) / BATCHES, 1.0)
    return [have[int(i * every)] for i in range(min(BATCHES, len(have)))]


def _change(before: list[float], now: list[float]) -> tuple[float | None, float | None]:
    """(mean change of the batches, its standard error); None without a row before."""
    each = [b - a for a, b in zip(before, now, strict=False)]
    if len(each) < 2:
        return None, None
    mean = sum(each) / len(each)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in each) / (len(each) - 1) / len(each))


def _worst(rows: list[dict[str, Any]]) -> int | None:
    """The row to which the loss of the same batches rises most, in standard errors; the first that is not finite before all."""
    broken = next((i for i, r in enumerate(rows) if not math.isfinite(r["loss"])), None)
    if broken is not None:
        return broken
    rises = {i: r["change"] / max(r["error"], 1e-12) for i, r in enumerate(rows) if r["change"] is not None}
    top = max(rises, key=lambda i: rises[i], default=None)
    return top if top is not None and rises[top] >= CLEAR else None


def _says(rows: list[dict[str, Any]], worst: int | None) -> str:
    if worst is None:
        return "The loss of the same batches rises clearly from no checkpoint to the next: what went wrong is not in the weights, or came before the first one."
    r = rows[worst]
    if not worst:
        return f"The first checkpoint, of step {r['step']}, is broken already."
    first, last = rows[worst - 1]["step"], r["step"]
    how = f"rises from {rows[worst - 1]['loss']:.4g} to {r['loss']:.4g}" if math.isfinite(r["loss"]) else "is not finite any more"
    return f"Between step {first} and step {last} the loss of the same batches {how}: `--steps {first}:{last}` replays that stretch."


def lines(found: dict[str, Any]) -> list[str]:
    """For a terminal: the answer, then a row a checkpoint."""
    cells = [("step", "loss", "change", "error", "weights' norm", "checkpoint")]
    for i, r in enumerate(found["rows"]):
        change, error = ("-" if r[k] is None else f"{r[k]:+.3g}" if k == "change" else f"{r[k]:.2g}" for k in ("change", "error"))
        mark = "  <-" if i == found["worst"] else ""
        cells.append((str(r["step"]), f"{r['loss']:.4g}", change, error, f"{r['norm']:.4g}", f"{r['checkpoint']}{mark}"))
    wide = [max(len(row[i]) for row in cells) for i in range(5)]
    table = ["  ".join([*(c.rjust(w) for c, w in zip(row, wide, strict=False)), row[5]]) for row in cells]
    return [found["says"], f"The same {found['batches']} batches at {len(found['rows'])} checkpoints.", "", *table]
