"""Throughput

What it sees
    The run becomes slower, or faster, for good.

How it decides
    Takes the logged throughput of training, else the time of a step (a "time" that falls is none since the start, so it is one of a step, too), else that of an
    epoch, else the time since the start or the clock between logged rows, by the steps between them and without the pauses that hold an evaluation or a save, all
    times the samples of a step where these change, and looks for the one split into before and after that explains most of it (medians, at least five values on each
    side). It fires at a lasting slow-down to less than 80 % (to less than half where fewer than 20 values stand on a side, or only the time since the start is
    known), when the change is at least four times the noise, 2.6 sigma of the rank sum of both sides (few values tell only what divides them well), and three units
    of the last printed digit; a logged speed that falls while the rows' clock goes on as before is a mean since the start that holds a pause (as fps of stable-baselines3 and SPS of CleanRL are). It is for information
    unless the rest takes half as long again (and no metric is measured for the first time there, which the loop does more for), and costs ten minutes, goes at less than a third of the speed or hardly scatters from there on. A slow-down without an
    edge is told where each of eight pieces of the run is slower than the one before, down to less than a third of the speed (unless that speed may be a mean since
    the start, from which a fast beginning fades); and where the wait for data was logged: it rises in all but one of the pieces, the steps end half as long again, and the wait is half of that.

Cannot tell
    Where neither throughput, step time nor a clock was logged ten times.

Folklore
    Slower from a step on, whatever the reason: a loader that starves, a node that throttles, a disk that fills up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.detectors import utilization
from forensics.errors import CannotTell
from forensics.run import epoch_times, pace, step_work
from forensics.run.inputs import surviving
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import Floats, Ints, Series, parts, series
from forensics.spikes.visible import MARGIN
from parsers.runs.equal_values import last_place
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["time.step"]
SLOWER = 0.8  # unit: a fifth; not critical: 0.56 and 1.12 (any change beyond the noise) tell the same runs (docs/thresholds.md)
COSTLY = 2 / 3  # unit: the rest takes half as long again; blind readers call runs at 74 and 78 % healthy, and name the slow-down
SHARED, PETTY = 1 / 3, 600.0  # unit: what two neighbours leave of a core; seconds lost, for less than which nobody starts a run again
# measured: slow-downs of seven healthy runs on busy machines scatter by 12 % and more, of five with a cause two by 4 and 5 %, three by 14 to 19 %, which
# stay for information; neighbours come and go; statistical: ten values tell a scatter to a quarter
STEADY, STEADY_FOR = 0.06, 10
NOISES = 4.0  # statistical: of one value; chance does it once in 16,000; measured: at 5.6 one of 13 faulty runs is lost
SIDE = 5  # statistical: the fewest on either side whose rank sum can reach RANKS
FEW = 20  # values on a side; not critical: 14 and 28 tell the same runs (docs/thresholds.md); it keeps out the first steps of a run, which are odd
HALF = 0.5  # unit: what a neighbour that comes to one's core takes; measured: at 0.7 one of 107 healthy runs fires (docs/thresholds.md)
RANKS = 2.6  # statistical: sigma of Wilcoxon's rank sum, once in 200; 5 of 10 reach it when none of them lies among the others
ODD = 0.3  # of the changes are falls; bound: half of them in noise, a third where every third step is fast, none in time since the start
DIGITS = 3  # unit: of the last digit; 0.002 s that become 0.003 s are rounding
EVEN = 0.25  # share of pauses with an evaluation or a save by which the halves of a run may differ, so that medians compare alike; not critical
BY_SAMPLES = ("tput.tokens", "tput.tokens_dev", "tput.samples", "tput.samples_dev", "mfu", "flops.dev")
SPEEDS = (*BY_SAMPLES[:4], "tput.steps", *BY_SAMPLES[4:])
FILLING = 0.1  # bound: of the steps; what a buffer is filled with before the first update of DQN, SAC or TD3
SAME = 0.05  # bound: a speed of the last rows is off by 11 % where the run slows down to SLOWER half-way
CUT = 5  # statistical: percent on either side, so that single pauses move no split


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A lasting change of speed, in the unit of the metric (more is faster)."""

    step: int
    ratio: float  # after over before
    metric: str  # canonical name
    before: float
    after: float


def detect(run: Run) -> Iterator[Finding]:
    yield from found if (found := list(_at_once(run))) else _step_by_step(run)


def _at_once(run: Run) -> Iterator[Finding]:
    s, rows, speed = speed_of(run)
    split, noise = _parted(speed)
    before, after = median(speed[:split]), median(speed[split:])
    least = _least(s, min(split, len(speed) - split))
    if after >= least * before or np.log(before / after) < NOISES * noise or not _is_sure(s, speed, split):
        return
    row, last, step, fast = rows[split], rows[-1], int(s.step[rows[split]]), rows[max(int(np.argmax(speed < SLOWER * before)) - 1, 0)]
    if _untrained(run, int(s.step[fast]), int(s.step[last])):  # rollouts fill a buffer; a mean since the start falls row by row behind it
        return
    same_work = s.name not in BY_SAMPLES or step_work.of_steps(run, s.step[rows]) is None
    if s.name in SPEEDS and same_work and pace.ratio(s, rows, split) >= SLOWER:
        return
    begun = step_work.begins(run, int(s.step[rows[split - 1]]), step)
    title = f"The run slows down to {after / before:.0%} of its speed at step {step} and stays slow{begun}"
    shown = evidence.window(s, step, int(s.step[last]), title=f"{s.tag} from step {step} on", where=s.place(run, row))
    petty = begun or (_petty(s, rows[split:], speed[split:], after / before) and not utilization.starves(run, step))
    severity = "warning" if after < COSTLY * before and not petty else "info"
    yield evidence.on_rows(s, (row, last), Facts(step, after / before, s.name, before, after), title, severity, shown)


def _step_by_step(run: Run) -> Iterator[Finding]:
    """Steps that take ever longer: beyond what neighbours on the same cores leave, or for the wait for data alone grows."""
    s, rows, speed = speed_of(run)
    pieces = pace.pieces(speed)
    if pace.ever_slower(speed, SHARED) and not (s.name == "tput.steps" and pace.fades(s.step[rows], speed, SHARED)):
        yield _ever_longer(run, s, (int(s.step[rows[0]]), int(s.step[rows[-1]])), pieces[0], pieces[-1], "")
        return
    try:
        s, step, wait, total = utilization.waits(run)
    except CannotTell:
        return
    waits, totals = ([median(part) for part in np.array_split(x, pace.PIECES)] for x in (wait, total))
    rises = int((np.diff(waits) > 0).sum())
    longer, ratio = totals[-1] - totals[0], totals[0] / totals[-1]
    if rises < pace.PIECES - 2 or ratio >= COSTLY or waits[-1] - waits[0] < utilization.BY_WAITS * longer:
        return
    yield _ever_longer(run, s, (int(step[0]), int(step[-1])), 1 / totals[0], 1 / totals[-1], ", for the wait for data grows")


def _ever_longer(run: Run, s: Series, steps: tuple[int, int], before: float, after: float, why: str) -> Finding:
    title = f"Steps take ever longer, {before / after:.1f} times as long in the end{why}"
    shown = evidence.window(s, *steps, title=s.tag, where=s.place(run, -1), margin=0)
    return evidence.found(Facts(steps[0], after / before, s.name, before, after), title, steps, "warning", shown)


def _petty(s: Series, rows: Ints, speed: Floats, ratio: float) -> bool:
    """Less than ten minutes lost, at a speed that neighbours on the same cores explain, who make it scatter; False where that is not known."""
    if s.name not in BY_SAMPLES:  # of steps, or epochs, a second
        lasts = float((np.diff(s.step[rows]) / speed[1:]).sum()) * s.seconds
    else:
        lasts = float(s.time[rows[-1]] - s.time[rows[0]])
    return ratio >= SHARED and lasts * (1 - ratio) < PETTY and not (len(speed) >= STEADY_FOR and robust_sigma(np.log(speed)) < STEADY)


def _untrained(run: Run, step: int, end: int) -> bool:
    """Was no loss logged up to a step? Where episodes alone are logged, the first tenth of them may be of a random policy."""
    losses = [p for name in ("loss.train", "rl.loss_policy", "rl.loss_value") for p in parts(run, name)]
    if not losses:
        return step < FILLING * end and series(run, "rl.reward") is not None
    return all(p.usable.any() and int(p.step[p.usable].min()) > step for p in losses)


def smallest_effect(run: Run) -> str:
    s, _, speed = speed_of(run)
    split, noise = _parted(speed)
    side = FEW if len(speed) >= 2 * FEW else SIDE
    usual = median(speed[:split])
    rounded = DIGITS * _unit(s, speed) * (1 / usual if s.name in SPEEDS else usual)  # as a share of what is shown
    digits = -np.log(max(1 - rounded, 1e-3)) if s.name in SPEEDS else np.log1p(rounded)
    least = max(-np.log(_least(s, side)), NOISES * noise, digits) + MARGIN * np.sqrt(2) * error_of_median(noise, side)
    return f"a slow-down to {np.exp(-least):.1%} of the speed that lasts {max(side, len(speed) // 10)} values"


def _parted(speed: Floats) -> tuple[int, float]:
    """(where it is divided best, noise of one value on either side)."""
    y = np.log(np.maximum(speed, 1e-12))
    split = _best_split(y)
    return split, robust_sigma(np.r_[y[:split] - np.median(y[:split]), y[split:] - np.median(y[split:])], 0.0)


def _least(s: Series, side: int) -> float:
    """The share of its speed below which a run has to fall, by the fewer values of both sides."""
    is_total = s.name == "time.total" and not _is_of_steps(s)  # holds what the program did besides its steps, too
    return SLOWER if side >= FEW and not is_total else HALF


def speed_of(run: Run) -> tuple[Series, Ints, np.ndarray]:
    """A series, rows of it, and their speed (more is faster), finite and positive; that of steps which come to hold more samples is in samples.
    Raises CannotTell."""
    s, rows, speed = _logged_speed(run)
    more = step_work.of_steps(run, s.step[rows]) if s.name not in BY_SAMPLES else None
    return s, rows, speed if more is None else speed * np.maximum(more / more[0], 1.0)  # steps of fewer samples are no slower


def _logged_speed(run: Run) -> tuple[Series, Ints, np.ndarray]:
    for name in (*SPEEDS, "time.step", "time.total"):
        told = max((p for p in parts(run, name) if not pace.EVALUATION.search(p.tag)), key=len, default=None)
        rows = surviving(told) if told is not None else np.zeros(0, np.int64)
        if told is not None and len(rows) >= 2 * SIDE and (told.value[rows] > 0).all() and (name != "time.total" or _is_of_steps(told)):
            if name == "tput.steps" and (lately := _taken_apart(run, told, rows)) is not None:
                return told, rows[1:], lately
            return told, rows, told.value[rows] if name in SPEEDS else 1 / told.value[rows]
    if (by_epoch := epoch_times.by_epoch(run)) is not None:
        return by_epoch, np.flatnonzero(by_epoch.usable), 1 / by_epoch.value[by_epoch.usable]
    s, total = series(run, "loss.train"), series(run, "time.total")
    if (s is None or np.isfinite(s.time).sum() < 2 * SIDE) and total is not None:
        s = replace(total, time=np.where(total.usable, total.value, np.nan))
    if s is None or np.isfinite(s.time).sum() < 2 * SIDE:
        raise CannotTell("neither throughput, step time nor a clock was logged often enough")
    p = pace.pauses(s)
    ok = (p.a_step > 0) & s.alive[p.row[1:]] & s.alive[p.row[:-1]]
    held = pace.stopped(run, s, p)
    halves = [float(held[rows].mean()) for rows in np.array_split(np.flatnonzero(ok), 2) if len(rows)]
    if (ok & ~held).sum() >= 2 * SIDE or np.ptp(halves or [0.0]) > EVEN:  # a pause that holds an evaluation or a save is no speed
        ok &= ~held
    if ok.sum() < 2 * SIDE:
        raise CannotTell("too few steps between the evaluations and saves have a clock")
    return s, p.row[1:][ok], 1 / p.a_step[ok]


def _taken_apart(run: Run, s: Series, rows: Ints) -> Floats | None:
    """Steps a second from row to row, of a speed that is a mean since the start, as stable-baselines3 and CleanRL log it; None of any
    other. Steps over such a speed are the time since the start: it rises, and as the clock does where one was logged."""
    step, since = s.step[rows], s.step[rows] / s.value[rows]
    total = series(run, "time.total")
    clock = s.time[rows]
    if total is not None and total.usable.any():
        clock = np.interp(step, total.step[total.usable], total.value[total.usable])
    printed = DIGITS * median(last_place(clock)) if total is not None else 0.0
    clocked = np.ptp(since - clock) <= max(SAME * np.ptp(clock), printed)  # a clock that was not logged is NaN
    if not clocked and (s.smoothing != "mean of run" or np.isfinite(clock).all()):
        return None
    return np.diff(step) / np.diff(since) if (np.diff(since) > 0).all() and (np.diff(step) > 0).all() else None


def _is_of_steps(s: Series) -> bool:
    """Whether a time is that of a step. Time since the start never falls within an attempt, and its rise is spread over the rows; the
    time of a step falls or repeats, and where it rises for good, one row holds most of the rise. (Where the clocks of several processes
    are mixed, time falls, too, but its end is far above its beginning.)"""
    change = np.diff(s.value)[np.diff(s.attempt) == 0]
    return len(change) > 0 and bool((change < 0).mean() >= ODD or ((change <= 0).mean() >= ODD and change.max() >= abs(change.sum()) / 2))


def _is_sure(s: Series, speed: Floats, split: int) -> bool:
    """Whether both sides differ by more than chance and rounding."""
    n, m = split, len(speed) - split
    order = np.argsort(np.argsort(-speed, kind="stable"))  # 0: the fastest
    sums = order[split:].sum() - m * (m - 1) / 2  # pairs in which a later value is slower
    sigmas = (sums - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12)
    if sigmas < RANKS:
        return False
    shown = speed if s.name in SPEEDS else 1 / speed
    return bool(abs(np.median(shown[:split]) - np.median(shown[split:])) >= DIGITS * _unit(s, speed) * (1 - 1e-6))


def _unit(s: Series, speed: Floats) -> float:
    """One unit of the last printed digit; 0 for a clock, whose pauses are no printed numbers."""
    if not s.name.startswith((*SPEEDS, "time.")):
        return 0.0
    return median(last_place(speed if s.name in SPEEDS else 1 / speed))


def _best_split(y: np.ndarray) -> int:
    """The split that leaves the smallest sum of squares; values are cut at the 5th and 95th percentile first."""
    z = np.clip(y, *np.percentile(y, [CUT, 100 - CUT]))
    total, n = np.cumsum(z), len(z)
    k = np.arange(SIDE, n - SIDE + 1)
    left, right = total[k - 1], total[-1] - total[k - 1]
    return int(k[np.argmax(left**2 / k + right**2 / (n - k))])
