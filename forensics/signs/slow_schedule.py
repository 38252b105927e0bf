"""A schedule that runs too slow: the run is over while the rate still warms up, or has not come down as config says it should."""

from __future__ import annotations

import numpy as np

from forensics.run import plan, settings
from forensics.run.configured_rate import CYCLES, expected_rate
from forensics.run.how_it_ended import ending
from forensics.run.series import Floats, Ints, series
from forensics.run.settings import Setting
from forensics.signs.learning_rate import NOT_LOGGED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

SUBJECT = "learning_rate"  # the other half of it
EFFECTS = {"schedule_runs_slow": "lr"}  # a symptom of its own, for which there is no detector

FEW, MANY = 8, 20  # bound: rates that show a path; that show a straight line from one end of a run to the other
TWICE = 2.0  # unit: the smallest accumulation or number of processes, which is the least a wrong unit makes of a step
HALF, TENTH = 0.5, 0.1  # of the peak; bound: half of the way of a warmup or a decay, and what a decay leaves at most where it is through
STRAIGHT = 0.01  # of the last rate; bound: three digits of a console, and rates of steps counted from 0 or 1

_RANGE_TEST = lazy_re(r"(?i)(lr|rate)s?[_ -]?(find|range|test|sweep)|range[_ -]?test")  # it rises to the end on purpose (arXiv 1506.01186)


def schedule_runs_slow(s: Symptoms) -> Sign:
    """The run is over, and the rate still rises in a warmup that config ends long before (or that fills the whole run in one straight line),
    or stands near its peak where the configured schedule has come down: a scheduler that is stepped once an epoch, or whose length counts
    micro-batches. A run that was cut off in its warmup shows the same and is no fault."""
    lr = series(s.run, "lr")
    if lr is None or lr.usable.sum() < FEW:
        return cannot_tell(f"{NOT_LOGGED}." if lr is None else f"fewer than {FEW} learning rates were logged.")
    if plan.unit(s.run) == "epoch":
        return does_not_arise("the log counts epochs, in which settings of steps are not told.")
    order = np.argsort(lr.step[lr.usable], kind="stable")
    step, x = lr.step[lr.usable][order], lr.value[lr.usable][order]
    where = lr.place(s.run, len(lr) - 1)
    over = plan.reached(s.run) or ending(s.run).status == "finished"
    told = _in_warmup(s.run, step, x, over) or _straight_up(s.run, step, x, over) or _still_up(s.run, step, x)
    if told:
        return seen(f"{told}.", where=where, first=int(step[0]), last=int(step[-1]))
    if not over and _rises(x):
        return cannot_tell("whether the run was over is not known, and the rate still rises at the end of the log.")
    return absent(f"The learning rate peaks at {x.max():.3g} and stands at {x[-1]:.3g} at the end of the log.", where=where)


def _rises(x: Floats) -> bool:
    """Never lower than before, and higher at the end than ever."""
    return bool((np.diff(x) >= 0).all()) and x[-1] > x[0] and x[-1] > x[: -max(len(x) // 2, 1)].max()


def _in_warmup(run: Run, step: Ints, x: Floats, over: bool) -> str:
    """The rate still rises at twice the configured warmup and later, and cannot reach the configured peak within the plan."""
    told, peak, planned = settings.setting(run, "warmup_steps"), settings.number(run, "lr"), plan.planned_steps(run)
    length = _steps(told)
    if told is None or length is None or not peak or not _rises(x) or step[-1] < TWICE * length or not 0 < x[-1] < HALF * peak:
        return ""
    slower = step[-1] / (length * x[-1] / peak)
    ends = length * slower
    if not over and (planned is None or ends <= planned):
        return ""
    return (
        f"The learning rate still warms up at step {step[-1]}, at {x[-1]:.3g} of a peak of {peak:g}, and config ends the warmup after "
        f"{length:g} steps ({told.where}): the schedule runs some {slower:.3g} times too slow"
    )


def _straight_up(run: Run, step: Ints, x: Floats, over: bool) -> str:
    """From next to nothing to the end of the run in one straight line: whatever peak was meant was not reached, and no way down begun."""
    if not over or len(x) < MANY or not (np.diff(x) > 0).all() or x[0] > TENTH * x[-1]:
        return ""
    if any(_RANGE_TEST.search(f"{told.key} {told.value}") for told in settings.every(run)):
        return ""
    line = np.polynomial.Polynomial.fit(step.astype(np.float64), x, 1)
    if float(np.abs(line(step.astype(np.float64)) - x).max()) > STRAIGHT * x[-1]:
        return ""
    return f"The learning rate warms up from the first step to the last, in one straight line to {x[-1]:.3g}, and the run is over"


def _still_up(run: Run, step: Ints, x: Floats) -> str:
    """At the end of the run the rate is within half of its peak, where the configured schedule leaves a tenth."""
    kind = settings.setting(run, "schedule")
    if kind is None or not isinstance(kind.value, str) or not plan.reached(run) or len(run.attempts) > 1:
        return ""  # what a restart did to the schedule is told by itself
    word, peak = kind.value.lower(), float(x.max())
    if any(c in word for c in CYCLES):
        return ""
    meant = expected_rate(run, word, step, peak)
    if meant is None or meant[-1] > TENTH * peak or x[-1] < HALF * peak:
        return ""
    return (
        f"The learning rate stands at {x[-1] / peak:.0%} of its peak at step {step[-1]}, the end of the run, where the configured schedule "
        f"({word}, {kind.where}) leaves {max(float(meant[-1]) / peak, 0):.0%}: the schedule runs too slow"
    )


def _steps(told: Setting | None) -> float | None:
    """A warmup in steps: a share below one is none."""
    n = settings.as_number(told.value) if told else None
    return n if n is not None and n > 1 else None
