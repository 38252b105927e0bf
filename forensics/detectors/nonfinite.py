"""Non-finite values

What it sees
    NaN or infinity in a loss or a norm, in the log as it stands; and lines in which a program says that it met one.

How it decides
    Every NaN or infinity of a training or evaluation loss counts (of each of its terms, where only terms are logged), on any rank:
    the first is the finding's step. In a loss that is finite again it is information where the loss scale falls at each of its steps: the scaler
    skipped them; and in an evaluation loss that is no number throughout, while scores of the same data get better, or is none in a tenth of the
    evaluations at most, all in the first half, beside a training that is finite all along. In the gradient norm alone it is information where a loss scaler is at work, which skips
    such steps as a matter of routine, and where the norm is finite again and less than a fifth of it is not. It also measures how calm the gradient norm was just before: an explosion announces
    itself there, a bad sample does not. Frames that a program printed (transformers' DebugUnderflowOverflow) are read for the first module whose
    output is not finite. NaN before the first finite value and never after it is a number that was not
    computed yet (a replay buffer that fills up): an update cannot undo a NaN; where the rate warms up meanwhile updates are made, and it counts. The best value so far is infinite before there is one.

Cannot tell
    Some loggers hide it: Hugging Face replaces a NaN in the running mean, Megatron leaves the field out of the line. Then
    zeros, missing fields and the gradient norm are what remains (see zero_loss and logger_artefact).

Folklore
    "Keep the frames before the NaN." A gradient-norm spike a step before it says optimization, a flat one says bad sample
    or numerics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Evidence, Finding
from forensics.detectors import loss_scale
from forensics.detectors.ending import quoted
from forensics.run import overflow_frames
from forensics.run.endings import events
from forensics.run.inputs import LOSSES, OBJECTIVE, RISING
from forensics.run.robust import median
from forensics.run.scores import scores
from forensics.run.series import Ints, Series, by_rank, names, parts, series
from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL
from parsers.name_rules import words
from parsers.tables import Run

NEEDS = [f"{OBJECTIVE}|grad.norm"]
FEW, LOOKED = 3, 400  # bound: values that are no single slip; of as many metrics, those of layers and experts are many
SELDOM = 0.1  # unit: a tenth of the evaluations
CALM = 3.0  # the gradient norm before the event is calm below this many times its median; causes ask, no verdict hangs on it (docs/thresholds.md)


_BEST = lazy_re(r"\b(?:best|lowest|highest|min|max)\b")
_REPLACED = lazy_re(r"(?i)\bvalue encountered\. Reporting it as\b")  # ClearML


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The first value that is not finite, and what loss and gradient norm did before it."""

    metric: str  # canonical name; empty where only a line of the log says so
    first: int | None  # step
    count: int
    recovered: bool | None  # finite values come after it
    last: int | None = None  # step
    attempt: int | None = None
    at_start: bool | None = None  # it is the very first value
    infinite: bool | None = None  # infinity, not NaN
    said: bool | None = None  # a line of the log says so
    rank: int | None = None  # that has it, where others have none
    grad_ratio: float | None = None  # highest of the five values before, over the usual
    grad_before: float | None = None  # the highest of the five values before
    grad_usual: float | None = None  # median of some fifty earlier ones
    grad_highest: float | None = None  # of these
    loss_ratio: float | None = None
    loss_before: float | None = None
    loss_usual: float | None = None
    loss_highest: float | None = None


def detect(run: Run) -> Iterator[Finding]:
    found = False
    losses = [name for name in LOSSES if series(run, name) and (name.startswith("loss") or not series(run, f"loss{name[3:]}"))]
    watched = [by_rank(run, name) for name in losses] or [[s] for name in ("loss.aux", *RISING) for s in parts(run, name)]
    seen = {s.tag for ranks in watched for s in ranks}
    # of epochs, beside the loss of each step; of other sets
    means = [[s] for name in losses for s in parts(run, name) if s.tag not in seen]
    for ranks in (*watched, *means, *(by_rank(run, name) for name in ("rl.loss_policy", "rl.loss_value", "grad.norm"))):
        sick = [(s, bad) for s in ranks if len(bad := _computed(run, s))]
        if sick:
            found = True
            first = min(sick, key=lambda x: int(x[0].step[x[1][0]]))
            yield _finding(run, *first, [s.rank for s, _ in sick])
    if not found:
        yield from _said(run)
    for s in (s for name in [n for n in names(run, FEW) if n.startswith("other/")][:LOOKED] for s in parts(run, name)):
        if len(bad := _nan_to_the_end(s)) >= max(FEW, len(s) / 2):
            yield replace(_finding(run, s, bad, [s.rank]), severity="info")


def _nan_to_the_end(s: Series) -> Ints:
    """The rows behind the last number; none where NaN stand before it, too."""
    bad = np.flatnonzero(np.isnan(s.value))
    return bad if len(bad) and bad[0] == len(s) - len(bad) else bad[:0]


def _computed(run: Run, s: Series) -> Ints:
    """The rows that are not finite; none where all of them are NaN before the first finite value of the same process: those were not
    computed yet, unless the rate warms up meanwhile."""
    bad = np.flatnonzero(~np.isfinite(s.value))
    leading = 0 < len(bad) < len(s) and bad[-1] == len(bad) - 1 and len(np.unique(s.attempt[: len(bad) + 1])) == 1
    begun = np.isnan(s.value[bad]) | (_BEST.search(words(s.tag)) is not None)  # the best so far begins at infinity
    return bad[:0] if leading and bool(begun.all()) and not _warms_up(run, int(s.step[bad[-1]])) else bad


def _warms_up(run: Run, until: int) -> bool:
    """Whether the rate rises up to a step: a scheduler takes its steps with the updates."""
    lr = series(run, "lr")
    x = lr.value[lr.step <= until] if lr is not None else np.zeros(0)
    return len(x) > 1 and bool(x[-1] > x[0])


def smallest_effect(run: Run) -> str:
    s = series(run, "loss.train")
    every = "step" if s is None or s.interval == 1 else f"{s.interval} steps"
    return f"one value (logged every {every})" if s is not None else "one value"


def _scale_falls_there(run: Run, step: Ints) -> bool:
    """Whether the loss scale falls at each of these steps or at the row behind it: the scaler saw the overflow, skipped the update and looked for a scale that fits."""
    scale = series(run, "loss_scale")
    if scale is None or scale.usable.sum() < 2:
        return False
    at, x = scale.step[scale.usable], scale.value[scale.usable]
    falls = at[1:][np.diff(x) < 0]
    if not len(falls):
        return False
    until = falls[np.minimum(np.searchsorted(falls, step), len(falls) - 1)] - step  # its next fall
    before = step <= at[0]  # what it fell from was not logged
    return bool((before | ((until >= 0) & (until <= scale.interval))).all())


def _never_computed(run: Run, s: Series) -> bool:
    """Whether a loss of held-out data is no number at all, while scores of the same data get better: a number that is computed wrong, or not at all."""
    return s.name.endswith(".eval") and not np.isfinite(s.value).any() and any(c.cost[-1] < c.cost[0] for c in scores(run))


def _passed(run: Run, s: Series, bad: Ints) -> bool:
    """Whether a few early evaluations alone were not finite: training was all along, and so are all evaluations since."""
    trained = [p for name in ("loss.train", "loss.aux") for p in parts(run, name)]
    few = len(bad) <= max(SELDOM * len(s), 1) and bad[-1] < len(s) / 2
    return (
        s.name.endswith(".eval")
        and bool(trained)
        and few
        and all(np.isfinite(p.value).all() for p in trained if not EVAL.search(words(p.tag)))
    )


def _finding(run: Run, s: Series, bad: Ints, ranks: list[int]) -> Finding[Facts]:
    """``ranks``: those that have one; the series is that of the first."""
    first = int(bad[0])
    step, last = int(s.step[first]), int(s.step[bad[-1]])
    stays = len(bad) >= 2 and bool((~np.isfinite(s.value[first:])).all())
    recovered = not stays and first + 1 < len(s) and bool(np.isfinite(s.value[first + 1 :]).any())
    word = "NaN" if np.isnan(s.value[first]) else "infinite"
    how = "and stays so to the end" if stays or not recovered else f"{len(bad)} value{'s' * (len(bad) > 1)} in all, finite again in between"
    # had such a step been taken, the weights and every later value would be NaN: a scaler or a guard skipped it
    skipped = series(run, "loss_scale") is not None or (recovered and len(bad) < loss_scale.COSTLY * len(s))
    severity = "info" if skipped else "warning"
    if s.name.startswith(("loss", "ppl")):
        harmless = (recovered and _scale_falls_there(run, s.step[bad])) or _never_computed(run, s) or _passed(run, s, bad)
        severity = "info" if harmless else "critical"
    elif s.name.startswith("rl.loss") and not skipped and not recovered:
        severity = "critical"  # no update after it is one
    if s.name.startswith("rl.reward") and recovered and not word.startswith("inf"):
        severity = "info"  # the mean of no episode
    told, alone = "", len(by_rank(run, s.name)) > len(ranks)
    if alone:
        told = (
            f" on rank {s.rank} alone"
            if len(ranks) == 1
            else f" on {len(ranks)} of {len(by_rank(run, s.name))} ranks, first rank {s.rank},"
        )
    at, before = int(s.attempt[first]), _before(run, step)
    facts = Facts(s.name, step, len(bad), recovered, last, at, first == 0, word == "infinite", rank=s.rank if alone else None, **before)
    marks = [{"step": step, "label": f"step {step}: {word}", "kind": "nonfinite"}]
    shown = [evidence.window(s, step, step, *marks, title=f"{s.tag} before step {step}", where=s.place(run, first), margin=0)]
    grad = series(run, "grad.norm")
    if grad is not None and s.name != "grad.norm":
        beside = int(np.argmin(np.abs(grad.step - step)))
        shown.append(evidence.window(grad, step, step, title="gradient norm on the way there", where=grad.place(run, beside)))
    shown += _frames(run)
    lasts = stays or not recovered
    title = f"{s.tag} is {word}{told} from step {step} on {how}" if lasts else f"{s.tag} is {word}{told} at step {step}, {how}"
    return evidence.on_rows(s, (first, bad[-1]), facts, title, severity, *shown, key=f"{step}-{s.name}")


def _frames(run: Run) -> list[Evidence]:
    """The frame that a program printed of the module in which it began."""
    frame = overflow_frames.first_bad(run)
    return [evidence.text(frame.says, frame.lines, frame.where)] if frame is not None else []


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
            usual, highest = median(earlier), float(earlier.max())
            peak = float(before[-5:].max())
            facts |= {f"{key}_ratio": peak / usual if usual else None, f"{key}_before": peak, f"{key}_usual": usual}
            facts[f"{key}_highest"] = highest
    return facts


def _said(run: Run) -> Iterator[Finding]:
    lines = events(run, "nonfinite")
    if lines:
        first = lines[0]
        shown = evidence.text("what the log says", [e["text"] for e in lines[:5]], run.where(first["source"], first["at"]))
        told = "A line tells" if len(lines) == 1 else f"{len(lines)} lines tell"
        title = f"{told} of values that are not finite: {quoted(first['text'])}"
        step, times = first["step"], (first["time"], lines[-1]["time"])
        facts = Facts("", step, len(lines), None, said=True)
        # of a tracker that writes another number in its place: some metric was none, which one it does not say
        severity = "info" if all(_REPLACED.search(e["text"]) for e in lines) else "warning"
        yield evidence.found(facts, title, (step, lines[-1]["step"]), severity, shown, *_frames(run), key=f"{step}-said", times=times)
