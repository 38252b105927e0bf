"""Evaluation jump

What it sees
    An evaluation metric steps to another level between two evaluations, and stays there, while training goes on as before.

How it decides
    The largest change between neighbouring evaluations is held against the five changes on either side of it: more than five times their robust sigma, for a
    change for the worse five times what they lose (root mean square), and 15 % of the level (15 points of an accuracy). The three to five evaluations after
    it, of five all but one, keep half of the step, and the training loss moves by less than a third of it in the same direction. A step for the better, or hits that step while the
    evaluation loss goes on, are information: learning does that, and behind fewer than three evaluations always. A step for the better is more than that
    where something had been learnt before and the changes before it and the five after it were all small beside it: slow learning does not do that. So it
    is with hits where the training loss beside them had settled: over two evaluations on either side of the step it moves by less than a fifth and the rate
    by less than half, the changes before were less than half of the step, and no further ones follow it. A task that is understood late, long after it was
    learnt by heart (Power et al., arXiv:2201.02177), ends near perfect, where there is no room for another such step: this leaves that out.

Cannot tell
    With fewer than eight evaluations.

Folklore
    "A better number can mean worse learning": somebody changed the evaluation set, the tokenizer, or the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import loss_terms
from forensics.run.announced import announced
from forensics.run.evaluations import shares
from forensics.run.inputs import surviving
from forensics.run.robust import median, robust_sigma
from forensics.run.scores import scores
from forensics.run.series import Series, series
from forensics.spikes.excursions import SEEN
from forensics.spikes.visible import MARGIN, PLACES
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["loss.eval"]
TIMES = 5.0  # statistical: sigmas of the changes around; normal noise does it once in 1.7 million
SHARE = 0.15  # measured: as a log of a loss or in points of hits; 0.105 and 0.21 tell the same runs, no healthy one (docs/thresholds.md)
BESIDE = 5  # evaluations on either side: ten changes give a sigma within a quarter, and a slow turn is no step among them
LASTS = 3  # bound: three values make a median that one odd value does not move
LEAST = BESIDE + LASTS  # bound: three evaluations after the step, five other changes; measured: at 6 four of 107 healthy runs fire
TRAINED = 1 / 3  # of the step: what training explains of it; measured: at 0.23 one of three faulty runs is lost, no healthy one fires
SLOW = 0.2  # of the step; measured: no healthy run of the seen sets takes such a step after five smaller ones
HALF = 0.5  # bound: a level that lies nearer to the new value than to the old one has stayed


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The step of the evaluation."""

    step: int
    before: float
    after: float
    size: float  # difference of the logs of a loss, of the shares of a metric of hits
    metric: str  # canonical name
    alone: bool  # hits step, the evaluation loss beside them does not
    previous: int | None = None  # step of the evaluation before


def curves(run: Run) -> list[tuple[Series, bool]]:
    """The evaluations to look at, and whether each rises as the model gets better: the loss, else its terms, the accuracy, then every score."""
    found = [(s, name == "acc.eval") for name in ("loss.eval", "acc.eval") if (s := series(run, name)) is not None]
    found = found if series(run, "loss.eval") is not None else [*((s, False) for s, _ in loss_terms.held_out(run)), *found]
    return [(s, hits) for s, hits in (*found, *((c.logged, c.rises) for c in scores(run))) if s.usable.sum() >= LEAST]


def detect(run: Run) -> Iterator[Finding]:
    judged = curves(run)
    if not judged:
        raise CannotTell(f"fewer than {LEAST} evaluations were logged")
    for s, hits in judged:
        if (found := _stepped(run, s, hits=hits)) is not None:
            yield found
            return


def _stepped(run: Run, s: Series, *, hits: bool) -> Finding | None:
    """The lasting step of one curve; None where it takes none, or training explains it."""
    rows = surviving(s)
    x = s.value[rows]
    y, _ = _scaled(x, hits=hits)
    i = _jump(y, hits=hits)
    if i is None or s.step[rows[i + 1]] <= s.step[rows[i]]:  # a loop that counts anew trains another way
        return None
    size = float(y[i + 1] - y[i])
    with_it = 1 if hits and size < 0 else np.sign(size)  # fewer hits go with a higher loss
    if _train(run, s, rows, i) * with_it > abs(size) * TRAINED:
        return None
    step = int(s.step[rows[i + 1]])
    title = f"{s.tag} jumps from {x[i]:.4g} to {x[i + 1]:.4g} at step {step} and stays, while training continues as before"
    first, last = int(s.step[rows[max(i - 6, 0)]]), int(s.step[rows[min(i + 7, len(rows) - 1)]])
    marks = [{"step": step, "label": "another level", "kind": "event"}]
    shown = evidence.window(s, first, last, *marks, title=s.tag, where=s.place(run, rows[i + 1]), margin=0)
    previous = int(s.step[rows[i]])
    alone = s.name != "loss.eval" and _loss_goes_on(run, previous, step)
    title += "; the evaluation loss does not" if alone else ""
    facts = Facts(step, before=float(x[i]), after=float(x[i + 1]), size=size, metric=s.name, previous=previous, alone=alone)
    slow = hits and _abrupt(y, i) and _settled(run, s.step[rows], i)
    better = size if hits else -size
    unseen = hits or series(run, "loss.train") is None  # a loss that falls as the training's was not let through above
    learns = (
        (not slow and _learns(y, i, better))
        if unseen
        else better > 0 and float(np.abs(np.delete(np.diff(y), i)[: i + BESIDE]).max()) > HALF * better
    )
    other_data = any(a.about in ("data", "loss") and previous <= a.step <= step for a in announced(run))  # from there on, as config has it
    # two evaluations are no level from which one could step
    learns |= better > 0 and (other_data or i + 1 < LASTS or _rate_falls(run, int(s.step[rows[max(i - 1, 0)]]), step))
    severity = "info" if alone or learns else "warning"
    steps, times = (step, int(s.step[rows[-1]])), (s.clock(rows[i + 1]), None)
    return evidence.found(facts, title, steps, severity, shown, times=times)


def _jump(y: np.ndarray, *, hits: bool) -> int | None:
    """The evaluation before a lasting step out of the changes around it; None where there is none."""
    change = np.diff(y)
    i = int(np.argmax(np.abs(change)))
    before, after = y[max(i + 1 - LASTS, 0) : i + 1], y[i + 1 : i + 1 + BESIDE]
    kept = np.sign(change[i]) * (after - np.median(before)) >= HALF * abs(change[i])
    lasting = len(after) >= LASTS and kept.sum() >= len(after) - (len(after) == BESIDE)  # of five one may stray
    out = lasting and i > 0 and abs(change[i]) >= max(TIMES * _usual(-change if hits else change, i, worse=(change[i] < 0) == hits), SHARE)
    sides = (float(np.sign(change[i]) * np.median(x)) for x in (before, after)) if out else ()
    return i if out and not _was_there(np.sign(change[i]) * y[: i + 1], *sides) else None


def _was_there(y: np.ndarray, level: float, other: float) -> bool:
    """Whether values that had come nearer to the level were out at the other one before, or nearly: their scatter goes so far, or a few bad ones are over."""
    there = np.flatnonzero(y <= level + HALF * (other - level))
    return bool(len(there)) and bool((y[there[0] :] >= other - SLOW * (other - level)).any())


def _learns(y: np.ndarray, i: int, better: float) -> bool:
    """Whether a step is what learning looks like: for the better, while it goes fast, or as the first thing that was learnt."""
    before = np.abs(np.diff(y)[max(i - BESIDE, 0) : i])
    fast = i < BESIDE or float(before.max()) > SLOW * better
    return better > 0 and (fast or abs(float(y[i] - y[0])) < SLOW * better)


def _abrupt(y: np.ndarray, i: int) -> bool:
    """Whether a step of hits for the better stands alone: less than half of it before, next to nothing after, and not up to perfection."""
    step = float(y[i + 1] - y[i])
    before, after = np.abs(np.diff(y[: i + 1])), y[i + 1 :]
    return (
        len(before) >= LASTS
        and float(before.max()) < HALF * step
        and float(after.max() - y[i + 1]) < SLOW * step
        and after.max() < 1 - SHARE
    )


def _settled(run: Run, step: np.ndarray, i: int) -> bool:
    """Whether the training loss is as low before the step as after it, over two evaluations on either side, and the rate does not step there."""
    s = series(run, "loss.train")
    first, at, then, last = (int(step[min(max(k, 0), len(step) - 1)]) for k in (i - 2, i, i + 1, i + 3))
    if (
        s is None
        or s.usable.sum() < LEAST
        or any((s.usable & (s.step > a) & (s.step <= b)).sum() < BESIDE for a, b in ((first, at), (then, last)))
    ):
        return False
    moved = _log(s.value[s.usable & (s.step > then) & (s.step <= last)]) - _log(s.value[s.usable & (s.step > first) & (s.step <= at)])
    return abs(moved) < SLOW and not _rate_falls(run, first, last)  # False of NaN


def _rate_falls(run: Run, first: int, last: int) -> bool:
    """Whether the rate comes to less than half of what it was between two steps."""
    rate = series(run, "lr")
    if rate is None:
        return False
    beside = rate.value[rate.usable & (rate.step > first) & (rate.step <= last) & (rate.value > 0)]
    return len(beside) > 0 and bool(beside[-1] < HALF * beside.max())


def _log(x: np.ndarray) -> float:
    """Log of the median; NaN where it has none."""
    middle = median(x)
    return float(np.log(middle)) if middle > 0 else float("nan")


def _usual(change: np.ndarray, i: int, *, worse: bool) -> float:
    """Scatter of the changes beside one, about their median: a steady trend is none. Beside a change for the worse, what
    the others lose (above zero): learning moves an evaluation fast for the better, which is no scatter."""
    beside = np.delete(change, i)[max(i - BESIDE, 0) : i + BESIDE]
    return float(np.sqrt(np.mean(np.maximum(beside, 0.0) ** 2))) if worse else robust_sigma(beside)


def smallest_effect(run: Run) -> str:
    told = []
    for s, hits in curves(run):
        y, logs = _scaled(s.value[surviving(s)], hits=hits)
        change = np.diff(y)
        change = -change if hits else change
        places = np.unique(np.linspace(1, len(change) - 1, PLACES).astype(int)).tolist() if len(change) > 1 else []
        either = [max(_usual(change, i, worse=True), _usual(change, i, worse=False)) for i in places]
        usual = np.percentile(either, 100 * SEEN)
        falls = float(np.percentile(np.abs(change), 75))  # a loss that falls takes from a step up what it falls from one to the next
        size = float(max(TIMES * usual, SHARE) + MARGIN * usual) + falls
        told.append(f"{s.tag}: a lasting step of {100 * (np.expm1(size) if logs else size):.1f} {'%' if logs else 'points'}")
    return "; ".join(told)


def _scaled(x: np.ndarray, *, hits: bool) -> tuple[np.ndarray, bool]:
    """(values to judge, whether they are logs): a share of hits is no ratio scale."""
    if hits:
        return shares(x), False
    return (np.log(x), True) if (x > 0).all() else (x, False)


def _loss_goes_on(run: Run, before: int, after: int) -> bool:
    """Whether the evaluation loss, logged at both steps, changes there no more than elsewhere; False where it was not logged."""
    s = series(run, "loss.eval")
    if s is None:
        return False
    rows = surviving(s)
    change = np.diff(s.value[rows])
    here = (s.step[rows][:-1] == before) & (s.step[rows][1:] == after)
    if not here.any() or len(change) < LEAST - 1:
        return False
    return bool(abs(change[here][0]) <= 2 * robust_sigma(change, 0.0))


def _train(run: Run, held: Series, rows: np.ndarray, i: int) -> float:
    """Change of the training loss (log) across the same two evaluations; 0 where it was not logged."""
    s = series(run, "loss.train")
    if s is None:
        return 0.0
    a, b = int(held.step[rows[i]]), int(held.step[rows[i + 1]])
    width = max(b - a, 10 * s.interval)
    wide = _change(s, a - width, a, b + width)
    near = _change(s, a - max(b - a, s.interval), a, b)
    return near if b - a <= s.interval and abs(near) > abs(wide) else wide  # means of whole epochs do not scatter as steps do


def _change(s: Series, first: int, at: int, last: int) -> float:
    """Log of the median of the values after `at` up to `last` over that of the values from `first` on up to it."""
    good = np.isfinite(s.value)
    old = s.value[good & (s.step > first) & (s.step <= at)]
    new = s.value[good & (s.step > at) & (s.step <= last)]
    if not len(old) or not len(new) or np.median(old) <= 0 or np.median(new) <= 0:
        return 0.0
    return float(np.log(np.median(new) / np.median(old)))
