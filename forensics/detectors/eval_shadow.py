"""Evaluation shadow

What it sees
    An evaluation that is too good: as good as training deep in memorization, or far better than another evaluation of the same run.

How it decides
    A language model, after at least 5 passes and with a training loss below a quarter of its level at the first evaluation: text
    cannot be foretold so well, and an evaluation loss within a third of the training loss is a shadow. So is an evaluation that got
    better, and that a last one on other data exceeds five times (roots of squared errors by their squares). Any other task may be one
    that can be learnt exactly: an evaluation that lies below training after 20 passes, with a training loss below a tenth, for the last
    third of the evaluations, where a config was read that sets no dropout, is information. So is a training loss that had fallen below
    a tenth by the end of the first pass, in which no sample comes twice: it is no memory.

Cannot tell
    Where a task can be learnt exactly: training and an honest evaluation then meet as well. In a single pass, where evaluation and
    training are alike by nature; or where the log does not say how many passes there were.

Folklore
    Too good to be true is a finding: "assume a bug".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import settings
from forensics.run.evaluations import first_pass
from forensics.run.inputs import needed
from forensics.run.last_errors import LAST_ONES, is_root, last_errors
from forensics.run.robust import median
from forensics.run.series import Series, parts, series
from forensics.run.usable_values import first_level
from parsers.tables import Run

NEEDS = ["loss.eval", "loss.train"]
INPUTS = ["loss.eval"]
NEAR = 4 / 3  # measured: at 0.7 of it one of three faulty runs is lost, at 1.4 no healthy one fires (docs/thresholds.md)
LEAST, TIMES = 6, 5.0  # not critical: six evaluations show the way down; another data set is not five times as hard (docs/thresholds.md)
ROOT = 2.0  # unit: the power that makes a squared error of its root, of which either is as much of a loss
TEXT, ANY = (5.0, 0.25), (20.0, 0.1)  # passes and share of the early loss: for language models, for any; not critical (docs/thresholds.md)
BELOW = 0.95  # times the training loss; measured: of four leaking runs that memorize 0.14 to 0.87 (of a fifth 1.0), of five healthy ones 1.02 to 1.26
SMALLEST_EFFECT = "an evaluation loss within a third of a memorized training loss"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Evaluation beside training, at the end."""

    passes: float | None  # over the data; None where another evaluation is the sign
    fell_to: float | None  # training loss, as a share of its early level
    eval: float
    train: float | None = None
    other: float | None = None  # loss of the last evaluation on other data


def detect(run: Run) -> Iterator[Finding]:
    held, train, epoch = needed(run, "loss.eval"), needed(run, "loss.train"), series(run, "epoch")
    rows = np.flatnonzero(held.alive & np.isfinite(held.value) & (held.value > 0))
    rival = _other_evaluation(run, held, rows)
    if rival is not None:
        yield rival
        return
    if len(rows) < LEAST:
        raise CannotTell(f"only {len(rows)} evaluations were logged")
    if epoch is None:
        raise CannotTell("the log does not say how many passes over the data there were")
    passes = float(np.nanmax(epoch.value))
    text = of_language(run)
    least, memorized = TEXT if text else ANY
    if passes < least:
        return
    x, step = held.value[rows], held.step[rows]
    beside = np.array([_level(train.value, train.step, int(s)) for s in step])
    last = len(x) - 1
    if not (beside[last] > 0 and beside[last] < memorized * beside[0] and x[last] <= NEAR * beside[last]):
        return
    if not text and (_regularized(run) or not (x[-len(x) // 3 :] <= BELOW * beside[-len(x) // 3 :]).all()):
        return  # a task that can be learnt exactly looks like this
    title = f"After {passes:.0f} passes training loss is down to {beside[last]:.3g}, and evaluation loss follows it to {x[last]:.3g}"
    at_once = _within_first_pass(run, train)
    title = title if at_once is None else f"{title}; {at_once}"
    severity = "warning" if text and at_once is None else "info"
    facts = Facts(passes, float(beside[last] / beside[0]), eval=float(x[last]), train=float(beside[last]))
    shown = [evidence.window(s, int(step[0]), int(step[-1]), title=s.tag, where=s.place(run, 0), margin=0) for s in (held, train)]
    times = (held.clock(rows[0]), held.clock(rows[-1]))
    yield evidence.found(facts, title, (int(step[0]), int(step[last])), severity, *shown, key=int(step[last]), times=times)


def of_language(run: Run) -> bool:
    """Whether tokens are foretold: config tells of heads or a vocabulary, and neither classes nor hits were logged, which a classifier of text has."""
    told = settings.setting(run, "heads") or settings.setting(run, "vocab_size")
    return told is not None and settings.setting(run, "classes") is None and series(run, "acc.eval") is None


def _within_first_pass(run: Run, train: Series) -> str | None:
    """What the training loss did before any sample came twice, where it fell so far by then that nothing had to be memorized."""
    end, step, x = first_pass(run), train.step[train.usable], train.value[train.usable]
    early = x[step <= end] if end is not None else x[:0]
    if len(early) < LEAST or not 0 < (level := first_level(early[::-1])) < ANY[1] * first_level(early):
        return None
    return f"it was {level:.3g} within the first pass, before any sample came twice: the task can be learnt exactly, or its targets hardly differ"


def _regularized(run: Run) -> bool:
    """Whether a dropout may lift training above evaluation: config sets one, or no config was read that could rule it out."""
    told = settings.setting(run, "dropout")
    return bool(settings.as_number(told.value)) if told is not None else not run.tables["config"].num_rows


def _other_evaluation(run: Run, held: Series, rows: np.ndarray) -> Finding | None:
    """A last evaluation on other data that ends at least five times as high as the one used along the way."""
    mine = median(held.value[rows[-3:]]) if len(rows) else 0.0
    if not len(rows) or mine >= float(held.value[rows[0]]):
        return None  # nothing was learnt that another evaluation could show to be memory
    for s in (*parts(run, "loss.eval"), *last_errors(run, held)):
        power, own = (ROOT if is_root(tag) else 1.0 for tag in (s.tag, held.tag))
        value, step = float(s.value[-1]), int(s.step[-1])
        if mine <= 0 or not np.isfinite(value) or value**power <= TIMES * mine**own or len(s) > LAST_ONES:
            continue
        first = int(held.step[rows[0]])
        of = f"the {mine:.3g} of {held.tag}" if power == own else f"the root of {mine:.3g} of {held.tag}"
        title = f"{s.tag} is {value:.3g} at the end, {value / mine ** (own / power):.3g} times {of}"
        facts = Facts(None, None, eval=mine, other=value)
        shown = evidence.window(held, first, step, title=held.tag, where=held.place(run, rows[-1]), margin=0)
        return evidence.found(facts, title, (first, step), "warning", shown, key=step)
    return None


def _level(value: np.ndarray, step: np.ndarray, at: int) -> float:
    """Median of the training loss over the (at most 15) values up to a step."""
    before = value[(step <= at) & np.isfinite(value)]
    return median(before[-max(min(15, len(value) // 10), 1) :]) if len(before) else float("nan")
