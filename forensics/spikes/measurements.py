"""What can be measured at a spike: how long half of it lasts, what stays of it, what it cost, what moved first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import parts, series
from forensics.spikes.excursions import LEVEL, Excursion, Floats, middle_of_three
from forensics.spikes.medians import rolling_median
from forensics.spikes.tops import first_at_most
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

Ints = NDArray[np.int64]

WATCHED = {
    "grad.norm": "gradient norm", "lr": "learning rate", "loss_scale": "loss scale", "update.norm": "update norm", "param.norm": "parameter norm",
    "attn.max_logit": "attention logit", "tput.tokens": "throughput", "time.step": "step time", "batch.size": "batch size",
}  # fmt: skip
SCHEDULED = ("lr", "loss_scale", "batch.size")  # noiseless: any step of a fifth is a move
AHEAD, USUAL, MOVED = 20, 60, 6.0  # values; sigmas: of 20 values in nine metrics chance has one there once in three million
AFTER = 50  # values that make the level afterwards; statistical: a median of 50 is off by 0.18 sigma
SURE = 1.96  # statistical: sigmas of a 95 % interval
EVALUATION = lazy_re(r"(?i)(^|[^a-z])(eval|val|valid|validation|test|dev)([^a-z]|$)")
MOST_SOURCES = 64  # bound: losses of data sources that are looked at for each spike; mixtures have fewer
TRIFLE = 0.005  # of all that the loss had fallen; measured: one of a healthy run took back 0.26 %, those after a lost state 0.76 %
# of the fall and of the run; measured: of 809 real runs twelve have no graver spikes, ten that may be called well and two with other findings; of 1,366 made
# ones a sound one and two with a fault
HALF, TENTH = 0.5, 0.1


def half_life(step: Ints, y: Floats, e: Excursion) -> int | None:
    """Steps from the peak until half of the height is gone; None where it never is."""
    low = first_at_most(y, e.peak + 1, e.level + 0.5 * e.height)
    return int(step[low] - step[e.peak]) if low is not None else None


def offset(y: Floats, e: Excursion, until: int) -> dict[str, Any]:
    """How far the level after the spike stands from the one before, in units of ``scaled``, with its 95 % interval.

    The level afterwards is the median of up to 50 values after the end (of the last 15 where it never ends) and before
    the next spike. A loss that was falling goes on falling, so a small negative offset is nothing.
    """
    after = y[max(e.end, e.start + 1) : until][:AFTER] if e.end is not None else y[e.start : until][-LEVEL:]
    if len(after) < 3 or not np.isfinite(after).all():
        return {"offset": None, "low": None, "high": None, "values": len(after)}
    middle = median(after)
    spread = max(robust_sigma(after, middle), e.sigma)
    error = float(np.hypot(error_of_median(spread, len(after)), error_of_median(e.sigma, LEVEL)))
    apart = middle - e.level
    return {"offset": apart, "low": apart - SURE * error, "high": apart + SURE * error, "values": len(after)}


def cost(step: Ints, value: Floats, e: Excursion, level: float, until: int) -> tuple[int, float]:
    """(steps until the loss has regained its level from before, excess loss summed over the steps of the spike)."""
    regained = np.flatnonzero(middle_of_three(value[e.peak + 1 : until]) <= level)
    back = e.peak + 1 + int(regained[0]) if len(regained) else until - 1
    stop = max(e.end if e.end is not None else until, e.start + 1)
    excess = np.clip(value[e.start : stop] - level, 0, None)
    width = np.diff(step[max(e.start - 1, 0) : stop])
    width = width if len(width) == len(excess) else np.ones(len(excess), np.int64)
    known = np.isfinite(excess)
    return int(step[max(back, e.start)] - step[e.start]), float((excess * width)[known].sum())


def moved_first(run: Run, start: int, peak: int, interval: int) -> dict[str, Any]:
    """Which other metric left its usual range, from 20 logged values before the spike up to its peak.

    ``lead`` is in steps, positive where it moved before the loss; no lead below ``bound``, the coarser of the two
    logging intervals, is distinguishable from none.
    """
    looked: list[str] = []
    moves: list[dict[str, Any]] = []
    for name, words in WATCHED.items():
        s = series(run, name)
        if s is None or len(s) < 12:
            continue
        looked.append(name)
        rows = s.alive_between(start - (AHEAD + USUAL) * max(s.interval, interval), peak)
        near = rows[s.step[rows] >= start - AHEAD * max(s.interval, interval)]
        usual = s.value[rows[: len(rows) - len(near)]]
        at = _departure(usual[np.isfinite(usual)], s.value[near], name in SCHEDULED)
        if at is not None:
            step = int(s.step[near[at]])
            moves.append({"metric": name, "what": words, "step": step, "lead": start - step, "bound": max(interval, s.interval)})
    moves.sort(key=lambda m: -m["lead"])
    first = moves[0] if moves and moves[0]["lead"] >= -moves[0]["bound"] else None
    found = first or {"metric": None, "step": None, "lead": None, "bound": interval}
    return {
        "first": found["metric"], "step": found["step"], "lead": found["lead"], "bound": found["bound"],
        "certain": bool(first and first["lead"] > first["bound"]), "looked": looked, "moves": moves,
        "source": source_first(run, start, peak, interval),
    }  # fmt: skip


def source_first(run: Run, start: int, peak: int, interval: int) -> dict[str, Any] | None:
    """Which data source's own loss left its usual range first, from a log with a loss for each source or data set.

    None where there are fewer than two such losses. ``alone``: no other left it up to the peak. Of several that leave at
    the same step the one that leaves furthest, in units of its noise, is named; ``rises`` lists them all.
    """
    sources = [s for s in parts(run, "loss.part") if len(s) >= 12 and not EVALUATION.search(s.tag)][:MOST_SOURCES]
    if len(sources) < 2:
        return None
    rises: list[dict[str, Any]] = []
    for s in sources:
        rows = np.flatnonzero(s.alive & (s.step <= peak))
        near = rows[s.step[rows] >= start - max(s.interval, interval) + 1]
        usual = s.value[rows[: len(rows) - len(near)]][-USUAL:]
        usual = usual[np.isfinite(usual)]
        at = _departure(usual, s.value[near], False)
        if at is None:
            continue
        top = float(np.nanmax(s.value[near])) if np.isfinite(s.value[near]).any() else np.inf
        noise = max(robust_sigma(usual), 1e-12)
        if top > np.median(usual):  # upwards
            rises.append({"tag": s.tag, "step": int(s.step[near[at]]), "noises": (top - median(usual)) / noise})
    rises.sort(key=lambda r: (r["step"], -r["noises"]))
    if not rises:
        return None
    return {**rises[0], "alone": len(rises) == 1, "looked": len(sources), "rises": rises[:8]}


def _departure(usual: Floats, ahead: Floats, scheduled: bool) -> int | None:
    """Index of the first value of `ahead` outside the usual range of the values before it."""
    if len(usual) < 8 or not len(ahead):
        return None
    logs = bool((usual > 0).all())
    x, y = (np.log(usual), np.log(np.where(ahead > 0, ahead, np.nan))) if logs else (usual, ahead)
    if scheduled:
        before = np.concatenate([x[-1:], y[:-1]])
        out = np.abs(y - before) > (0.2 if logs else 0.2 * max(float(np.abs(x).max()), 1e-12))
    else:
        middle = float(rolling_median(x, LEVEL)[-1])
        noise = max(robust_sigma(x), 0.01 if logs else 1e-12)
        out = np.abs(y - middle) > MOVED * noise
    hits = np.flatnonzero(out | ~np.isfinite(y))
    return int(hits[0]) if len(hits) else None


def bearable(values: Floats, level: float, height: float, lasts: int, *, chance: bool) -> bool:
    """Whether a spike that came back cost little: for less than a tenth of the run it took back less than half of what the loss had fallen, if it may
    be chance, or a single hard sample; else hardly anything, for near zero small is large as a share."""
    fall = (median(values[:3]) if len(values) else level) - level
    return bool(height < (HALF if chance else TRIFLE) * fall and lasts < TENTH * len(values))


def over_highest(y: Floats, e: Excursion, values: int) -> float | None:
    """Height over the highest of so many values before it, in units of ln; None where it is not finite or nothing is before it. Some
    losses scatter over factors of a hundred: what is far above their level is still no event."""
    before = y[max(e.start - values, 0) : e.start]
    before = before[np.isfinite(before)]
    return float(y[e.peak] - before.max()) if len(before) and np.isfinite(y[e.peak]) else None
