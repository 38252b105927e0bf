"""Peak rate

What it sees
    A learning rate far above what such a model and optimizer usually take, in a run that learned little.

How it decides
    The peak, as logged or configured, against ``forensics.run.recipe``: more than ten times the usual is remarked, and whether
    the loss fell by less than half from its first values. A setting does no harm by itself, so that this is never more than
    information; what the rate did to the loss other checks see.

Cannot tell
    Where neither log nor config says the rate, or config does not say which optimizer takes it: SGD takes a hundred times
    what Adam does.

Folklore
    "Too high bounces": it need not diverge to be too high, it may just not get anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.inputs import needed
from forensics.run.recipe import LANGUAGE, recipe
from forensics.run.robust import median
from forensics.run.usual_rate import optimizer, usual
from parsers.tables import Run

NEEDS = ["loss.train"]
INPUTS = ["lr"]
RATIO = 10.0  # measured: more than it; at just ten times five of 107 healthy runs fire (SGD at a rate of 1), at 14 times none (docs/thresholds.md)
FELL = 0.5  # of the first loss; unit: half of it; told with the finding, decides none
LEAST, LEVEL = 10, 5  # bound: two medians of five, which share no value
SMALLEST_EFFECT = f"more than {RATIO:.0f} times the usual rate"


@dataclass(frozen=True)
class Facts(BaseFacts):
    ratio: float  # of the peak over the usual rate
    rate: float  # peak, as logged or configured
    little: bool  # the loss fell by less than half


def detect(run: Run) -> Iterator[Finding]:
    r = recipe(run)
    if not r.rate:
        raise CannotTell("neither log nor config says the learning rate")
    if optimizer(run) is None and run.framework not in LANGUAGE:
        raise CannotTell("config does not name the optimizer, on which it hangs what rate is usual")
    if r.ratio is None:
        raise CannotTell(usual(run).why)
    s = needed(run, "loss.train")
    x = s.value[s.alive & np.isfinite(s.value)]
    if r.ratio <= RATIO or len(x) < LEAST:
        return
    first, last = median(x[:LEVEL]), median(x[-max(len(x) // 10, LEVEL) :])
    little = first > 0 and last > FELL * first
    title = f"The peak rate of {r.rate:.2g} is {r.ratio:.0f} times what is usual for such a model and optimizer"
    title += f", and the loss only fell from {first:.3g} to {last:.3g}" if little else ""
    begin, end = int(s.step[0]), int(s.step[-1])
    shown = evidence.window(s, begin, end, title=s.tag, where=s.place(run, 0), margin=0)
    facts = Facts(r.ratio, r.rate or 0.0, little)
    yield evidence.found(facts, title, (begin, end), "info", shown)
