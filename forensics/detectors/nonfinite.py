"""Non-finite values

What it sees
    NaN or infinity in a loss or a norm, in the log as it stands; and lines in which a program says that it met one.

How it decides
    Every NaN or infinity of a training or evaluation loss counts: the first is the finding's step. In the gradient norm
    alone it is remarkable only when no loss scaler is at work, which skips such steps as a matter of routine. It also
    measures how calm the gradient norm was just before: an explosion announces itself there, a bad sample does not.

Cannot tell
    Some loggers hide it: Hugging Face replaces a NaN in the running mean, Megatron leaves the field out of the line. Then
    zeros, missing fields and the gradient norm are what remains (see zero_loss and logger_artefact).

Folklore
    "Keep the frames before the NaN." A gradient-norm spike a step before it says optimization, a flat one says bad sample
    or numerics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import Finding
from forensics.run.endings import events
from forensics.run.series import Series, series
from parsers.tables import Run

NEEDS = ["loss.train|loss.eval|grad.norm"]
WATCHED = ("loss.train", "loss.eval", "grad.norm")
CALM = 3.0  # the gradient norm before the event is calm below this many times its median


def detect(run: Run) -> Iterator[Finding]:
    found = False
    for name in WATCHED:
        s = series(run, name)
        bad = np.flatnonzero(~np.isfinite(s.value)) if s is not None else np.array([], np.int64)
        if s is not None and len(bad):
            found = True
            yield _finding(run, s, bad)
    if not found:
        yield from _said(run)


def smallest_effect(run: Run) -> str:
    s = series(run, "loss.train")
    return f"one value (logged every {s.interval} steps)" if s is not None else "one value"


def _finding(run: Run, s: Series, bad: Any) -> Finding:
    first = int(bad[0])
    step, last = int(s.step[first]), int(s.step[bad[-1]])
    stays = len(bad) >= 2 and bool((~np.isfinite(s.value[first:])).all())
    recovered = not stays and first + 1 < len(s) and bool(np.isfinite(s.value[first + 1 :]).any())
    word = "NaN" if np.isnan(s.value[first]) else "infinite"
    how = "and stays so to the end" if stays or not recovered else f"{len(bad)} values in all, finite again in between"
    scaled = series(run, "loss_scale") is not None
    severity = "critical" if s.name.startswith("loss") else "info" if scaled else "warning"
    facts: dict[str, Any] = {
        "metric": s.name,
        "first": step,
        "last": last,
        "count": len(bad),
        "recovered": recovered,
        "attempt": int(s.attempt[first]),
        "at_start": first == 0,
        "infinite": word == "infinite",
    } | _before(run, step)
    shown = [
        evidence.window(
            s,
            step,
            step,
            title=f"{s.tag} before step {step}",
            where=s.place(run, first),
            marks=[{"step": step, "label": f"step {step}: {word}", "kind": "nonfinite"}],
            margin=0,
        )
    ]
    grad = series(run, "grad.norm")
    if grad is not None and s.name != "grad.norm":
        shown.append(evidence.window(grad, step, step, title="gradient norm on the way there", where=grad.place(run, first)))
    title = f"{s.tag} is {word} from step {step} on {how}" if stays or not recovered else f"{s.tag} is {word} at step {step}, {how}"
    return Finding(
        f"nonfinite-{step}-{s.name}", "nonfinite", title, step, last, severity, tuple(shown), facts, (s.clock(first), s.clock(bad[-1]))
    )


def _before(run: Run, step: int) -> dict[str, Any]:
    """How the gradient norm and the loss behaved in the ten values before a step."""
    facts: dict[str, Any] = {}
    for name, key in (("grad.norm", "grad"), ("loss.train", "loss")):
        s = series(run, name)
        if s is None:
            continue
        before = s.value[(s.step < step) & np.isfinite(s.value)]
        if len(before) >= 8:
            earlier = before[-60:-5] if len(before) > 12 else before
            usual, highest = float(np.median(earlier)), float(earlier.max())
            peak = float(before[-5:].max())
            facts |= {f"{key}_ratio": peak / usual if usual else None, f"{key}_before": peak, f"{key}_usual": usual}
            facts[f"{key}_highest"] = highest
    return facts


def _said(run: Run) -> Iterator[Finding]:
    lines = events(run, "nonfinite")
    if lines:
        first = lines[0]
        shown = evidence.text("what the log says", [e["text"] for e in lines[:5]], run.where(first["source"], first["at"]))
        title = f"Logged {'once' if len(lines) == 1 else f'{len(lines)} times'}: {first['text'][:120]}"
        facts = {"metric": "", "first": first["step"], "count": len(lines), "recovered": None, "said": True}
        yield Finding(
            f"nonfinite-{first['step']}-said",
            "nonfinite",
            title,
            first["step"],
            lines[-1]["step"],
            "warning",
            (shown,),
            facts,
            (first["time"], lines[-1]["time"]),
        )
