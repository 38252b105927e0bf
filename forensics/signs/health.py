"""What speaks for a run in which nothing is wrong."""

from __future__ import annotations

import math

import numpy as np

from forensics.detectors import config_change, divergence, level_shift, loss_spike, lr_schedule, plateau
from forensics.run import evaluations as held
from forensics.run import settings
from forensics.run.announced import LOG_LINE, announced
from forensics.run.configured_rate import DOWN, FLAT, SHAPED, expected_rate
from forensics.run.how_it_ended import ending
from forensics.run.inputs import surviving
from forensics.run.levels import LEAST_FALL
from forensics.run.robust import median, robust_sigma
from forensics.run.series import Floats, Ints, Series, series
from forensics.signs.held_out import eval_turned_where_training_jumped
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, seen

LEAST = plateau.LEAST_VALUES
HALF, LITTLE = 0.5, 0.05  # share of the first level; share of the whole fall: a twentieth from one quarter to the next is little
NOISES = 3.0  # standard errors
UNDONE = 0.9  # of a jump; unit: the tenth that may be left is what a harder stage costs
BESIDE = 20  # steps: two logging intervals of ten, the most usual one
PEAK, OFF = 0.05, 0.02  # relative: a rate printed with two digits; of the peak: three digits, and a warmup that is counted otherwise


def _training(s: Symptoms) -> tuple[Series, Floats] | None:
    train = series(s.run, "loss.train")
    rows = surviving(train) if train is not None else np.zeros(0, np.int64)
    return (train, train.value[rows]) if train is not None and len(rows) >= LEAST else None


def _levels(x: Floats) -> tuple[float, float, float]:
    """Median of the first three values, of the last tenth; standard error of a tenth."""
    n = max(len(x) // 10, 3)
    error = robust_sigma(np.diff(x[len(x) // 2 :])) / math.sqrt(2) * 1.25 / math.sqrt(n)  # 1.25: of a median, over that of a mean
    return median(x[:3]), median(x[-n:]), error


def outliers_only(s: Symptoms) -> Sign:
    """Every spike of the loss is a single value, back at once, and the loss or its evaluation goes on falling after the first of them."""
    spikes, told = s.of(loss_spike.Facts), _training(s)
    if not spikes or told is None:
        return cannot_tell("the loss does not spike." if not spikes else f"fewer than {LEAST} training losses were logged.")
    if longer := [f for f in spikes if f.facts.values > 1 or f.facts.end is None]:
        return absent(
            f"{len(longer)} of {len(spikes)} spikes last longer than a single value ({longer[0].facts.values} from step {longer[0].facts.start}).",
            longer[:3],
        )
    train, x = told
    before = held.level_at(train, spikes[0].facts.start - 1)
    steps, y = held.evaluations(s.run)
    after = y[steps > spikes[0].facts.start]
    last = _levels(x)[1]
    n = f"{len(spikes)} spike{'s are' if len(spikes) > 1 else ' is'} one value long"
    if before is not None and last < before:
        return seen(f"{n}, and training loss goes on from {before:.4g} to {last:.4g}.", spikes[:5], first=spikes[0].first_step)
    if len(after) >= 2 and after[-1] < after[0]:
        return seen(f"{n}, and evaluation loss goes on from {after[0]:.4g} to {after[-1]:.4g}.", spikes[:5], first=spikes[0].first_step)
    return absent(f"{n}, but the loss falls no further.", spikes[:5])


def learned_to_plan(s: Symptoms) -> Sign:
    """The loss fell, or the reward rose, by more than it scatters and 3 %, and the run ended as planned."""
    end, told, name, sign = ending(s.run), _training(s), "Training loss", 1.0
    if told is None:
        reward = series(s.run, "rl.reward")
        if reward is None or reward.usable.sum() < LEAST:
            return cannot_tell(f"neither {LEAST} training losses nor as many rewards were logged.")
        told, name, sign = (reward, reward.value[reward.usable]), "Reward", -1.0
    if end.status in ("unknown", "running"):
        return cannot_tell("the log does not say how the run ended.")
    first, last, error = _levels(told[1])
    text = f"{name} goes from {first:.4g} to {last:.4g}, and the run ended at step {end.step}"
    better = sign * (first - last) > max(NOISES * error, LEAST_FALL * abs(first))
    if better and end.status == "finished" and end.how != "early":
        return seen(f"{text}, as planned.", where=end.where, last=end.step)
    return absent(f"{text} ({end.status}).", where=end.where)


def loss_near_noise_floor(s: Symptoms) -> Sign:
    """The loss stands still far below its first level: it fell in the first half of the run, to less than a half."""
    told = _training(s)
    if told is None:
        return cannot_tell(f"fewer than {LEAST} training losses were logged.")
    x = told[1]
    quarters = [median(part) for part in np.array_split(x, 4)]
    first, third, last = median(x[:3]), quarters[2], quarters[3]
    text = f"Training loss is {first:.4g} at first, {third:.4g} in the third quarter of the run and {last:.4g} in the last."
    return seen(text) if 0 < last <= HALF * first and abs(third - last) <= LITTLE * (first - last) else absent(text)


def rate_as_configured(s: Symptoms) -> Sign:
    """The logged rate is, at nearly every step, the one that the configured schedule gives (or, of a cyclic or staged one, keeps to its peak)."""
    lr, kind, meant = series(s.run, "lr"), settings.setting(s.run, "schedule"), settings.number(s.run, "lr")
    if lr is None or lr.usable.sum() < 10:
        return cannot_tell("the learning rate was not logged.")
    if kind is None or meant is None or meant <= 0 or not isinstance(kind.value, str):
        return cannot_tell("config does not name the schedule and the peak of the rate.")
    word, x, step = kind.value.lower(), lr.value[lr.usable], lr.step[lr.usable]
    peak = float(x.max())
    if abs(peak / meant - 1) > PEAK:
        text = f"The rate reaches {peak:.3g}; config says {meant:.3g}"
        covered = step.max() < (settings.number(s.run, "warmup_steps") or 0)
        return cannot_tell(f"the log ends within the warmup: {text}.") if covered else absent(f"{text}.", where=kind.where)
    if any(c in word for c in SHAPED) or not any(k in word for k in (*FLAT, *DOWN)):
        if jumps := s.of(lr_schedule.Facts):
            return absent(f"{jumps[0].title}, under a schedule that config calls {word}.", jumps, where=kind.where)
        return seen(f"The rate stays on its schedule ({word}) and at most at {peak:.3g}, as configured.", where=kind.where)
    told = expected_rate(s.run, word, step, peak)
    if told is None:
        return cannot_tell("config does not say over how many steps the rate decays.")
    beside = [b for d in (-1, 0, 1) if (b := expected_rate(s.run, word, step + d, peak)) is not None]  # steps counted from 0 or 1
    off = np.min([np.abs(x - b) for b in beside], axis=0)
    worst = int(np.argmax(off))
    if float(np.percentile(off, 95)) <= OFF * peak:
        return seen(f"The rate follows its configured schedule ({word}, peak {meant:.3g}) within {OFF:.0%} of its peak.", where=kind.where)
    return absent(
        f"At step {step[worst]} the rate is {x[worst]:.3g}, where the configured schedule ({word}) gives {told[worst]:.3g}.",
        where=kind.where,
    )


def _changes(s: Symptoms) -> list[tuple[int, str]]:
    """What changes inside a launch, or where its log says that it was planned: steps of the level, jumps of the loss, the batch size."""
    planned = [a.step for a in announced(s.run) if a.key == LOG_LINE]
    found = [
        (f.facts.step, f.title) for f in s.of(config_change.Facts) if f.facts.batch and not f.facts.at_restart and f.facts.step is not None
    ]
    train = series(s.run, "loss.train")
    near = max(BESIDE, 2 * train.interval if train is not None else 0)
    inside = [f for f in found if all(abs(f[0] - a["steps"][0]) > 1 for a in s.run.attempts[1:])]
    found = [f for f in found if f in inside or any(abs(f[0] - step) <= near for step in planned)]
    for f in s.of(level_shift.Facts, loss_spike.Facts, traps=True):
        if f.first_step is not None:
            found.append((f.first_step, f.title))
    return found


def changes_as_configured(s: Symptoms) -> Sign:
    """A change of the batch size, the level of the loss, or a jump of it comes at a step for which the config announces a change."""
    told, changes, train = announced(s.run), _changes(s), series(s.run, "loss.train")
    reach = max(BESIDE, 2 * train.interval if train is not None else 0)
    size = series(s.run, "batch.size")
    if size is not None and size.usable.sum() >= LEAST and (ramp := settings.setting(s.run, "rampup")) is not None and ramp.value:
        x = size.value[size.usable]
        if x[-1] > x[0] and (np.diff(x) >= 0).all():
            return seen(f"The batch size grows from {x[0]:g} to {x[-1]:g}, as {ramp.key} says.", where=ramp.where)
    if not changes:
        return cannot_tell("nothing changes inside a launch: neither batch size nor level of the loss.")
    for a in told:
        for step, title in changes:
            if abs(step - a.step) <= reach:
                return seen(f"{title}; config announces a change at step {a.step} ({a.key} = {a.says}).", where=a.where, first=a.step)
    if not s.run.tables["config"].num_rows:
        return cannot_tell("no config was found.")
    if not told:
        return cannot_tell("config announces no change on the way.")
    return absent(f"{changes[0][1]}; config announces its changes at step {', '.join(str(a.step) for a in told[:3])}.", where=told[0].where)


def stage_learned(s: Symptoms) -> Sign:
    """The loss jumps where config announces other data, and nine tenths of the jump are undone before the next such stage, or the end, while no
    evaluation turns up there; or the evaluations end within a tenth of all that they had gained of their best: it costs nothing that was known."""
    begins, train = sorted({a.step for a in announced(s.run) if a.about == "data"}), series(s.run, "loss.train")
    if not begins or train is None:
        return cannot_tell("config announces no other data on the way." if train is not None else "no training loss was logged.")
    kept = _kept(held.evaluations(s.run)[1])
    if not kept and (turned := eval_turned_where_training_jumped(s)).state == SEEN:
        return absent(turned.text)
    rows = surviving(train)
    step, x = train.step[rows], train.value[rows]
    found = []
    for f in s.of(loss_spike.Facts, divergence.Facts, traps=True):
        stage = next((b for b in begins if f.first_step is not None and abs(f.first_step - b) <= 2 * train.interval), None)
        if stage is not None and (kept or _undone(step, x, stage, next((b for b in begins if b > stage), int(step[-1]) + 1))):
            found.append(f)
    if not found:
        return absent(f"The loss does not jump at the announced step {begins[0]}, or does not come back from it.")
    back = "the evaluations keep what they had gained" if kept else "the loss comes down again"
    return seen(f"{found[0].title}; config announces other data there, and {back}.", found, first=found[0].first_step)


def loss_redefined_as_announced(s: Symptoms) -> Sign:
    """The loss jumps where config announces another weight of a term, or other negatives: what it measures is another thing from there on. Not where
    an evaluation turns up there, too."""
    told, train = [a for a in announced(s.run) if a.about == "loss"], series(s.run, "loss.train")
    if not told or train is None:
        return cannot_tell(
            "config announces no change of what the loss is made of." if train is not None else "no training loss was logged."
        )
    if (turned := eval_turned_where_training_jumped(s)).state == SEEN:
        return absent(turned.text)
    reach = 2 * train.interval
    found = [
        f
        for f in s.of(loss_spike.Facts, divergence.Facts, level_shift.Facts, traps=True)
        if any(f.first_step is not None and abs(f.first_step - a.step) <= reach for a in told)
    ]
    if not found:
        return absent(f"The loss does not jump at the announced step {told[0].step}.")
    text = f"{found[0].title}; config announces that the loss changes there ({told[0].key} = {told[0].says})."
    return seen(text, found, where=told[0].where, first=found[0].first_step)


def _kept(x: Floats) -> bool:
    """Whether the last evaluations are within a tenth of all that was gained of the best one."""
    return len(x) >= LEAST and x[0] > x.min() and median(x[-3:]) - x.min() <= (1 - UNDONE) * (x[0] - x.min())


def _undone(step: Ints, x: Floats, begin: int, end: int) -> bool:
    """Whether the loss is up for three values at a step, so that it was no single batch, and little of that is left at the end of the stage."""
    before, stage = x[step <= begin], x[(step > begin) & (step < end)]
    if len(before) < LEAST or len(stage) < LEAST:
        return False
    level, up, last = (median(v) for v in (before[-3:], stage[:3], stage[-3:]))
    jumps = up - level > NOISES * robust_sigma(np.diff(before[-LEAST:]))
    return jumps and up - last >= UNDONE * (up - level)
