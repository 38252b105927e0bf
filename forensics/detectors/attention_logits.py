"""Attention logits

What it sees
    The largest attention logit runs away, or is too large from the start, or the attention entropy collapses.

How it decides
    Of several layers the worst is looked at. Softmax is saturated once logits reach the hundreds. It fires when the median of the last tenth of the logged maximum
    exceeds 100 and is at least three times the first values; or when the attention entropy falls below a tenth of its first value. Where
    both were logged, half of either is enough together: logits above 50 that began at a third of that, and an entropy below a quarter of its first value.
    Attention that keeps a quarter of its first entropy is not saturated, whatever its largest logit.
    Or when an untrained model (its first loss is that of a guess) begins above 100 and stays there; a trained one may be sound with such logits.

Cannot tell
    Where neither was logged, which is usual.

Folklore
    Query/key normalization was introduced for just this (ViT-22B): one-hot attention, then loss spikes or a stall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run import trained_before
from forensics.run.evaluations import guessing
from forensics.run.inputs import dead_from
from forensics.run.robust import median
from forensics.run.series import Floats, Series, parts, series
from parsers.tables import Run

NEEDS = ["attn.max_logit|attn.entropy"]
HUGE = 100.0  # paper: Dehghani et al. (arXiv:2302.05442, ViT-22B) saw softmax saturate and training fail where logits pass the hundreds
GROWTH, COLLAPSE = 3.0, 0.1  # not critical: neither moves a run between 0.7 and 1.4; a model that begins there did not run away
TOGETHER = 50.0  # paper: Gemma 2 (arXiv:2408.00118) caps its attention logits there; measured: six sound runs come to 16 at most
QUARTER = 0.25  # bound: of the first entropy; attention that still weighs several places keeps more. measured: six runs with a fault keep 6 % at most
LEAST = 8  # bound: five values make the first level, three the last, and no value is in both


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Attention at its ends, as medians of the first and the last logged values."""

    first: float  # logit, or nats of entropy
    last: float
    step: int  # where it passed the limit


@dataclass(frozen=True)
class Saturated(BaseFacts):
    """A softmax that is one-hot before anything is learnt: the largest logit as medians of the first and the last logged values."""

    first: float
    last: float


def worst(run: Run, name: str) -> Series | None:
    """Of the layers for which it was logged, the one whose last logits are largest, or whose last entropy is smallest."""
    grows = name == "attn.max_logit"
    found = [p for p in parts(run, name) if len(_values(run, p, grows)) >= LEAST]
    return max(found, key=lambda p: (1 if grows else -1) * _levels(_values(run, p, grows))[1], default=None)


def smallest_effect(run: Run) -> str:
    told = []
    for name, words in (("attn.max_logit", "logits that grow to"), ("attn.entropy", "an entropy that falls to")):
        s = worst(run, name)
        if s is not None:
            first, _ = _levels(_values(run, s, name == "attn.max_logit"))
            told.append(f"{words} {max(HUGE, GROWTH * first) if name == 'attn.max_logit' else COLLAPSE * first:.3g}")
    return ", or ".join(told)


def detect(run: Run) -> Iterator[Finding]:
    found = _together(run)
    if found is not None:
        yield found
        return
    for name, grows in (("attn.max_logit", True), ("attn.entropy", False)):
        s = worst(run, name)
        if s is None:
            continue
        x = _values(run, s, grows)
        first, last = _levels(x)
        if grows and min(first, last) >= HUGE and last < GROWTH * first and _untrained(run):
            title = f"Largest attention logit is {first:.3g} from the start and {last:.3g} at the end"
            shown = evidence.window(s, int(s.step[0]), int(s.step[-1]), title=s.tag, where=s.place(run, 0), margin=0)
            yield evidence.on_rows(s, (0, len(s) - 1), Saturated(first, last), title, "warning", shown)
            return
        if (last < HUGE or last < GROWTH * first) if grows else (first <= 0 or last > COLLAPSE * first):
            continue
        if grows and _still_spread(run):
            continue
        onset = int(np.flatnonzero(x >= HUGE)[0] if grows else np.flatnonzero(x <= COLLAPSE * first)[0])
        step = int(s.step[onset])
        title = (
            f"Largest attention logit grows from {first:.3g} to {last:.3g}"
            if grows
            else f"Attention entropy falls from {first:.3g} to {last:.3g}"
        )
        shown = evidence.window(s, int(s.step[0]), int(s.step[-1]), title=s.tag, where=s.place(run, onset), margin=0)
        facts = Facts(first, last, step)
        title = f"{title} by step {s.step[len(x) - 1]}"
        yield evidence.on_rows(s, (onset, len(x) - 1), facts, title, "warning", shown)
        return


def _together(run: Run) -> Finding | None:
    """Logits that grow and an entropy that falls, each by less than would tell alone."""
    logits, entropy = (worst(run, name) for name in ("attn.max_logit", "attn.entropy"))
    if logits is None or entropy is None:
        return None
    x, h = _values(run, logits, True), _values(run, entropy, False)
    first, last, began, ended = float(x[0]), _levels(x)[1], float(h[0]), _levels(h)[1]
    if not 0 < first <= last / GROWTH or not TOGETHER <= last < HUGE or not 0 <= ended <= QUARTER * began:
        return None
    onset = int(np.flatnonzero(x >= TOGETHER)[0])
    shown = evidence.window(logits, int(logits.step[0]), int(logits.step[-1]), title=logits.tag, where=logits.place(run, onset), margin=0)
    title = f"Largest attention logit grows from {first:.3g} to {last:.3g}, and the attention entropy falls from {began:.3g} to {ended:.3g}"
    return evidence.on_rows(logits, (onset, len(logits) - 1), Facts(first, last, int(logits.step[onset])), title, "warning", shown)


def _still_spread(run: Run) -> bool:
    """Whether the attention entropy was logged and keeps a quarter of its first value: some heads or edges are sure, most weigh several places."""
    s = worst(run, "attn.entropy")
    first, last = _levels(_values(run, s, False)) if s is not None else (0.0, 0.0)
    return last > QUARTER * first


def _values(run: Run, s: Series, grows: bool) -> Floats:
    """Those until the loss is no number any more. What is not finite until then counts as having run away, or as collapsed."""
    dead = np.flatnonzero(s.step > dead_from(run))
    x = s.value[: dead[0] if len(dead) else len(s)]
    return np.where(np.isfinite(x), x, np.inf if grows else 0.0)


def _levels(x: Floats) -> tuple[float, float]:
    """Of the first values, their median or the very first one where they climb from it, and the median of the last tenth."""
    first = median(x[:5])
    return float(x[0]) if 0 <= x[0] < first / GROWTH else first, median(x[-max(len(x) // 10, 3) :])


def _untrained(run: Run) -> bool:
    """Whether the first loss is what an untrained model has."""
    loss = series(run, "loss.train")
    x = loss.value[loss.usable] if loss is not None else np.zeros(0)
    return loss is not None and len(x) > 0 and trained_before.from_scratch(loss, float(x[0]), guessing(run, loss))
