"""Zero loss

What it sees
    A training loss of exactly zero, which no ordinary loss reaches.

How it decides
    Three or more exact zeros in a row, or every value zero; or every value of the reconstruction term beside a KL term. A loss that came down smoothly to zero (a task that is
    solved) is left alone: the value before the zeros must be above a thousandth of the first. Where the evaluation goes on getting better meanwhile, it is for
    information: something was trained.

Cannot tell
    Without a training loss; where rewards were logged: a policy's loss is zero where its answers are all worth the same.

Folklore
    "All labels in your dataset are -100. Training losses will be all 0." Exact zeros in a Hugging Face log are also what its
    NaN filter writes once every micro-batch is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.evaluations import improves_after
from forensics.run.inputs import is_policy, needed
from forensics.run.loss_terms import RECONSTRUCTION, kl_term
from forensics.run.metrics_in_words import worded
from forensics.run.robust import ROUNDED, last_digit
from forensics.run.series import Series
from parsers.tables import Run

NEEDS = ["loss.train"]
IN_A_ROW = 3  # bound: one zero may be a rounded value, three in a row after a loss of another size are none; not critical
LOWEST = 0.05  # bound: of the other values; where so many are of the last printed digits, zeros are small values, too
SMALLEST_EFFECT = f"{IN_A_ROW} zeros in a row"


@dataclass(frozen=True)
class Facts(BaseFacts):
    step: int
    count: int  # values
    from_start: bool
    to_end: bool


def _zero_term(run: Run) -> Series | None:
    """The reconstruction term of an autoencoder that is exactly zero throughout, in training and evaluation: what its loss falls by is its KL term alone."""
    terms = [p for p in worded(run, RECONSTRUCTION) if p.usable.sum() >= IN_A_ROW] if kl_term(run) is not None else []
    return terms[0] if terms and not any(p.value[p.usable].any() for p in terms) else None


def detect(run: Run) -> Iterator[Finding]:
    s = _zero_term(run) or needed(run, "loss.train")
    if is_policy(run):
        raise CannotTell("a reward was logged: the loss of a policy is zero where no answer is better than the others")
    zero = s.value == 0
    runs = np.flatnonzero(np.convolve(zero, np.ones(IN_A_ROW, int), "valid") == IN_A_ROW)
    if not len(runs):
        return
    first = int(runs[0])
    before = s.value[:first][np.isfinite(s.value[:first])]
    if len(before) and abs(before[-1]) <= 1e-3 * abs(before[0]):
        return
    others = np.abs(s.value[np.isfinite(s.value) & ~zero])
    if len(others) and float(np.quantile(others, LOWEST)) < ROUNDED * last_digit(s.value):
        raise CannotTell(f"{s.tag} falls to the last digit that it was printed with")
    step, count = int(s.step[first]), int(zero.sum())
    what = "Loss" if s.name == "loss.train" else s.tag
    title = f"{what} is exactly zero from step {step} on ({count} of {len(s)} values)"
    facts = Facts(step, count, first == 0, bool(zero[first:].all()))
    shown = evidence.window(s, step, step, title=s.tag, where=s.place(run, first))
    steps = (step, int(s.step[np.flatnonzero(zero)[-1]]))
    against = improves_after(run, step)
    title, severity = (f"{title}, while {against}: the zeros are the log's", "info") if against else (title, "critical")
    yield evidence.found(facts, title, steps, severity, shown, times=(s.clock(first), None))
