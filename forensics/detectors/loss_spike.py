"""Loss spike

What it sees
    The training loss leaves its level upwards and comes back fast, slowly, or not at all; or it only rises,
    without a spike. Values that are not finite are the highest of all.

How it decides
    Candidates stand 5 local sigmas above the median of the 15 values before, on the log scale. A logistic regression tells spikes from noise by their height
    against five yardsticks, their crowd and their shape; it was fitted on annotated real curves and simulated ones (benchmarks/spikes.py). In a log of up to
    300 values, where its yardsticks lack neighbours, a jump counts as well when the lowest of the next three values stands clear of the highest of the five
    before (``forensics.spikes.jumps``). A spike is *fast* when a value and the median of it and the next two are back within 2 sigma after at most the
    largest of 0.4 % of the planned steps (of the steps covered, where no plan is known), 3 logging intervals and 20 steps; *slow* when later;
    *non_recovering* when the loss does not stay there again, or when the smoothed loss rises four times further than ever before and stays up. *not_a_spike*
    are weights that start anew, a level that steps up without an overshoot, the same bump at regular distances, and what the logger made: a running mean that
    begins anew with each epoch, too; and what does not come back to a run of low values, where the level of a hundred values after it is that of a hundred
    before. A spike that a restart or the end of the log cuts off is *censored*: its class is open, and where no more than two values are above the level by
    then, it is no graver than a fast one. What comes back after less than a tenth of the run and took back less than half of what the loss had fallen is told, but is no warning,
    unless it stands at a restart, or seven times above the fifty values before it in a run of more than three such; then it may take back half a percent;
    nor is a fast one, or one whose level comes back in the end, where eight others at least half as
    high and wide come and go throughout the run, the tail of its noise; nor is a climb to the end while the evaluation goes on getting better, nor one that the
    weight of a KL term makes as it is raised.

Cannot tell
    Without a training loss, or with fewer than ten values of it, unless there are five that never give back a quarter of their fall. A
    spike shorter than the logging interval is averaged away or fell between two points: the check says the smallest one this log could
    have shown.

Folklore
    "Fast recovering, slow recovering, not fully recovering": S. Bekman, Machine Learning Engineering Open Book,
    training-loss-patterns. The cut at 0.4 % separates the cases whose lengths the book's logbooks record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import epoch_means, meter_dips
from forensics.run.configured_rate import begins_again
from forensics.run.evaluations import improves_after
from forensics.run.inputs import ANY_LOSS, loss_of
from forensics.run.once import once
from forensics.run.plan import planned_steps
from forensics.run.robust import median
from forensics.run.series import Series, series
from forensics.spikes import excursions, jumps, measurements, nan_filter_rows, throughout
from forensics.spikes.classes import Spike, judge
from forensics.spikes.histories import History, histories
from forensics.spikes.trend import IN_ORDER, falls_in_order
from forensics.spikes.visible import smallest_spike
from parsers.tables import Run

NEEDS = [ANY_LOSS]
MEANT = ("kl_weight_lifts_loss", "stage_learned", "loss_redefined_as_announced")
WHY = {
    "reinit": "the loss is back at its first value and comes down the same way: reinitialized weights",
    "step": "the level steps up without an overshoot and learning continues: a restarted schedule, or other data",
    "data": "the level steps up without an overshoot, learning continues, and the learning rate does not change: other data",
    "periodic": "the same bump comes at regular distances: the loop makes it, not the optimization",
    "logger": "the logger made it",
    "mean": "a running mean begins anew with the epoch, and few values make it there",
    "level": "a hundred values after it stand where a hundred before it did",
}
SAME_RATE = 1.2  # measured: no warm restart moves a rate by less; at 0.84 of it two of 82 faulty runs are lost (docs/thresholds.md)
BEFORE, STRETCH, FLAT = 50, 5, 0.9  # values; share of a stretch that stands within a third of its median. Not critical (docs/thresholds.md)
CLEAR_ODDS = 0.7  # measured: at 0.49 the same runs, at 0.98 of it 16 of 82 faulty ones are lost (docs/thresholds.md)
FEW = 2  # values; bound: a fast spike lasts one or two
RARE = 3  # bound: fast spikes of a run whose few hard samples they may be; a cause that acts again and again makes more
AT_RESTART = 10  # values; unit: the steps that Adam's momentum remembers, 1 / (1 - 0.9); what a restart made is no chance
CLEAR_SIGMA, CLEAR_SHARE, HUGE = 9.0, 0.15, 2.0  # heights, in ln; measured: 1.4 of the first loses one run (docs/thresholds.md)


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A jump of the loss: steps, and heights in units of the loss."""

    metric: str  # canonical name
    start: int
    peak: int
    end: int | None  # None: it does not come back in this attempt
    class_: str  # fast, slow, non_recovering, not_a_spike
    class_probability: dict[str, float]
    censored: bool  # cut off by a restart or by the end of the log: the class is open
    height: float
    level: float  # before it
    top: float
    noise_sigmas: float
    attempt: int
    cost_steps: int  # until the loss was where it would have been
    cost_excess: float  # sum of the loss above its level
    alive: bool  # no later attempt did these steps again
    values: int  # logged values that it lasts
    why: str  # reinit, step, data, periodic, logger, mean, divergence, nonfinite or empty
    over_highest: float | None  # height over the highest of the fifty values before, in units of ln
    falls_at: int | None  # step at which a flat high stretch ends at once
    half_life: int | None  # steps
    residual_offset: dict[str, Any]  # offset, low, high
    moved_first: dict[str, Any]


@once
def detect(run: Run) -> Sequence[Finding[Facts]]:
    """Kept, since other detectors ask for the spikes, too."""
    return tuple(_detected(run))


def _detected(run: Run) -> Iterator[Finding[Facts]]:
    s = loss_of(run)
    if len(s) < excursions.WARMUP + 2:
        if falls_in_order(s.value):
            return
        raise CannotTell(f"only {len(s)} values of {s.tag} were logged")
    length = planned_steps(run) or int(s.step.max() - s.step.min())
    made, means = {*nan_filter_rows.rows_made(run, s), *meter_dips.lifted(run, s)}, epoch_means.few_make_it(run, s)
    for h in histories(s):
        judged = [j for j in judge(h.step, h.value, length) if j.at.start >= h.first and _on_one_count(h, j)]
        alike, rare = throughout.like_each(h.y, [j.at for j in judged]), sum(j.kind == "fast" for j in judged) <= RARE
        for i, j in enumerate(judged):
            until = min((o.at.start for o in judged[i + 1 :] if o.at.start > j.at.peak), default=len(h.rows))
            if h.rows[j.at.peak] in made:
                j = replace(j, kind="not_a_spike", why="logger")
            elif means[of := h.rows[[j.at.start, j.at.peak]]].any() or epoch_means.only_wanders(run, s, *of.tolist()):
                j = replace(j, kind="not_a_spike", why="mean")
            elif j.kind == "non_recovering" and not j.why and throughout.stays_level(h.y, j.at):
                j = replace(j, kind="not_a_spike", why="level")
            elif j.why == "step" and _rate_stays(run, int(h.step[j.at.start]), h.attempt):
                j = replace(j, why="data")
            over = j.kind == "fast" or (j.kind == "non_recovering" and throughout.level_again(h.y, j.at) < len(h.y))
            yield _finding(run, s, h, j, until, alike[i] if over and not j.why else 0, rare)


def _on_one_count(h: History, j: Spike) -> bool:
    """Not where the steps fall back on the way up: what lies on both sides of that is no one curve."""
    return bool(h.step[j.at.peak] >= h.step[max(j.at.start - 1, 0)])


def _rate_stays(run: Run, step: int, attempt: int) -> bool:
    """Whether the logged rate is the same before and after a step inside an attempt; False where it is not known."""
    lr = series(run, "lr")
    if lr is None:
        return False
    mine = lr.attempt == attempt
    before, after = lr.value[mine & (lr.step < step)][-5:], lr.value[mine & (lr.step >= step)][:5]
    if len(before) < 5 or len(after) < 5:
        return False
    a, b = median(before), median(after)
    return min(a, b) > 0 and max(a, b) < SAME_RATE * min(a, b)


def smallest_effect(run: Run) -> str:
    s = loss_of(run)
    return smallest_spike(s) if len(s) >= excursions.WARMUP + 2 else IN_ORDER


def _finding(run: Run, s: Series, h: History, j: Spike, until: int, alike: int, rare: bool) -> Finding[Facts]:
    e, attempt = j.at, h.attempt
    level = excursions.level_in_units(e, h.size, h.logs)
    start, peak, last, top = int(h.step[e.start]), int(h.step[e.peak]), int(h.step[-1]), float(h.value[e.peak])
    end = int(h.step[e.end]) if e.end is not None and e.end < len(h.rows) else None
    censored = end is None and (attempt < int(s.attempt.max()) or last - start <= 2 * j.limit)
    cost_steps, excess = measurements.cost(h.step, h.value, e, level, until)
    facts = Facts(
        s.name, start, peak, end, j.kind, odds(j, end, start, censored), censored, top - level, level, top, e.sigmas, attempt,
        cost_steps, excess, bool(s.alive[h.rows[e.peak]]), int((e.end or len(h.rows)) - e.start), j.why,
        over_highest=measurements.over_highest(h.y, e, BEFORE), falls_at=_falls_at(h.step, h.y, e), half_life=measurements.half_life(h.step, h.y, e),
        residual_offset=_offset(h, e, until), moved_first=measurements.moved_first(run, start, peak, s.interval),
    )  # fmt: skip
    stop = end if end is not None else last
    mark = {"step": peak, "label": f"step {peak}: {top:.4g}".replace("nan", "NaN"), "kind": j.kind}
    band, where = {"from": start, "to": stop, "kind": j.kind}, s.place(run, h.rows[e.peak])
    shown = evidence.window(s, start, stop, mark, band, title=f"{s.tag} around step {peak}", where=where)
    times = (s.clock(h.rows[e.start]), s.clock(h.rows[min(e.end, len(h.rows) - 1)] if e.end is not None else h.rows[-1]))
    against = improves_after(run, start) if end is None and e.peak - e.start >= excursions.LEVEL and np.isfinite(top) else ""
    chance = rare or (facts.over_highest is not None and facts.over_highest < HUGE)
    came_back = end is not None and not 0 < h.first <= e.start < h.first + AT_RESTART
    bearable = came_back and measurements.bearable(s.value[s.usable], level, facts.height, facts.values, chance=chance)
    again = came_back and begins_again(run, start, peak)
    borne = against or alike or bearable or again
    grave = "info" if borne else severity(j, facts.over_highest, at_the_end=censored and facts.values <= FEW)
    title = _title(j, facts) + f", while {against}" * bool(against) + f"; {alike} more like it come and go throughout the run" * bool(alike)
    title += ", where the rate begins again as configured" * again
    return evidence.found(facts, title, (start, stop), grave, shown, key=f"{peak}-attempt{attempt}" if attempt else peak, times=times)


def _title(j: Spike, f: Facts) -> str:
    jump = f"from {f.level:.4g} to {f.top:.4g}".replace("nan", "NaN")
    if j.why == "divergence":
        return f"Loss rises {jump} between steps {f.start} and {f.peak} without a spike, and stays up"
    lasts = f.end - f.start if f.end is not None else None
    back = f", back after {lasts} step{'s' if lasts > 1 else ''}" if lasts is not None else ", and does not come back in this log"
    kept = f"; no instability: {WHY[j.why]}" if j.kind == "not_a_spike" else ""
    at = f"at step {f.peak}" if f.start == f.peak else f"over steps {f.start} to {f.peak}"
    return f"Loss jumps {jump} {at}{back}{kept}"


def _falls_at(step: Any, y: excursions.Floats, e: excursions.Excursion) -> int | None:
    """Where a flat high stretch, entered and left from one value to the next, ends; None where it is no such stretch. An optimizer
    that recovers takes many values; data that end take one."""
    x = y[e.start : e.end + STRETCH if e.end is not None else len(y)] - e.level
    x = x[: np.flatnonzero(~np.isfinite(x))[0]] if not np.isfinite(x).all() else x
    least = jumps.AFTER if len(y) <= jumps.SHORT else STRETCH
    if len(x) < least + 3:
        return None
    last = least + int(np.argmax(x[least - 1 : -3] - x[least:-2]))
    high = median(x[:last])
    flat = high > 0 and float((np.abs(x[:last] - high) < high / 3).mean()) >= FLAT
    over = flat and x[last] < 0.5 * high and median(x[last : last + STRETCH]) < 0.5 * high
    return int(step[e.start + last]) if over else None


def severity(j: Spike, over_highest: float | None, *, at_the_end: bool = False) -> str:
    """critical: it does not come back; info: no instability, or a small one that is over at once; else warning. ``at_the_end``: so few
    values are above the level when the log ends that most spikes would not be over either."""
    if j.kind == "not_a_spike":
        return "warning" if j.why == "data" else "info"
    if j.kind == "non_recovering" and not (at_the_end and not j.why):
        return "critical"
    likely = j.probability >= CLEAR_ODDS
    large = j.at.sigmas >= CLEAR_SIGMA and j.at.height >= CLEAR_SHARE
    huge = j.at.height >= HUGE and (over_highest is None or over_highest >= HUGE / 2)
    clear = (likely and (large or j.kind == "slow")) or huge
    return "warning" if clear or j.why == "nonfinite" else "info"


def odds(j: Spike, end: int | None, start: int, censored: bool) -> dict[str, float]:
    """Probability of each class: near the limit fast and slow are both likely; what is cut off may yet come back."""
    p = min(j.probability, 0.99)
    if j.kind == "not_a_spike":
        return {"fast": 0.05, "slow": 0.05, "non_recovering": 0.05, "not_a_spike": 0.85}
    if end is None:
        stays = 0.5 if censored else 0.9
        return {"fast": p * (1 - stays) / 2, "slow": p * (1 - stays) / 2, "non_recovering": p * stays, "not_a_spike": 1 - p}
    fast = 1 / (1 + (max(end - start, 1) / j.limit) ** 6)
    return {"fast": p * fast, "slow": p * (1 - fast), "non_recovering": 0.0, "not_a_spike": 1 - p}


def _offset(h: History, e: excursions.Excursion, until: int) -> dict[str, Any]:
    """The residual offset in units of the loss, with its 95 % interval."""
    found = measurements.offset(h.finite, e, until)
    for key in ("offset", "low", "high"):
        if found[key] is not None:
            found[key] = float(np.exp(e.level) * np.expm1(found[key])) if h.logs else found[key] * excursions.unit(h.value)
    return found
