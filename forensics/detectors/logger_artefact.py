"""Logger artefact

What it sees
    Values that the logging made and the training never had: a spike, dip or zero from a NaN filter, lines
    without a loss, NaN for ever, a loss in another unit, a gradient norm that was cut before it was logged.

How it decides
    *NaN filter* (Hugging Face Trainer): a logged loss off its level in a row whose gradient norm is not finite,
    or right before exact zeros. The filter's closed formula is inverted: it says how many micro-batches were
    NaN, and whether the value is what the filter would have written. *Dropped field* (Megatron): lines that
    have no loss, which that program writes when it was NaN. *NaN for ever*: the loss is NaN to the end while
    gradient norm or evaluation loss stay finite: one NaN in a running average. *Unit*: the first loss is ln of
    the vocabulary times the accumulation steps, or log base 2 of it. *Clipped norm*: the gradient norm never
    exceeds the clipping threshold and often equals it. *Mean of the run*: a second value at a step is the mean of all
    before it; the series goes without it. *Meter*: at even distances the loss is zero, or off its neighbours by one factor while the gradient
    norm stays where it is, or one term is while the loss stays: a meter that was read empty, or begun anew and divided by a full window, or a
    sum. *Zeros*: two metrics are exactly zero in the same rows, twice or more at whatever distance, and in none other. *File gone*: TensorFlow
    says that its file of events disappeared.

Cannot tell
    Where the gradient norm was not logged and no zeros follow, a filtered NaN looks like a spike of one value.
    Where config names neither accumulation nor logging steps, the number of NaN micro-batches is open. A NaN of
    one of W ranks is W times weaker.

Folklore
    With the filter on, accumulation 8 and every micro-batch NaN from the sixth step of ten on, a loss of 2.0 is
    logged as 127.6 (derived from the Trainer's source, and measured).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import meter_dips, settings
from forensics.run.endings import events
from forensics.run.robust import median
from forensics.run.series import Series, parts, series
from forensics.spikes import excursions, nan_filter_rows
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["metrics"]
CLOSE, AT_CLIP, CLIPPED = 0.04, 1e-3, 0.1  # of chance level; rounding of logs; share of the rows. Not critical (docs/thresholds.md)
BITS = 1 / math.log(2)  # unit: bits a nat


@dataclass(frozen=True)
class Facts(BaseFacts):
    """What the logger made, by its kind."""

    kind: str  # nan_filter, dropped_field, nan_for_ever, times_accumulation, base_2, clipped_norm, run_mean, meter, zeros, file_gone
    step: int | None


@dataclass(frozen=True)
class Filtered(Facts):
    """A value of the Trainer's NaN filter; None where the way it was made cannot be told."""

    value: float
    level: float  # of the loss before
    nans: int | None  # micro-batches that were NaN
    nan_step: int | None
    expected: float | None  # what the filter would have logged
    forever: bool
    accumulation: int
    interval: int


@dataclass(frozen=True)
class Rows(Facts):
    """Rows without a loss, or with a loss that is NaN to the end."""

    last: int | None
    count: int
    finite: list[str] | None = None  # metrics that stay finite meanwhile


@dataclass(frozen=True)
class Unit(Facts):
    """A first loss of `factor` times chance level, in nats."""

    first: float
    chance: float
    factor: float


@dataclass(frozen=True)
class Clipped(Facts):
    clip: float
    share: float  # of the rows at the threshold


def detect(run: Run) -> Iterator[Finding]:
    yield from _file_gone(run)
    yield from _zeros(run)
    s = series(run, "loss.train")
    if s is None:
        if len(meter_dips.often_logged(run)) < meter_dips.PAIR:
            raise CannotTell("loss.train was not logged, nor other metrics often enough")
        return
    for look in (_filtered, _dropped, _poisoned, _unit, _run_mean):
        yield from look(run, s)
    made = (f for x in (s, *parts(run, meter_dips.TERM)[: meter_dips.LOOKED]) for f in _meter(run, x))
    yield from islice(made, 1)
    yield from _clipped(run)


def smallest_effect(run: Run) -> str:
    s = series(run, "loss.train")
    share = excursions.smallest_visible(s.value[s.alive], nan_filter_rows.OFF) if s is not None else None
    return "" if share is None or share > 1 else f"+{share:.1%} in a row whose gradient norm is NaN"  # wide scatter hides them all


def _filtered(run: Run, s: Series) -> Iterator[Finding]:
    for row, match in nan_filter_rows.rows_made(run, s).items():
        step, value = int(s.step[row]), float(s.value[row])
        level = median(s.value[max(row - excursions.LEVEL, 0) : row])
        a = int(settings.number(run, "accumulation") or 1)
        count = "how many micro-batches were NaN cannot be told"
        first = step - s.interval + match.finished + 1 if match else None
        if match is not None:
            how = "all micro-batches from" if match.forever else f"{match.nans} of {a} micro-batches of"
            count = f"{how} step {first} were NaN, which makes {match.expected:.4g}"
        title = f"Loss {value:.4g} at step {step} (level {level:.4g}) is the Trainer's NaN filter, not the training: {count}"
        nans, expected, forever = (match.nans, match.expected, match.forever) if match else (None, None, False)
        facts = Filtered("nan_filter", step, value, level, nans, first, expected, forever, a, s.interval)
        yield _finding(run, s, (row, row), facts, title, "warning", f"logged {value:.4g}")


def _dropped(run: Run, s: Series) -> Iterator[Finding]:
    lines = events(run, "missing_field")
    if not lines:
        return
    steps = [e["step"] for e in lines if e["step"] is not None]
    shown = evidence.text("lines without a loss", [e["text"] for e in lines[:5]], run.where(lines[0]["source"], lines[0]["at"]))
    first, last = (min(steps), max(steps)) if steps else (None, None)
    since = f", from step {first} on" if first is not None else ""
    title = f"{len(lines)} lines have no loss{since}: it was NaN, or the iterations were skipped"
    facts, key = Rows("dropped_field", first, last, len(lines)), f"{first if first is not None else 'lines'}-dropped"
    yield evidence.found(facts, title, (first, last), "warning", shown, key=key, times=(lines[0]["time"], lines[-1]["time"]))


def _poisoned(run: Run, s: Series) -> Iterator[Finding]:
    bad = ~np.isfinite(s.value)
    if not bad.any() or not bad[-1] or bad.all():
        return
    first = int(np.flatnonzero(~bad)[-1]) + 1
    step, last = int(s.step[first]), int(s.step[-1])
    gradient, held_out = series(run, "grad.norm"), series(run, "loss.eval")
    later = gradient.value[gradient.step > step] if gradient is not None else s.value[:0]
    if len(later) and not later.any():
        return  # without a gradient nothing was trained
    alive = [x for x in (gradient, held_out) if x is not None and _stays_finite(x, step, last)]
    if not alive or len(s) - first < 3:
        return
    tag = alive[0].tag
    title = f"Loss is NaN from step {step} to the end while {tag} stays finite: one NaN in a running average"
    facts = Rows("nan_for_ever", step, last, len(s) - first, [x.name for x in alive])
    yield _finding(run, s, (first, len(s) - 1), facts, title, "warning", "NaN from here on")


def _stays_finite(x: Series, first: int, last: int) -> bool:
    later = x.value[(x.step > first) & (x.step <= last)]
    return len(later) >= 3 and bool(np.isfinite(later).all())


def _unit(run: Run, s: Series) -> Iterator[Finding]:
    vocabulary, a = (settings.number(run, "vocab_size") or settings.number(run, "classes"), settings.number(run, "accumulation") or 1)
    start = s.value[np.isfinite(s.value)][:3]
    if not vocabulary or vocabulary < 2 or len(start) < 3 or s.step[0] > max(2 * s.interval, 10):
        return
    first, chance = float(start[0]), math.log(vocabulary)
    for factor, kind, words in (
        (a, "times_accumulation", f"{a:.0f} times ln({vocabulary:.0f}): summed over the accumulation steps, not averaged"),
        (BITS, "base_2", f"log base 2 of {vocabulary:.0f}: bits, not nats"),
    ):
        if factor > 1.2 and abs(first / (factor * chance) - 1) <= CLOSE:
            title = f"The first loss is {first:.4g}, which is {words}"
            facts = Unit(kind, int(s.step[0]), first, chance, factor)
            yield _finding(run, s, (0, 0), facts, title, "info", words)


def _clipped(run: Run) -> Iterator[Finding]:
    g, clip = series(run, "grad.norm"), settings.number(run, "clip")
    if g is None or not clip or clip <= 0:
        return
    x = g.value[np.isfinite(g.value)]
    if len(x) >= 50 and float(x.max()) <= clip * (1 + AT_CLIP) and float((x >= clip * (1 - AT_CLIP)).mean()) >= CLIPPED:
        share = float((x >= clip * (1 - AT_CLIP)).mean())
        title = f"The gradient norm was logged after clipping: never above {clip:g}, at it in {share:.0%} of the rows"
        yield _finding(run, g, (0, len(g) - 1), Clipped("clipped_norm", int(g.step[0]), clip, share), title, "info", "")


def _finding(run: Run, s: Series, rows: tuple[int, int], facts: Facts, title: str, severity: str, label: str) -> Finding[Facts]:
    step, end = int(s.step[rows[0]]), int(s.step[rows[1]])
    marks = [{"step": step, "label": label, "kind": "not_a_spike"}] if label else []
    title_shown, last = f"{s.tag} around step {step}", min(end, step + 50 * s.interval)
    shown = [evidence.window(s, step, last, *marks, title=title_shown, where=s.place(run, rows[0]))]
    g = series(run, "grad.norm")
    if g is not None and s.name != "grad.norm":
        shown.append(evidence.window(g, step, step, title="gradient norm there"))
    return evidence.on_rows(s, rows, facts, title, severity, *shown, key=f"{step}-{facts.kind}")


def _file_gone(run: Run) -> Iterator[Finding]:
    """What TensorFlow says of a file of events that was removed while it wrote."""
    lines = events(run, "curves_lost")
    for e in lines[:1]:
        when = f" after step {e['step']}" if e["step"] is not None else ""
        title = f"TensorBoard's file of events was gone while the run wrote into it{when}: its curves are not those of the run"
        shown = evidence.text("what the log says", [str(x["text"])[:300] for x in lines[:3]], run.where(e["source"], e["at"]))
        yield evidence.found(Facts("file_gone", e["step"]), title, (e["step"], e["step"]), "info", shown, key="file_gone")


def _run_mean(run: Run, s: Series) -> Iterator[Finding]:
    for step, value, at in s.summaries[:1]:
        own = float(s.value[s.step == step][-1])
        title = f"{s.tag} is logged twice at step {step}: {value:.6g} is the mean over the run, {own:.6g} the step's own"
        shown = evidence.text("the second value", [f"step {step}: {value:.6g}"], run.where(s.source[-1], at))
        yield evidence.found(Facts("run_mean", step), title, (step, step), "info", shown, key=f"{step}-run_mean")


def _zeros(run: Run) -> Iterator[Finding]:
    """Metrics that are exactly zero in the same rows and in none other."""
    found = meter_dips.zero_at_once(run)
    if not found:
        return
    s, rows = found[0]
    steps = [int(t) for t in s.step[rows]]
    title = f"{' and '.join(x.tag for x, _ in found[:3])} read exactly zero at the same {len(rows)} steps ({', '.join(map(str, steps[:3]))}) and at no other, between neighbours of one size"
    facts = Rows("zeros", steps[0], steps[-1], len(rows), [x.name for x, _ in found])
    yield _finding(run, s, (int(rows[0]), int(rows[-1])), facts, title, "warning", "0")


def _meter(run: Run, s: Series) -> Iterator[Finding]:
    if found := meter_dips.dips(run, s):
        first, last = int(found.rows[0]), int(found.rows[-1])
        times = f"{found.factor:.3g} times its neighbours" if found.factor > 1 else f"{found.factor:.2g} of its neighbours"
        reads = f"reads {times}" if found.factor else f"is exactly zero, between values of {found.level:.3g},"
        title = f"{s.tag} {reads} every {found.apart} steps from step {s.step[first]} on ({len(found.rows)} times)"
        facts = Rows("meter", int(s.step[first]), int(s.step[last]), len(found.rows))
        yield _finding(run, s, (first, last), facts, title, "warning", f"{s.value[first]:.4g}")
