"""The run's timeline: lanes of its attempts, stacked panels on one axis of steps, and the clock beside the steps."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any

from markupsafe import Markup

from reports import first_screen, text_format
from reports.chart import Curve, Look, band_name, constant, panel
from reports.labels import Label, pct, place, tag, text
from reports.scales import Point, Scale, points, ticks, value, whole

FIRST = ("loss.train", "loss.eval", "grad.norm", "lr", "loss_scale")  # then throughput, memory, the rest
HEIGHTS = {"loss.train": 180, "loss.eval": 140, "grad.norm": 120}
OPEN_PANELS = 8
RATIO = 5  # unit: below it a straight axis shows the same, and is read faster
FEW = 12  # more bands or marks than this are drawn over the first panel only
Case = dict[str, Any]


def domain(case: Case) -> Scale:
    """The steps that the charts span."""
    seen = [value(s) for s in text_format.axis(case["run"])]
    seen += [p[0] for s in case["timeline"]["series"] for raw in s.get("lives") or [] if isinstance(raw, dict)
             for pts in [raw.get("points") or []] if isinstance(pts, list) for p in points(pts[:1] + pts[-1:])]  # fmt: skip
    seen = [s for s in seen if math.isfinite(s)]
    lo, hi = (min(seen), max(seen)) if seen else (0.0, 1.0)
    return Scale(lo, hi if hi > lo else lo + 1)


def attempts(series: dict[str, Any]) -> list[tuple[int, list[Point]]]:
    found = [attempt for attempt in series.get("lives") or [] if isinstance(attempt, dict)]
    return [(whole(attempt.get("attempt")), points(attempt.get("points"))) for attempt in found]


def abandoned_from(case: Case) -> dict[int, float]:
    """For each attempt the step from which a later attempt did the work again (infinite where none did)."""
    first: dict[int, float] = {}
    for a in case["run"]["attempts"]:
        start = value((a.get("steps") or [None])[0])
        if math.isfinite(start):
            first[whole(a.get("index"))] = start
    if not first:
        for series in case["timeline"]["series"]:
            for attempt, pts in attempts(series):
                if pts:
                    first[attempt] = min(first.get(attempt, math.inf), pts[0][0])
    return {a: min((s for b, s in first.items() if b > a), default=math.inf) for a in first}


def curves(series: dict[str, Any], cut: dict[int, float], kind: str = "run") -> list[Curve]:
    """The attempts of a series as curves: what stands, and beneath it what a later attempt replaced."""
    out, told = [], attempts(series)
    for attempt, pts in told:
        later = any(a > attempt and p for a, p in told)  # else this metric knows of no second telling
        end = cut.get(attempt, math.inf) if later else math.inf
        out.append(Curve([p for p in pts if p[0] < end], kind))
        out.append(Curve([p for p in pts if p[0] >= end], "old"))
    return [c for c in out if c.points]


def logarithmic(series: dict[str, Any], drawn: list[Curve]) -> bool:
    """Whether the values span so much that a scale of ratios shows more than a straight one."""
    seen = [v for c in drawn for _, v in c.points if math.isfinite(v)]
    return series.get("scale") == "log" and bool(seen) and min(seen) > 0 and max(seen) / min(seen) >= RATIO


def order(case: Case) -> list[int]:
    """The series, the telling ones first."""
    everything = case["timeline"]["series"]
    return sorted(range(len(everything)), key=lambda i: (_rank(str(everything[i].get("metric"))), i))


def panels(case: Case, x: Scale, left_out: Container[int] = ()) -> list[dict[str, Any]]:
    """One panel a series, the telling ones first; evaluation loss shares the panel of the training loss."""
    cut, everything = abandoned_from(case), case["timeline"]["series"]
    with_eval = _eval_beside_train(everything)
    out: list[dict[str, Any]] = []
    for i in order(case):
        s, members = everything[i], [i]
        if i == with_eval[1] or i in left_out:
            continue
        drawn = curves(s, cut)
        if i == with_eval[0]:
            members.append(with_eval[1])
            drawn += [c for c in curves(everything[with_eval[1]], cut, "eval") if c.kind == "eval"]
        if not drawn:
            continue
        name, folded = str(s.get("metric", "")), len(out) >= OPEN_PANELS
        bands = [] if out and len(case["timeline"]["bands"]) > FEW else case["timeline"]["bands"]
        marks = [m for m in case["timeline"]["marks"] if m.get("kind") != "checkpoint"]
        log = logarithmic(s, drawn)
        height = 44 if constant(drawn) else HEIGHTS.get(name, 90)
        out.append({
            "title": text_format.metric(name), "tag": s.get("tag"), "unit": s.get("unit"), "log": log, "members": members,
            "height": height, "folded": folded, "eval": len(members) > 1,
            "svg": panel(drawn, x, Look(
                describe(name, drawn), height, log, 120 if folded else 500, bands, [] if out and len(marks) > FEW else marks, 0 if out else 2,
            )),
            "nan": any(not math.isfinite(v) for c in drawn for _, v in c.points),
        })  # fmt: skip
    return out


def describe(name: str, drawn: list[Curve]) -> str:
    """The chart in a sentence, for those who do not see it."""
    finite = [p for c in drawn if c.kind != "old" for p in c.points if math.isfinite(p[1])]
    if not finite:
        return f"{text_format.metric(name)}: no finite value"
    low, high = min(finite, key=lambda p: p[1]), max(finite, key=lambda p: p[1])
    first, last = finite[0], finite[-1]
    ends = f"from {_at(first)} to {_at(last)}"
    return f"{text_format.metric(name)} {ends}; lowest {_at(low)}, highest {_at(high)}"


def _at(point: Point) -> str:
    return f"{text_format.number(point[1])} at step {text_format.number(int(point[0]))}"


def lanes(case: Case, x: Scale) -> Markup:
    """The attempts of the run, one below the other, with checkpoints as ticks; what was done again is grey."""
    attempts, cut = case["run"]["attempts"][:30], abandoned_from(case)
    spans = [(a, value((a.get("steps") or [None])[0]), value((a.get("steps") or [None])[-1])) for a in attempts]
    spans = [s for s in spans if math.isfinite(s[1]) and math.isfinite(s[2])]
    room = 28 if len(spans) <= 5 else 10 if len(spans) <= 12 else 6
    height = room * len(spans) + 6 + (30 if replayed(case) else 0)
    out = [tag('<svg class="plot lanes" width="100%" height="{}" role="img" aria-label="{}">', height, attempts_text(case))]
    for row, (a, first, last) in enumerate(spans):
        y = room * (row + 1)
        end = min(max(cut.get(whole(a.get("index")), math.inf), first), last)
        out.append(tag('<line class="life" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', pct(x(first)), pct(x(end)), y))
        out.append(tag('<line class="life old" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', pct(x(end)), pct(x(last)), y))
        out.append(tag('<line class="stop" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>', pct(x(last)), y - 5, y + 5))
        if room == 28:
            since = a.get("started")
            clock = f", {text_format.day(since)} {since[11:16]} UTC" if text_format.is_time(since) else ""
            said = f"attempt {a.get('index', row)}{clock}"
            out += [text(label, y - 7) for label in place([Label(x(first), said, "")], 1)]
    if again := replayed(case):
        y = height - 7
        out.append(tag('<line class="life replay" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', pct(x(again[0])), pct(x(again[1])), y))
        out += [text(label, y - 7) for label in place([Label(x(again[0]), "replayed", "")], 1)]
    for m in case["timeline"]["marks"]:
        at = value(m.get("step"))
        row = max((i for i, (_, first, last) in enumerate(spans) if first <= at <= last), default=-1)
        if m.get("kind") == "checkpoint" and row >= 0:
            y = room * (row + 1)
            out.append(tag('<line class="checkpoint" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>', pct(x(at)), y - 5, y + 5))
    return Markup("").join([*out, Markup("</svg>")])


def replayed(case: Case) -> tuple[float, float] | None:
    """The steps that a replay ran again, from its checkpoint on."""
    replay = case["replay"] or {}
    begun, steps = replay.get("from"), replay.get("steps")
    known = [begun.get("step") if isinstance(begun, dict) else None, *(steps if isinstance(steps, list) else ())]
    ends = [v for v in map(value, known) if math.isfinite(v)]
    return (min(ends), max(ends)) if len(ends) > 1 else None


def band_names(case: Case) -> list[str]:
    """What the bands of the timeline are called, for those that have a beginning."""
    return [band_name(b) for b in case["timeline"]["bands"] if isinstance(b.get("from"), (int, float))]


def attempts_text(case: Case) -> str:
    parts = [f"attempt {a.get('index')}: {text_format.steps(a.get('steps')) or 'no steps'}" for a in case["run"]["attempts"][:30]]
    return "Attempts: " + "; ".join(parts) if parts else "The run's steps"


def axis(case: Case, x: Scale, clock: bool = True, count: int = 8) -> Markup:
    """Step numbers, and beneath them the wall clock of the surviving attempt and its days; on a phone every second."""
    at = _ends([t for t in ticks(x.lo, x.hi, count) if t == int(t)], x, 0.9 / count)
    times = [first_screen.times(case, t)[-1:] if clock else [] for t in at]
    out = [tag('<svg class="plot axis" width="100%" height="{}" aria-hidden="true">', 50 if any(times) else 20)]
    out.append(tag('<text class="yl" x="-7" y="14">{}</text>', text_format.axis_unit(case["run"])))
    if any(times):
        out.append(Markup('<text class="yl" x="-7" y="30">UTC</text>'))
    stamps = [stamp for found in times for _, stamp in found]
    to = 16 if len({stamp[:16] for stamp in stamps}) == len(stamps) else 19  # seconds where minutes repeat
    day = ""
    for i, (step, found) in enumerate(zip(at, times, strict=True)):
        edge = "first" if x(step) < 0.03 else "last" if x(step) > 0.97 else ""
        classes = f"{edge}{' wide' if i % 2 and i + 1 < len(at) else ''}"
        texts = [_step(step)]
        for _, stamp in found if to == 16 or not i % 2 else []:
            texts += [stamp[11:to]] + ([text_format.day(stamp)] if text_format.day(stamp) != day else [])
            day = text_format.day(stamp)
        for row, each in enumerate(texts):
            out.append(tag('<text class="xl {}" x="{}" y="{}">{}</text>', classes, pct(x(step)), 14 + 16 * row, each))
    return Markup("").join([*out, Markup("</svg>")])


def _ends(at: list[float], x: Scale, apart: float) -> list[float]:
    """Ticks with the first and the last step, where these do not crowd the ones beside them; ``apart``: of the width."""
    first, last = math.ceil(x.lo), math.floor(x.hi)
    if at and last - at[-1] > apart * (x.hi - x.lo):
        at = [*at, last]
    return [first, *at] if at and at[0] - first > apart * (x.hi - x.lo) else at


def _step(step: float) -> str:
    return f"{step / 1e6:g}M" if step >= 1e6 else f"{int(step)}"


def _rank(metric: str) -> int:
    if metric in FIRST:
        return FIRST.index(metric)
    families = ("tput.", "time.", "mem.", "mfu", "attn.", "skip.", "loss", "acc.", "ppl.", "param.", "other/")
    return len(FIRST) + next((i for i, f in enumerate(families) if metric.startswith(f)), len(families) - 2)


def _eval_beside_train(everything: list[dict[str, Any]]) -> tuple[int, int]:
    """Indices of the training loss and of an evaluation loss in the same unit; (-1, -1) where there is no such pair."""
    names = [(s.get("metric"), s.get("unit")) for s in everything]
    for i, (name, unit) in enumerate(names):
        if name == "loss.train" and ("loss.eval", unit) in names:
            return i, names.index(("loss.eval", unit))
    return -1, -1
