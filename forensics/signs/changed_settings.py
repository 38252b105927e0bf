"""What was set otherwise from one launch to the next, or from one step on, and whether the run behaves otherwise since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from forensics.batches.split import shares_out
from forensics.case import Finding
from forensics.detectors import config_change, divergence, eval_jump, level_shift, loss_spike, lr_schedule, resume_break, throughput
from forensics.errors import CannotTell
from forensics.findings import GRAVE
from forensics.run import settings
from forensics.run.inputs import objective
from forensics.run.robust import median, robust_sigma
from forensics.run.series import Floats, series
from forensics.signs.counted_anew import OF_DATA_ORDER
from forensics.signs.saved_state import OF_OPTIMIZER_STATE
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

SOON = 20  # steps, or two logging intervals: as long as a spike that comes back fast may last (forensics.detectors.loss_spike)
AROUND = 50  # values on either side: the error of a scatter is then a sixth of it
ERRORS = 3.0  # statistical: standard errors; the step is told, so that chance moves one of three series in a change of 120
ERRORS_UP = 2.0  # statistical: of the scatter of a smaller batch, which is to grow: chance does it once in 44
CHANGED = 0.1  # unit: a tenth, below which nobody would call it another level
LEAST = 10  # values on either side, as for a loss across a restart (forensics.detectors.resume_break)
MEDIAN = 5  # bound: values whose median two odd ones do not move; a scatter needs more
_RATE = lazy_re(
    r"(?i)(^|[._/])(lr|lr_max|lr0)($|[._/])|learning_?rate|(^|[._/])(min|max|base|peak|end|final)_lr|warm_?up|lr_?(scheduler|decay)"
)
_BATCH = lazy_re(
    r"(?i)(?:^|[._\s])(?:batch(?:[ _]?size)?|(?:grad(?:ient)?_?)?accum(?:ulat(?:e|ion))?(?:_steps|_grad_batches)?|update_freq)$"
)
_EFFECTS = (loss_spike.Facts, lr_schedule.Facts, level_shift.Facts, throughput.Facts, eval_jump.Facts, divergence.Facts)


def batch_size_differs(s: Symptoms) -> Sign:
    """The number of samples a step changes for good, in the log or between two launches."""
    changed = batch_changes(s)
    if changed:
        return seen(f"{changed[0].title}.", changed, do=_rate_beside(s.run, changed[0].facts), first=changed[0].first_step)
    size = series(s.run, "batch.size")
    if size is not None and len(size) >= LEAST and size.usable.any():
        x = size.value[size.usable]
        size_is = f"is {x[0]:g} throughout" if x.min() == x.max() else f"moves between {x.min():g} and {x.max():g}, and not once for good"
        return absent(f"The logged batch size {size_is}.", where=size.place(s.run, 0))
    if s.run.tables["batches"]["sample"].null_count < s.run.tables["batches"].num_rows:
        return absent("The files that list the batches show no lasting change of the number of samples a step.")
    told = settings.setting(s.run, "batch_size")
    if told is not None and config_change.snapshots(s.run):
        return absent(f"The configs of the launches set the same batch size ({told.value}).", where=told.where)
    return cannot_tell("there is one config, and the log names no batch size.")


def _rate_beside(run: Run, f: config_change.Facts) -> tuple[str, ...]:
    """How the rate went with the batch, beside what the scaling rules ask for (Goyal et al., arXiv 1706.02677; Adam: Malladi et al., 2205.10287)."""
    rate = series(run, "lr")
    sizes = next(
        ((settings.as_number(a), settings.as_number(b)) for k, (a, b) in zip(f.keys, f.changes, strict=True) if "batch" in k.lower()), None
    )
    if rate is None or f.step is None or sizes is None or not sizes[0] or not sizes[1]:
        return ()
    before, after = (rate.value[rate.usable & side] for side in (rate.step < f.step, rate.step >= f.step))
    if not len(before) or not len(after) or before[-1] <= 0:
        return ()
    batch, went = sizes[1] / sizes[0], float(after[0] / before[-1])
    low, high = sorted((np.sqrt(batch), batch))
    asked = f"SGD asks for {batch:.3g} times, Adam for {low:.3g} to {high:.3g} times"
    return (f"Compare the rate: the batch became {batch:.3g} times as large, and the rate {went:.3g} times; {asked}.",)


def batch_change_in_config_and_log(s: Symptoms) -> Sign:
    """A change of the batch size stands in the configs and in the log."""
    changed = batch_changes(s)
    if len(changed) > 1:
        return seen(f"Config and log agree: {changed[1].title[0].lower()}{changed[1].title[1:]}.", changed, first=changed[1].first_step)
    if not changed:
        return does_not_arise("no change of the batch size was seen.")
    logged = series(s.run, "batch.size") is not None or s.run.tables["batches"].num_rows > 0
    if not logged or not config_change.snapshots(s.run):
        return cannot_tell("the log names no batch size." if not logged else "there are no configs of two launches.")
    where = "configs" if changed[0].facts.at_restart is None else "log"
    return absent(f"The change of the batch size stands in the {where} alone.", changed)


def other_settings_differ(s: Symptoms) -> Sign:
    """Settings differ between two launches, other than the batch size, the processes that it goes with, and whether the optimizer's state or the place
    in the data is loaded."""
    resized = bool(batch_changes(s))

    def another(key: str) -> bool:
        of_batch = "batch" in key.lower() or (resized and shares_out(key))
        return not of_batch and not OF_OPTIMIZER_STATE.fullmatch(key) and not OF_DATA_ORDER.fullmatch(key)

    return _between_launches(s, another, "but for the batch size")


def rate_setting_differs(s: Symptoms) -> Sign:
    """A setting of the learning rate or its schedule differs between two launches."""
    return _between_launches(s, lambda key: bool(_RATE.search(key)), "of the learning rate")


def behaves_differently_after_change(s: Symptoms) -> Sign:
    """Loss, rate, speed or evaluation leave their level within 20 steps, or two logged values, of a change of settings. What a larger batch brings
    by itself (a lower loss, less scatter, longer steps) is no such effect of it."""
    steps = sorted({f.facts.step for f in s.of(config_change.Facts) if f.facts.step is not None})
    if not steps:
        return does_not_arise("no change of settings has a step to look at.")
    try:
        judged = objective(s.run)
    except CannotTell as e:
        return cannot_tell(f"{e}.")
    soon = max(SOON, 2 * judged.interval)
    grown, shrunk = _batches_became(s, larger=True), _batches_became(s, larger=False)
    effects: list[Finding[Any]] = [  # a level that is lower is no harm by itself, but it is another one
        f
        for f in (*s.of(*_EFFECTS, severity=GRAVE), *s.of(resume_break.Facts))
        if f.first_step is not None and any(step - judged.interval <= f.first_step <= step + soon for step in steps)
        if not grown or f.severity in GRAVE or not (isinstance(f.facts, resume_break.Facts) and not f.facts.up)
    ]
    if effects:
        return seen(f"{effects[0].title}, after settings changed at step {steps[0]}.", effects[:3], first=effects[0].first_step)
    told = []
    for step in steps:
        for text, moves in _around(s.run, step, shrunk):
            if moves and not grown:
                return seen(f"The {text} at step {step}, where settings changed.", s.of(config_change.Facts)[:1], first=step)
            told += [f"the {text}"] if step == steps[0] else []
    for step in steps:
        before, after = (int(np.sum(judged.usable & side)) for side in (judged.step < step, judged.step >= step))
        if min(before, after) < LEAST:
            return cannot_tell(f"{judged.tag} has fewer than {LEAST} values on one side of the change of settings at step {step}.")
    if not told:
        return cannot_tell(
            f"neither training loss, gradient norm nor step time was logged around the change of settings at step {steps[0]}."
        )
    return absent(f"Around the change of settings at step {steps[0]}, {' and '.join(told)}: less than chance explains, or than a tenth.")


def _batches_became(s: Symptoms, larger: bool) -> bool:
    """Whether all that changed is a batch, and it became larger, or smaller. A lower loss, less scatter and longer steps are what was to be had for a
    larger one."""
    changed = [(key, pair) for f in s.of(config_change.Facts) for key, pair in zip(f.facts.keys, f.facts.changes, strict=True)]
    try:
        return bool(changed) and all(_BATCH.search(key) is not None and (float(old) < float(new)) is larger for key, (old, new) in changed)
    except (TypeError, ValueError):
        return False


def batch_changes(s: Symptoms) -> list[Finding[config_change.Facts]]:
    return [f for f in s.of(config_change.Facts) if f.facts.batch]


def _around(run: Run, step: int, shrunk: bool) -> Iterator[tuple[str, bool]]:
    """How the scatter of the loss, the gradient norm and the step time change at a step, and whether by more than chance explains.

    A batch k times as large has noise lower by the root of k (McCandlish et al. 2018, arXiv 1812.06162), which shows before any level does.
    """
    for name, what in (("loss.train", "scatter of the loss"), ("grad.norm", "gradient norm"), ("time.step", "step time")):
        found = series(run, name)
        if found is None:
            continue
        sides = (found.value[found.usable & (found.step < step)][-AROUND:], found.value[found.usable & (found.step >= step)][:AROUND])
        if min(map(len, sides)) < (LEAST if name == "loss.train" else MEDIAN):
            continue
        if name == "loss.train" and min(x.min() for x in sides) > 0:  # noise shrinks with a loss that falls
            what, sides = "scatter of the loss, as a share of it,", (np.log(sides[0]), np.log(sides[1]))
        before, after = (robust_sigma(np.diff(x)) if name == "loss.train" else median(x) for x in sides)
        a, b = (1.17 / np.sqrt(len(x)) if name == "loss.train" else _error(x) for x in sides)  # 1.17: of a robust sigma
        errors = ERRORS_UP if shrunk and name == "loss.train" and after > before else ERRORS
        moves = min(before, after) > 0 and abs(np.log(after / before)) > max(errors * np.hypot(a, b), CHANGED)
        yield f"{what} goes from {before:.3g} to {after:.3g}", bool(moves)


def _error(x: Floats) -> float:
    """Relative standard error of a median (1.25: over that of a mean)."""
    return 1.25 * robust_sigma(x) / max(abs(median(x)), 1e-30) / float(np.sqrt(len(x)))


def _between_launches(s: Symptoms, of_kind: Callable[[str], bool], words: str) -> Sign:
    found = [f for f in s.of(config_change.Facts) if f.facts.at_restart is None]
    for f in found:
        told = [(k, old, new) for k, (old, new) in zip(f.facts.keys, f.facts.changes, strict=True) if of_kind(k)]
        if told:
            listed = ", ".join(f"{k} from {old} to {new}" for k, old, new in told[:3])
            return seen(f"Between two launches the config changed {listed}.", [f], first=f.first_step)
    if not config_change.snapshots(s.run):
        why = "there are no configs of two launches."
        return cannot_tell(why) if len(s.run.attempts) > 1 else does_not_arise(why)
    return absent(f"The configs of the launches agree in all settings {words}.", found)
