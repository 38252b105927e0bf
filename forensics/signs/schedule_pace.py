"""A schedule that runs too slow or too fast: the rate still warms up when the run is over, or has not come down; or its warmup ends long before
config ends it."""

from __future__ import annotations

import numpy as np

from forensics.detectors import lr_schedule
from forensics.run import plan, settings
from forensics.run.configured_rate import SHAPED, expected_rate
from forensics.run.how_it_ended import ending
from forensics.run.series import Floats, Ints, series
from forensics.run.settings import Setting
from forensics.run.silent_restarts import with_silent_restarts
from forensics.run.usable_values import first_level, last_level, usable
from forensics.signs.learning_rate import NOT_LOGGED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

SUBJECT = "learning_rate"  # the other half of it
EFFECTS = {
    "schedule_runs_slow": "lr",
    "warmup_ends_early": "lr",
    "cosine_counts_epochs": "lr",
}  # symptoms of their own, for which there is no detector

FEW, MANY = 8, 20  # bound: rates that show a path; that show a straight line from one end of a run to the other
TWICE = 2.0  # unit: the smallest accumulation or number of processes, which is the least a wrong unit makes of a step
HALF, TENTH = 0.5, 0.1  # of the peak; bound: half of the way of a warmup or a decay, and what a decay leaves at most where it is through
ALIKE = 0.25  # share by which a factor misses the accumulation: one value in between two that were logged
# bound: half-periods, so that it came down, went up and came down again; of the peak: three digits, and a floor of a hundredth
SWINGS, NEAR = 3, 0.02
STRAIGHT = 0.01  # of the last rate; bound: three digits of a console, and rates of steps counted from 0 or 1

_RANGE_TEST = lazy_re(r"(?i)(lr|rate)s?[_ -]?(find|range|test|sweep)|range[_ -]?test")  # it rises to the end on purpose (arXiv 1506.01186)


def schedule_runs_slow(s: Symptoms) -> Sign:
    """The run is over, and the rate still rises in a warmup that config ends long before (or that fills the whole run in one straight line, or moves once an epoch),
    or stands near its peak where the configured schedule has come down: a scheduler that is stepped once an epoch, or whose length counts
    micro-batches. A run that was cut off in its warmup shows the same and is no fault."""
    lr = series(s.run, "lr")
    if lr is None or lr.usable.sum() < FEW:
        return cannot_tell(f"{NOT_LOGGED}." if lr is None else f"fewer than {FEW} learning rates were logged.")
    if plan.unit(s.run) == "epoch":
        return does_not_arise("the log counts epochs, in which settings of steps are not told.")
    if with_silent_restarts(s.run, lr).attempt.max() > lr.attempt.max():
        return does_not_arise("the schedule begins anew within the run.")
    if jumps := [f.facts for f in s.of(lr_schedule.Facts) if f.facts.after > f.facts.before]:
        return does_not_arise(f"the rate leaves its schedule by a jump, from {jumps[0].before:.3g} to {jumps[0].after:.3g}.")
    order = np.argsort(lr.step[lr.usable], kind="stable")
    step, x = lr.step[lr.usable][order], lr.value[lr.usable][order]
    where = lr.place(s.run, len(lr) - 1)
    over = plan.reached(s.run) or ending(s.run).status == "finished"
    told = (
        _in_warmup(s.run, step, x, over)
        or _straight_up(s.run, step, x, over)
        or _once_an_epoch(s.run, step, x, over)
        or _still_up(s.run, step, x)
    )
    if told:
        return seen(f"{told}.", where=where, first=int(step[0]), last=int(step[-1]))
    if not over and _rises(x):
        return cannot_tell("whether the run was over is not known, and the rate still rises at the end of the log.")
    return absent(f"The learning rate peaks at {x.max():.3g} and stands at {x[-1]:.3g} at the end of the log.", where=where)


def warmup_ends_early(s: Symptoms) -> Sign:
    """The rate is at its peak before half of the configured warmup: a scheduler that is stepped for each micro-batch or each process. Told where the
    steps of the log are those of config: the run reached its planned length in them, or the factor is that of the accumulation."""
    lr, told = series(s.run, "lr"), settings.setting(s.run, "warmup_steps")
    length = _steps(told)
    if lr is None or lr.usable.sum() < FEW:
        return cannot_tell(f"{NOT_LOGGED}." if lr is None else f"fewer than {FEW} learning rates were logged.")
    if told is None or length is None:
        return cannot_tell("config does not say how many steps the warmup takes.")
    kind = settings.setting(s.run, "schedule")
    if plan.unit(s.run) == "epoch" or len(s.run.attempts) > 1 or (kind is not None and any(c in str(kind.value).lower() for c in SHAPED)):
        return does_not_arise("the log counts epochs, the run was restarted, or the schedule begins again by itself.")
    step, x = lr.step[lr.usable], lr.value[lr.usable]
    top = int(np.argmax(x))
    where = lr.place(s.run, int(np.flatnonzero(lr.usable)[top]))
    over = int(step[min(top + 1, len(step) - 1)])  # by then: the peak may lie behind the highest rate that was logged
    text = f"The warmup of the learning rate is over by step {step[top]}, and config gives it {length:g} steps ({told.where})"
    if top == 0 or over >= length / TWICE:
        return absent(f"{text}.", where=where)
    factor, accumulation = length / max(int(step[top]), 1), settings.number(s.run, "accumulation") or 1
    if not plan.reached(s.run) and abs(accumulation / factor - 1) > ALIKE:
        return cannot_tell("whether the log counts the steps that config means is not known: the run did not reach its plan in them.")
    return seen(f"{text}: the schedule runs some {factor:.2g} times too fast.", where=where, first=int(step[0]), last=int(step[top]))


def cosine_counts_epochs(s: Symptoms) -> Sign:
    """The rate goes down and up along one cosine whose half-period is as many steps as the run has epochs: a scheduler that is told epochs
    and stepped at each batch. PyTorch's CosineAnnealingLR goes up again the same way beyond its T_max."""
    lr, told = series(s.run, "lr"), plan.of_epochs(s.run)
    if lr is None or lr.usable.sum() < FEW:
        return cannot_tell(f"{NOT_LOGGED}." if lr is None else f"fewer than {FEW} learning rates were logged.")
    if told is None or plan.unit(s.run) == "epoch":
        return cannot_tell("the number of epochs is not known, or the log counts them as its steps.")
    step, x = lr.step[lr.usable].astype(np.float64), lr.value[lr.usable]
    peak, length = max(float(x.max()), settings.number(s.run, "lr") or 0.0), float(told.value)
    if np.ptp(step) < SWINGS * length or length < TWICE or np.ptp(x) < HALF * peak:  # a constant rate lies on it once a turn
        return absent(f"The run of {np.ptp(step):g} steps has {length:g} epochs, and the rate goes from {x.min():.3g} to {x.max():.3g}.")
    apart = min(float(np.abs(peak / 2 * (1 + np.cos(np.pi * (step + k) / length)) - x).max()) for k in (-1, 0, 1))
    text = f"The learning rate follows a cosine of {length:g} steps down and as many up to within {apart / peak:.1%} of its peak, and {told.says} is {length:g}"
    where = lr.place(s.run, 0)
    return (
        seen(f"{text}.", where=where, first=int(step[0]), last=int(step[-1])) if apart <= NEAR * peak else absent(f"{text}.", where=where)
    )


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
    if len(loss := usable(run)[1]) and last_level(loss) < HALF * first_level(loss):  # it learns all the same
        return ""
    line = np.polynomial.Polynomial.fit(step.astype(np.float64), x, 1)
    if float(np.abs(line(step.astype(np.float64)) - x).max()) > STRAIGHT * x[-1]:
        return ""
    return f"The learning rate warms up from the first step to the last, in one straight line to {x[-1]:.3g}, and the run is over"


def _once_an_epoch(run: Run, step: Ints, x: Floats, over: bool) -> str:
    """From epoch to epoch up to the end of the run, and never within one: a schedule of so many steps that is stepped at the end of each epoch."""
    epoch = series(run, "epoch")
    if not over or epoch is None or not _rises(x) or any(_RANGE_TEST.search(f"{told.key} {told.value}") for told in settings.every(run)):
        return ""
    of = np.floor(np.interp(step, epoch.step, epoch.value))
    moves, turns = np.diff(x) > 0, np.diff(of) > 0
    shown = turns.sum() >= FEW and len(x) >= TWICE * (turns.sum() + 1)
    by_epoch = not (moves & ~turns).any() and moves.sum() >= HALF * turns.sum()
    if not shown or not by_epoch or not moves[-(len(moves) // 4) :].any():
        return ""
    return f"The learning rate still rises at the end of the run, from {x[0]:.3g} to {x[-1]:.3g}, and moves once an epoch only"


def _still_up(run: Run, step: Ints, x: Floats) -> str:
    """The rate never comes down to half of its peak, where the configured schedule leaves a tenth at the end of the run."""
    kind = settings.setting(run, "schedule")
    if kind is None or not isinstance(kind.value, str) or not plan.reached(run) or len(run.attempts) > 1:
        return ""  # what a restart did to the schedule is told by itself
    word, peak = kind.value.lower(), float(x.max())
    if any(c in word for c in SHAPED):
        return ""
    meant = expected_rate(run, word, step, peak)
    came_up = int(np.argmax(x >= HALF * peak))
    if not peak or meant is None or meant[-1] > TENTH * peak or (x[came_up:] < HALF * peak).any():
        return ""
    return (
        f"The learning rate stands at {x[-1] / peak:.0%} of its peak at step {step[-1]}, the end of the run, where the configured schedule "
        f"({word}, {kind.where}) leaves {max(float(meant[-1]) / peak, 0):.0%}: the schedule runs too slow"
    )


def _steps(told: Setting | None) -> float | None:
    """A warmup in steps: a share below one is none."""
    n = settings.as_number(told.value) if told else None
    return n if n is not None and n > 1 else None
