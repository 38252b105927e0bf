"""Odd metric

What it sees
    A metric that no other check looks at (a term of a loss, the norm of a layer's gradient or weights, the spread or the largest value of a
    logged histogram, an activation's mean, a metric of this team's own) and that stops being a number, freezes, jumps to another level for
    good, or grows without bound; norms of weights that keep growing; a term of a loss that stands still while the loss falls; answers that
    are cut off: a lead to follow, not a cause. A share of answers above one is a warning: it was counted wrong.

How it decides
    Only metrics that went up and down before count: schedules and counters do not. NaN or infinity from a step on to the
    end, after ten finite values. Frozen: the last fifth of the values, and ten at least, are all equal, for five times as
    long as ever before: a value amid the earlier ones, or far from those right before. Jump: of 150 stretches of the run,
    five before and three after stand clear of each other (``forensics.spikes.jumps``), all later ones stay there, at twice
    the level or half of it, and that is not the way that the metric went before. Growth: the last level is a hundred times
    the highest of the first half. A norm of weights keeps growing where its level doubles from the first tenth of the run to the last, and at least
    as much in the second half as in the first. A term of a loss is left behind where it was less than a tenth of the loss and moves by less than a
    tenth of itself while the loss halves; penalties are left out. Answers are cut off where a quarter of them are at the end, or their mean length is
    95 % of the longest that config allows. The first tenth of a run is start-up. Five are told at most, the earliest first; none from where the loss
    itself is not a number.

Cannot tell
    With fewer than 20 values, or where every metric has a check of its own.

Folklore
    "Chase every anomaly": S. Bekman, Machine Learning Engineering Open Book. Terms of a loss that differ by decades need weights, or quantities
    without units: the gradient of the largest drowns the others (Wang, Teng, Perdikaris, arXiv:2001.04536). Answers that do not end are taught to: a
    second stage that trains on their ends alone (Hermes 4), or a longer limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import completions, distributions, loss_terms
from forensics.run.impossible_shares import above_one
from forensics.run.inputs import dead_from
from forensics.run.robust import median
from forensics.run.series import Floats, Series, names, parts
from forensics.spikes import excursions, jumps
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["metrics"]
LEAST, LOOKED = 20, 400  # bound: half of them make two levels; tags of experts and layers are many
SHOWN = 5  # unit: leads that a page tells
ENDS, BEFORE, AFTER = 3, 10, 10  # bound: values that are not finite to the end, finite before, equal at the end
FIFTH, START_UP = 0.2, 0.1  # share of the values; as the plateau detector has it
TURNS = 0.2  # statistical: share of steps that turn back; two of three do in white noise, none in a schedule
TIMES = 5  # bound: as often as the longest such row before; measures of few samples repeat themselves
APART = 0.2  # of the range; a metric that comes near its bound and stays there is done, not frozen
STRETCHES = 150  # bound: as many as the gaps of short logs are measured for
LEVEL = float(np.log(2))  # unit: twice or half
GROWTH = 100.0  # unit: two decades in half a run; no polynomial below the seventh degree does that
DOUBLED = 2.0  # unit: twice the norm; steps in no direction alone make it grow as their root, less in the second half than in the first
SLACK = 1.1  # unit: a tenth, as the middle of few values is off
WEIGHTS = ("param.norm", "param.norm_layer")
WATCHED = ("loss.aux", "loss.part", *WEIGHTS, "grad.norm_layer", "upd.ratio", "upd.norm")
WORDS = {
    "nan": "is not finite",
    "frozen": "freezes",
    "jump": "jumps",
    "growth": "grows without bound",
    "grows on": "has doubled and grows no slower",
    "left behind": "stands still while the loss falls",
    "cut off": "says that answers are cut off",
}
SMALLEST_EFFECT = f"a lasting change to twice or half its level, {ENDS} NaN or {AFTER} equal values at the end"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """What the metric does, and from which step on."""

    tag: str
    what: str  # nan, frozen, jump, growth, grows on, left behind, cut off, above one
    step: int
    before: float  # level
    after: float


def detect(run: Run) -> Iterator[Finding]:
    if (wrong := above_one(run)) is not None:
        s, row = wrong
        step, value = int(s.step[row]), float(s.value[row])
        title = f"{s.tag} is {value:.4g} at step {step}: no share of answers is above one"
        shown = evidence.window(s, step, step, title=f"{s.tag} around step {step}", where=s.place(run, row))
        yield evidence.found(Facts(s.tag, "above one", step, 1.0, value), title, (step, step), "warning", shown, key=f"{step}-{s.tag}")
    nameless = [name for name in names(run, LEAST) if name.startswith("other/")][:LOOKED]
    logged = [p for name in (*WATCHED, *nameless) for p in parts(run, name)[:LOOKED]]
    logged += [*distributions.spreads(run)[:LOOKED], *distributions.extremes(run)[:LOOKED]]
    watched = [s for s in logged if s.alive.sum() >= LEAST]
    answers = completions.cut_off(run, LEAST)
    if not watched and answers is None:
        raise CannotTell(f"every metric of {LEAST} values or more has a check of its own")
    until = dead_from(run)
    found = [(s, *odd) for s in watched if (odd := _odd(s)) is not None]
    found += [(s, row, "left behind", before, after) for s, row, before, after in loss_terms.left_behind(run, LEAST)]
    found += [(answers[0], answers[1], "cut off", *answers[2:])] if answers is not None else []
    found = [f for f in found if int(f[0].step[f[1]]) < until]
    for s, row, what, before, after in sorted(found, key=lambda f: (int(f[0].step[f[1]]), f[0].tag))[:SHOWN]:
        step, last = int(s.step[row]), int(s.step[-1])
        title = f"{s.tag} {WORDS[what]} at step {step}: {before:.4g} before, {after:.4g} after"
        mark = {"step": step, "label": f"step {step}", "kind": "event"}
        shown = evidence.window(s, step, step, mark, title=f"{s.tag} around step {step}", where=s.place(run, row))
        facts = Facts(s.tag, what, step, before, after)
        yield evidence.found(facts, title, (step, last), "info", shown, key=f"{step}-{s.tag}", times=(s.clock(row), None))


def _odd(s: Series) -> tuple[int, str, float, float] | None:
    """(row, what, level before, level after) of the first oddity of a metric that goes up and down."""
    rows = np.flatnonzero(s.alive)
    x, finite = s.value[rows], np.isfinite(s.value[rows])
    last = int(np.flatnonzero(finite)[-1]) if finite.any() else -1
    if last >= BEFORE and len(x) - 1 - last >= ENDS:
        return int(rows[last + 1]), "nan", median(x[: last + 1][finite[: last + 1]][-BEFORE:]), float(x[-1])
    rows, x = rows[finite], x[finite]
    if len(x) < LEAST or not np.ptp(x):
        return None
    found = _frozen(x) or _moved(x) or (_grows_on(x) if s.name in WEIGHTS else None)
    return (int(rows[found[0]]), *found[1:]) if found is not None and found[0] >= START_UP * len(x) else None


def _turns(x: Floats) -> bool:
    """Whether values go up and down, as measurements do."""
    d = np.diff(x)
    return len(d) > 1 and float((d[1:] * d[:-1] < 0).mean()) >= TURNS


def _frozen(x: Floats) -> tuple[int, str, float, float] | None:
    at = int(np.flatnonzero(x != x[-1])[-1]) + 1
    edges = np.flatnonzero(np.diff(x[:at], prepend=np.nan, append=np.nan) != 0)
    usual = max(AFTER, FIFTH * len(x), TIMES * int(np.diff(edges).max(initial=0)))
    if len(x) - at < usual or at < BEFORE or not _turns(x[:at]):
        return None
    before = median(x[at - BEFORE // 2 : at])
    inside = x[:at].min() < x[-1] < x[:at].max()
    return (at, "frozen", before, float(x[-1])) if inside or abs(before - x[-1]) >= APART * np.ptp(x) else None


def _grows_on(x: Floats) -> tuple[int, str, float, float] | None:
    """Growth that does not slow down."""
    tenth, half = max(len(x) // 10, 1), len(x) // 2
    first, last = median(x[:tenth]), median(x[-tenth:])
    middle = median(x[half - tenth // 2 : half + tenth // 2 + 1])
    if first <= 0 or last < DOUBLED * first or not 0 < middle - first <= SLACK * (last - middle):
        return None
    return int(np.argmax(x >= DOUBLED * first)), "grows on", first, last


def _moved(x: Floats) -> tuple[int, str, float, float] | None:
    """A lasting jump to another level, or growth."""
    width = -(-len(x) // STRETCHES)
    m = np.median(x[: len(x) // width * width].reshape(-1, width), axis=1)
    if len(m) < LEAST or not _turns(m):
        return None
    half = float(np.abs(m[: len(m) // 2]).max())
    if half > 0 and abs(median(m[-jumps.AFTER :])) >= GROWTH * half:
        return int(np.argmax(np.abs(m) > 2 * half)) * width, "growth", half, median(m[-jumps.AFTER :])
    y, logs = excursions.scaled(m)
    least = LEVEL if logs else 1.0
    for side in (y, -y):
        for j in jumps.jumps(side):
            if _turns(m[: j.at]) and _stays(side, j, least):
                return j.at * width, "jump", median(m[j.at - jumps.BEFORE : j.at]), median(m[j.at :])
    return None


def _stays(side: Floats, j: jumps.Jump, least: float) -> bool:
    """Whether all later stretches are on the far side of a jump, which is not the way that the metric went before: what falls, falls."""
    after, went, usual = side[j.at :], j.level - median(side[: jumps.BEFORE]), max(j.level, median(side[: j.at]))
    far = j.gap >= least / 2 and median(after) - usual >= least and float(after.min()) > usual + j.gap / 2
    return far and went <= least / 2
