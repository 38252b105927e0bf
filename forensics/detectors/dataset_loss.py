"""Loss by dataset

What it sees
    One dataset or benchmark that becomes worse while the others go on improving: its loss rises or its accuracy falls, though the mean over all
    may get better.

How it decides
    All tags that carry an evaluation loss (or a perplexity that is of none of these losses, by its logarithm; or a cross entropy that has a name of
    its own and is logged where evaluations are and nowhere else), an accuracy of an evaluation, or the training loss of one part of the data, of
    which two or more were logged at least six times; and evaluations of a policy in several tasks, by a measure of any name
    (`forensics.run.tasks`). One evaluation in two files is one set, and a perplexity that is none of the loss beside it
    (of a codebook) is none. It fires for a set whose last three values lie 5 % and three noises beyond its best, at least
    three evaluations back, while the median of the other sets got better over the same steps. For information: to forget one source
    can be what a new mixture is meant to do, and overfitting has its own detector. A warning where what was known is gone: the set
    ends worse than the others were before they were learnt, or at what guessing costs, or was never again as good as before the first step and
    ends a quarter worse; or every later evaluation of a cross entropy, three or more, lies a nat above the first one, which lay a nat
    below the first training loss and what guessing costs; or a perplexity ends at ten times its best. The evaluation before the
    first step counts where only the printed log has it.

Cannot tell
    Where one evaluation alone was logged: a mean over datasets hides what each of them does.

Folklore
    A change of mixture shows in the parts before it shows in the mean; evaluate every source by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import trained_before
from forensics.run.evaluation_noise import noise_of
from forensics.run.evaluations import guessing
from forensics.run.first_evaluations import with_first
from forensics.run.inputs import surviving
from forensics.run.robust import error_of_median, median
from forensics.run.series import Series, parts, series
from forensics.run.tasks import tasks
from forensics.spikes.visible import MARGIN
from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL, TRAIN, is_likelihood
from parsers.name_rules import words
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["loss.eval"]
LEAST = 6  # bound: three evaluations make the last level, and the four second differences of six its noise
RISE = 0.05  # unit: what a change of data is worth telling from; not critical: for information only (docs/thresholds.md)
NOISES = 3.0  # statistical: a median of three is off by 0.7 noises, so this is 4 sigma, which chance does once in 30,000
TASKS = "tasks"  # forensics.run.tasks: by a measure of any name
NAMES = {"loss.eval": 1.0, "loss.part": 1.0, "acc.eval": -1.0, TASKS: 1.0}  # -1: the higher, the better
MANIFOLD = 10.0  # unit: a share above it says no more than that
LEFT = 0.1  # bound: a tenth of what had been learnt is next to nothing
HALF = 0.5  # unit: half of the first value is left of what was learnt
KNEW = 0.25  # unit: a quarter of what a set cost before the first step, as in the divergence detector
PRINTED = 0.01  # share by which a loss and the logarithm of its own perplexity differ where both were printed with three digits
SPANS = 0.1  # unit: a tenth of the run; what was logged for less was not followed
BACK = 3  # bound: three values make a median, and the lowest one is not among them
TENFOLD = 10.0  # unit: of a perplexity, 2.3 nats; a new mixture is not meant to cost so much
NAT = 1.0  # unit: each token e times less likely than before
_PERPLEXITY = lazy_re(r"\b(ppl|perplexity)\b")
_NATS = lazy_re(r"\b(nll|ce|xent|cross entropy|ppl|perplexity)\b")


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The set that became worse."""

    tag: str
    rise: float  # beyond its best, in its units
    step: int  # of its best
    others: int  # other sets that were compared
    interval: int  # steps between its evaluations


def smallest_effect(run: Run) -> str:
    needed = []
    for name in NAMES:
        sets = _sets(run, name)
        sets = [x for x in sets if len(x.rows) >= LEAST]
        needed += [_needed(x.cost) for x in sets] if len(sets) > 1 else []
    return f"one dataset {max(needed):.1%} beyond its best for {BACK} evaluations, while the others improve" if needed else ""


def _needed(x: np.ndarray) -> float:
    """The rise over the lowest value that is found, with the margin for the error of the last level, as a share of it."""
    noise, lowest = noise_of(x), abs(float(x.min())) or 1.0
    return max(RISE, NOISES * noise / lowest) + MARGIN * error_of_median(noise, BACK) / lowest


class Set(NamedTuple):
    """One dataset: its curve, the rows that count, and what it costs there (the lower, the better)."""

    series: Series
    rows: NDArray[np.int64]
    cost: NDArray[np.float64]


def _sets(run: Run, name: str) -> list[Set]:
    logged = [with_first(run, s) for s in parts(run, name)] if name != TASKS else [*tasks(run)]
    logged += _of_other_data(run, "loss.aux") if name == "loss.eval" else []
    found: list[Set] = []
    for x in (Set(s, rows, NAMES[name] * s.value[rows]) for s in logged if len(rows := surviving(s)) > BACK):
        short = np.ptp(x.series.step[x.rows]) < SPANS * max(np.ptp(s.step[s.usable]) for s in logged if s.usable.any())
        if short or (NAMES[name] > 0 and x.series.value[x.series.usable][0] == 0):  # batches of one test; a loss that is computed later on
            continue
        if not any(_retold(x, y) or _one_name(x, y) for y in found):
            found.append(x)
    if name != "loss.eval" or _counts_codes(run):
        return found
    logs = [
        Set(s, rows, np.log(s.value[rows]))
        for s in [*parts(run, "ppl.eval"), *_of_other_data(run, "ppl.train")]
        if len(rows := surviving(s)) > BACK and (s.value[rows] >= 1).all()
    ]
    return [*found, *(p for p in logs if not any(_same(p, x) for x in found))]


def _one_name(x: Set, y: Set) -> bool:
    """Are both tags the same words, as `val_loss` and `val/loss` of two loggers? They differ as one of them smooths, not as two datasets do."""
    return words(x.series.tag).replace("/", " ") == words(y.series.tag).replace("/", " ")


def _counts_codes(run: Run) -> bool:
    """Is the perplexity none of the loss, which is logged beside it: as that of a codebook, of which a higher one is better?"""
    loss, ppl = series(run, "loss.train"), series(run, "ppl.train")
    if loss is None or ppl is None:
        return False
    _, i, j = np.intersect1d(loss.step, ppl.step, return_indices=True)
    both = (ppl.value[j] > 0) & np.isfinite(loss.value[i])
    apart = np.abs(np.log(ppl.value[j][both]) - loss.value[i][both])
    return bool(both.sum() >= LEAST and median(apart) > HALF * median(np.abs(loss.value[i][both])))


def _of_other_data(run: Run, name: str) -> list[Series]:
    """Cross entropies without a word for their split that were logged at steps of the evaluation alone: a term of the loss stands beside the loss."""
    held, train = series(run, "loss.eval"), series(run, "loss.train")
    if held is None or train is None:
        return []
    named = [s for s in parts(run, name) if _NATS.search(words(s.tag)) and not EVAL.search(words(s.tag)) and not TRAIN.search(words(s.tag))]
    return [s for s in named if len(s) < len(train) and np.isin(s.step, held.step).all()]


def _never_as_at_first(run: Run, s: Set) -> bool:
    """Whether every later value of a cross entropy lies a nat above the first, which neither chance nor a slow turn makes; and the first a nat
    below what guessing costs and what new data cost at first, as only what was known does."""
    train = series(run, "loss.train")
    in_nats = is_likelihood(s.series.tag) or _NATS.search(words(s.series.tag)) is not None
    if train is None or not train.usable.any() or s.series.name == "acc.eval" or not in_nats:
        return False
    unknown = [v for v in (guessing(run, train), float(train.value[train.usable][0])) if v is not None]
    return bool((s.cost[1:] >= s.cost[0] + NAT).all() and s.cost[0] <= min(unknown) - NAT)


def _retold(a: Set, b: Set) -> bool:
    """Is it one evaluation in two files, value by value, on whatever steps each counts?"""
    n = min(len(a.cost), len(b.cost))
    return a.series.source != b.series.source and bool(np.allclose(a.cost[-n:], b.cost[-n:], rtol=PRINTED, atol=0))


def _same(a: Set, b: Set) -> bool:
    """Is the logarithm of a perplexity this loss?"""
    _, i, j = np.intersect1d(a.series.step[a.rows], b.series.step[b.rows], return_indices=True)
    return len(i) == 0 or median(np.abs(a.cost[i] - b.cost[j])) <= PRINTED * median(np.abs(b.cost[j]))


def detect(run: Run) -> Iterator[Finding]:
    judged, train = False, series(run, "loss.train")
    for name, sign in NAMES.items():
        sets = _sets(run, name)
        judged = judged or sum(len(x.rows) >= LEAST for x in sets) > 1
        for i, (s, rows, x) in enumerate(sets):
            best, end = int(np.argmin(x)), median(x[-BACK:])
            rise, at_once = end - float(x[best]), _never_as_at_first(run, sets[i])
            if not at_once and not _rises(x, best, rise):
                continue
            others = [c for j, o in enumerate(sets) if j != i and (c := _change(o, int(s.step[rows[best]]))) is not None]
            if not others or median(others) >= 0:
                continue
            first, last = int(s.step[rows[best]]), int(s.step[rows[-1]])
            way = "falls" if sign < 0 or s.rises else "rises"
            high, low = s.logged(s.value[rows[best]]), s.logged(median(s.value[rows[-BACK:]]))
            title = f"{s.tag} {way} from {high:.4g} at step {first} to {low:.4g} while {_told(others)}"
            table = [
                [o.tag, *(float(f"{v:.4g}") for v in (o.value[r[0]], o.value[r[np.argmin(cost)]], o.value[r[-1]]))]
                for o, r, cost in sets[:20]
            ]
            shown = (
                evidence.window(s, first, last, title=s.tag, where=s.place(run, rows[best])),
                evidence.table("by dataset", ["tag", "first", "best", "last"], table),
            )
            known = best == 0 and rise >= KNEW * abs(float(x[0])) and train is not None and first <= int(train.step[0])
            gone = (
                known
                or at_once
                or _is_gone(sets, i, end)
                or (_PERPLEXITY.search(words(s.tag)) is not None and low >= TENFOLD * high)
                or (name == "loss.eval" and train is not None and _is_guessed(run, train, x, end))
            )
            facts = Facts(s.tag, rise, first, len(others), s.interval)
            yield evidence.on_rows(s, (rows[best], rows[-1]), facts, title, "warning" if gone else "info", *shown, key=f"{first}-{i}")
            judged = True
    if not judged:
        raise CannotTell("the loss or accuracy of fewer than two datasets was logged")


def _rises(x: NDArray[np.float64], best: int, rise: float) -> bool:
    """Whether the last values lie beyond the best one by more than noise."""
    return len(x) >= LEAST and len(x) - 1 - best >= BACK and rise > 0 and rise >= max(RISE * abs(float(x[best])), NOISES * noise_of(x))


def _is_gone(sets: list[Set], i: int, end: float) -> bool:
    """Whether a set that was better than others before they were learnt ends where they were then."""
    unlearnt = [v for j, o in enumerate(sets) if j != i and (v := _before_learning(o.cost)) is not None]
    best = float(sets[i].cost.min())
    return bool(unlearnt) and best < min(unlearnt) and end >= max(unlearnt) - LEFT * (max(unlearnt) - best)


def _is_guessed(run: Run, train: Series, x: np.ndarray, end: float) -> bool:
    """Whether a set of which more than half was known ends at what guessing costs, in the unit of the training loss."""
    chance = guessing(run, train)
    return chance is not None and float(x.min()) < HALF * chance and trained_before.from_scratch(train, end, chance)


def _told(changes: list[float]) -> str:
    better = -median(changes)
    return f"the other {'one improves' if len(changes) == 1 else f'{len(changes)} improve'} {f'by {better:.1%}' if better < MANIFOLD else 'many times over'}"


def _before_learning(x: np.ndarray) -> float | None:
    """What another set costs before it is learnt: its first value, where it comes to less than half of it; of hits, to twice as many."""
    first, best = float(x[0]), float(x.min())
    learnt = best < HALF * first if first > 0 else best < first / HALF
    return first if learnt else None


def _change(other: Set, since: int) -> float | None:
    """Relative change of another set over the same steps, in points of hits where there were none; above zero: worse."""
    x = other.cost[other.series.step[other.rows] >= since]
    if len(x) < BACK or (not x[0] and other.series.name != "acc.eval"):
        return None
    return float((np.median(x[-BACK:]) - x[0]) / (abs(x[0]) or 1.0))
