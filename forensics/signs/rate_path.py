"""Which way the logged rate goes: jumps, resets, an end before its time, and whether the loss goes with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.detectors import (
    attention_logits,
    checkpoint_state,
    divergence,
    eval_jump,
    level_shift,
    loss_spike,
    lr_schedule,
    nonfinite,
    schedule_length,
)
from forensics.run import rate_shape, settings
from forensics.run.configured_rate import is_endless
from forensics.run.evaluations import LEVEL
from forensics.run.plan import planned_steps
from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.series import Series, series
from forensics.run.usable_values import interval, lacking, usable
from forensics.run.usual_rate import family
from forensics.signs import policies, policy_rewards
from forensics.signs.learning_rate import NOT_LOGGED
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "learning_rate"  # the other half of it

REMEMBERED = 100  # steps: between the 20 and the 1000 that Adam's second moment remembers with a beta2 of 0.95 and of 0.999
FEW = 10  # values: a path of fewer shows neither jump nor schedule
UPPER, THIRDS, LEAST = 0.5, 3, 5  # units: of the peak, of that stretch; bound: medians of five
# unit: a tenth; measured: of 20 runs far above the usual rate those at 0.92 and more have learnt too little, sound ones are at 0.12 to 0.88; SGD with
# clipping is left out, two sound runs of which are at 0.95 and 0.97
STANDS = 0.9
ERRORS = 5.0  # statistical: of two medians; normal noise does it once in 3.5 million, and a loss that still falls not even then
LIKE = 0.15  # two factors are one within so much: ends are read off logged steps, accumulation leaves remainders

_LEAVES = (loss_spike.Facts, divergence.Facts, nonfinite.Facts, level_shift.Facts, attention_logits.Facts)
_POLICY = (policies.policy_kl_ran_away, policies.entropy_collapsed, policies.value_loss_exploded, policy_rewards.reward_fell)


def rate_jumped(s: Symptoms) -> Sign:
    """The logged rate leaves its own path upwards inside an attempt, where no warmup and no warm restart does it."""
    jumps = _jumps(s)
    if jumps:
        return seen(f"{jumps[0].title}.", jumps[:3], first=jumps[0].first_step, last=jumps[-1].first_step)
    rate = series(s.run, "lr")
    x = rate.value[rate.usable] if rate is not None else np.zeros(0)
    if rate is None or len(x) < FEW:
        return cannot_tell(f"{NOT_LOGGED}." if rate is None else f"only {len(x)} finite values of the learning rate were logged.")
    most = float(np.abs(np.diff(x)).max()) / max(float(x.max()), 1e-300)
    ends = f"The learning rate begins at {x[0]:.3g}, peaks at {x.max():.3g} and ends at {x[-1]:.3g}"
    text = f"{ends}; from one of its {len(x)} logged values to the next it moves by {most:.0%} of its peak at most."
    return absent(text, where=rate.place(s.run, int(np.flatnonzero(rate.usable)[0])))


def loss_follows_rate_jump(s: Symptoms) -> Sign:
    """The loss, the evaluation, the attention or the policy leaves its level within a hundred steps of a jump of the rate, or while the rate stands there."""
    jumps = _jumps(s)
    if not jumps:
        return does_not_arise("the learning rate does not jump.") if series(s.run, "lr") is not None else cannot_tell(f"{NOT_LOGGED}.")
    every = interval(s.run)
    moved = [f for f in s.of(*_LEAVES) if getattr(f.facts, "up", True)]
    evaluated = [(f, interval(s.run, f.facts.metric)) for f in s.of(eval_jump.Facts)]
    if follows := [f for f, apart in [*((f, every) for f in moved), *evaluated] if any(_follows(f.first_step, j, apart) for j in jumps)]:
        loss = follows[0] in moved and not isinstance(follows[0].facts, attention_logits.Facts)
        what = f"The loss leaves its level at step {follows[0].first_step}" if loss else follows[0].title
        return seen(f"{what}, after the rate's jump.", follows[:3], first=follows[0].first_step)
    for told in (look(s) for look in _POLICY):
        if told.state == SEEN and any(_follows(told.numbers.get("first"), j, FEW * interval(s.run, "lr")) for j in jumps):
            return seen(f"After the rate's jump: {told.text}", [*told.findings, *jumps[:1]], first=told.numbers["first"])
    return _level_after(s, jumps[0], moved)


def _level_after(s: Symptoms, jump: Finding[lr_schedule.Facts], moved: list[Finding[Any]]) -> Sign:
    """Whether the loss stands higher after a jump of the rate than before it, where no detector found that it left its level."""
    if why := lacking(s.run, 2 * FEW):
        return cannot_tell(why)
    at, (step, x) = jump.first_step or 0, usable(s.run)
    before, after = x[step < at][-LEVEL:], x[step > at][:LEVEL]
    if len(before) < FEW or len(after) < FEW:
        return cannot_tell(f"fewer than {FEW} values of a loss were logged on one side of the rate's jump at step {at}.")
    was, now = median(before), median(after)
    error = math.hypot(*(error_of_median(noise_by_steps(part), len(part)) for part in (before, after)))
    text = f"The median loss is {now:.3g} after the rate's jump at step {at}, and {was:.3g} before it"
    if now - was > ERRORS * error:
        return seen(f"{text}.", [jump], first=at)
    away = f"; the loss leaves its level at step {moved[0].first_step}, away from the jump" if moved else ""
    return absent(f"{text}{away}.", moved[:1])


def loss_stands_at_high_rate(s: Symptoms) -> Sign:
    """While the rate is in its upper half the training loss ends no tenth lower than it began there: at this rate nothing is learnt."""
    rate, loss = series(s.run, "lr"), series(s.run, "loss.train")
    if loss is None or rate is None or not rate.usable.any():
        return cannot_tell(f"{NOT_LOGGED if loss is not None else 'the training loss was not logged'}.")
    if family(s.run) == "sgd" and (settings.number(s.run, "clip") or 0) > 0:
        return does_not_arise("a step of SGD whose gradient is clipped is no longer than the rate times the clip, and may take any rate.")
    step, x = loss.step[loss.usable], loss.value[loss.usable]
    at = np.interp(step, rate.step[rate.usable], rate.value[rate.usable])
    rows = np.flatnonzero(at >= UPPER * at.max(initial=0))
    if len(rows) < THIRDS * LEAST or float(x[rows].min()) <= 0:
        return cannot_tell(f"fewer than {THIRDS * LEAST} positive losses were logged while the rate was in its upper half.")
    first, *_, last = (median(part) for part in np.array_split(x[rows], THIRDS))
    begin, end = int(step[rows[0]]), int(step[rows[-1]])
    text = f"While the learning rate is above half of its peak, from step {begin} to {end}, the loss goes from {first:.4g} to {last:.4g} (medians of its thirds)."
    where = loss.place(s.run, int(np.flatnonzero(loss.usable)[rows[0]]))
    return seen(text, where=where, first=begin, last=end) if last > STANDS * first else absent(text, where=where)


def rate_reset_at_resume(s: Symptoms) -> Sign:
    """After a restart the rate begins again elsewhere than where it stood."""
    resets = [f for f in s.of(lr_schedule.Facts) if f.facts.at_resume]
    if resets:
        return seen(f"{resets[0].title}.", resets, first=resets[0].first_step)
    rate = series(s.run, "lr")
    if len(s.run.attempts) < 2:
        return does_not_arise("there is no restart at which the rate could have been reset.")
    if rate is None:
        return cannot_tell(f"{NOT_LOGGED}.")
    begins = [int(i) for i in np.flatnonzero(np.diff(rate.attempt)) + 1 if np.isfinite(rate.value[i])]
    known = [(i, old) for i in begins if (old := _before(rate, i)) is not None]
    if not known:
        return cannot_tell("the learning rate was not logged on both sides of the restart.")
    i, old = known[-1]
    text = f"At the restart at step {rate.step[i]} the learning rate is {rate.value[i]:.3g}, after {old:.3g} before."
    return absent(text, where=rate.place(s.run, i))


def schedule_ends_early(s: Symptoms) -> Sign:
    """The rate comes to the end of its decay before six tenths of the planned steps."""
    if ends := s.of(schedule_length.Facts):
        return seen(f"{ends[0].title}.", ends, first=ends[0].facts.end)
    rate, plan, shape = series(s.run, "lr"), planned_steps(s.run), rate_shape.shape(s.run)
    kind = settings.setting(s.run, "schedule")
    if rate is None or shape is None:
        return cannot_tell(f"{NOT_LOGGED}.")
    if plan is None:
        return cannot_tell("the planned number of steps is not known.")
    if kind is not None and is_endless(kind):
        return does_not_arise(f"no end of the schedule is set: config asks for {str(kind.value)[:40]} ({kind.where}).")
    if int(rate.step.max()) < schedule_length.EARLY * plan:
        return does_not_arise(f"the log ends at step {rate.step.max()} of {plan}, too early to see where the schedule ends.")
    return absent(
        f"The learning rate stands at {shape.final:.0%} of its peak at step {rate.step.max()} of {plan}.",
        where=rate.place(s.run, len(rate) - 1),
    )


def schedule_factor_configured(s: Symptoms) -> Sign:
    """The factor by which the schedule runs ahead is the configured accumulation or number of processes."""
    ends, ahead = s.of(schedule_length.Facts), [f for f in s.of(checkpoint_state.Facts) if f.facts.what == "scheduler_ahead"]
    factor = ends[0].facts.factor if ends else ahead[0].facts.times if ahead else None
    if not factor:
        return does_not_arise("the schedule is not seen to run ahead, so that there is no factor.")
    known = [
        (name, told, n)
        for name in ("accumulation", "world_size")
        if (told := settings.setting(s.run, name)) and (n := settings.as_number(told.value)) and n > 1
    ]
    if not known:
        return cannot_tell("config names neither an accumulation nor a number of processes above one.")
    found: list[Finding[Any]] = [*ends, *ahead]
    for name, told, n in known:
        if abs(factor / n - 1) <= LIKE:
            what = "gradient accumulation" if name == "accumulation" else "number of processes"
            return seen(f"The schedule runs {factor:.3g} times too fast, and the configured {what} is {n:g}.", found, where=told.where)
    listed = " and ".join(f"{told.key} {n:g}" for _, told, n in known)
    return absent(f"The schedule runs {factor:.3g} times too fast, and config sets {listed}.", found, where=known[0][1].where)


def _jumps(s: Symptoms) -> list[Finding[lr_schedule.Facts]]:
    return [f for f in s.of(lr_schedule.Facts) if not f.facts.at_resume]


def _follows(begins: int | None, jump: Finding[lr_schedule.Facts], apart: int) -> bool:
    """Whether something that is logged every `apart` steps begins where the rate jumped, or while the rate stood there."""
    at, lasts = jump.first_step or 0, 2 * (jump.facts.lasts or 0)
    return begins is not None and at - apart <= begins <= at + max(REMEMBERED, 2 * apart, lasts)


def _before(rate: Series, i: int) -> float | None:
    """Where the rate of the attempt before stood at the step of row `i`."""
    same = np.flatnonzero((rate.attempt == rate.attempt[i - 1]) & (rate.step <= rate.step[i]) & np.isfinite(rate.value))
    return float(rate.value[same[-1]]) if len(same) else None
