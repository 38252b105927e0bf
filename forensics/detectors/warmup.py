"""Warmup

What it sees
    A rate that is at its peak from the first steps on, in a model that needs to be warmed up.

How it decides
    Only for models with attention, whose config or log shows it, trained with Adam and its kin: fewer than ten steps of warmup (and less than 1 % of the plan) at a
    peak rate of at least 1.5 times the usual for the width (``forensics.run.recipe``).

Cannot tell
    Where neither the rate nor its warmup is known, or it is not known whether the model has attention.

Folklore
    "LR too high / no warmup: the most common cause."
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.plan import planned_steps
from forensics.run.recipe import recipe
from forensics.run.series import series
from forensics.run.usual_rate import tuned
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["lr"]
EFFECT = "trouble_in_first_tenth"
STEPS = 10  # measured: at 14 one more faulty run is found, at 7 none is lost, no healthy one fires (docs/thresholds.md)
SHARE = 0.01  # of the plan; not critical: 0.007 and 0.014 tell the same runs (docs/thresholds.md)
RATIO = 1.5  # measured: at 1.05 five of 107 healthy runs fire, at 2.1 one of five faulty ones is lost (docs/thresholds.md)
SMALLEST_EFFECT = f"a peak rate {RATIO} times the usual without {STEPS} steps of warmup"


@dataclass(frozen=True)
class Facts(BaseFacts):
    warmup: float  # steps
    rate: float  # peak
    ratio: float  # of the peak over the usual rate


def detect(run: Run) -> Iterator[Finding]:
    r = recipe(run)
    if r.rate is None or r.warmup is None:
        raise CannotTell("neither log nor config says rate and warmup")
    if tuned(run):
        raise CannotTell("the model was trained before (config), and no usual rate is known for tuning it")
    if not r.attention:
        raise CannotTell("config does not say that the model has attention; others need no warmup")
    first = run.attempts[0]["steps"][0] if run.attempts else 0
    if r.sgd or r.warmup >= max(STEPS, SHARE * (planned_steps(run) or 0)) or first > 10 or (r.ratio or 0) < RATIO:
        return
    title = (
        f"The rate is at its peak of {r.rate:.2g} after {r.warmup:.0f} steps of warmup, {r.ratio:.1f} times what is usual for this width"
    )
    s = series(run, "lr")
    shown = (evidence.window(s, first, first + 50 * s.interval, title=s.tag, where=s.place(run, 0), margin=0),) if s is not None else ()
    yield evidence.found(Facts(r.warmup, r.rate, r.ratio or 0.0), title, (first, first), "warning", *shown)
