"""The case as one HTML page: no request, readable without script, printable, fit to mail.

Everything that the case says is text: autoescape is on, control and reordering characters are spelled out, the JSON is
embedded through ``tojson``, and the page's own policy allows only the style and the scripts of this package, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from markupsafe import Markup

from reports import chart, markdown, replay, saves, summary, timeline, words
from reports.labels import pct, tag
from reports.shape import complete, plain

HERE = Path(__file__).parent
VENDOR = HERE / "vendor" / "uplot-1.6.32"
OPEN_FINDINGS = 12  # shown in full; the rest is one line each, folded
MANY = 8  # folded findings in a row that share one fold
DETAILED_CHARTS = 60
SAID = {"metric", "start", "peak", "end", "class", "alive", "attempt", "step", "first", "last", "values", "at_resume"}
PLACES = ("answer", "causes", "timeline", "symptoms", "replay", "checkpoints", "clear", "not-known", "read", "case", "summary")


def render(case: dict[str, Any]) -> str:
    """The page, byte for byte the same for the same case."""
    full = complete(case)
    x = timeline.domain(full)
    anchors = _anchors(full)
    panels = timeline.panels(full, x)
    style = (VENDOR / "uPlot.min.css").read_text("utf-8") + (HERE / "templates" / "report.css").read_text("utf-8")
    scripts = [(VENDOR / "uPlot.iife.min.js").read_text("utf-8"), (HERE / "templates" / "report.js").read_text("utf-8")]
    page = environment().get_template("report.html")
    first, more = panels[: timeline.OPEN_PANELS], panels[timeline.OPEN_PANELS :]
    return page.render(
        case=full, embedded=plain(case), run=full["run"], s=summary, saves=saves, anchors=anchors, top=summary.top(full),
        causes=_causes(full), symptoms=_symptoms(full, anchors), kinds=_kinds(full), arms=replay.arms(full), replayed=replay,
        hero=timeline.hero(full, x), panels=first, more_panels=more, lanes=timeline.lanes(full, x), domain=x,
        axis=timeline.axis(full, x), short_axis=timeline.axis(full, x, clock=False, count=4),
        markdown=markdown.brief(full), style=Markup(style), scripts=[Markup(s) for s in scripts],
        style_hash=policy_hash(style), script_hashes=[policy_hash(s) for s in scripts],
    )  # fmt: skip


@cache
def environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=ChainableUndefined,
        finalize=_shown,
    )
    env.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    env.tests["command"] = words.is_command
    env.filters.update(
        rich=rich, num=words.number, db=words.decibans, pct=words.percent, sure=words.certainty, size=words.bytes_,
        steps=words.steps, moment=words.moment, period=words.period, plural=words.plural, metric=words.metric,
        spike=lambda kind: words.SPIKES.get(kind, kind), clip=_clip, plain_facts=_plain_facts,
    )  # fmt: skip
    return env


def _plain_facts(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    """Single numbers and words that the title and the tables do not already say."""
    return [(k, v) for k, v in facts.items() if k not in SAID and v not in (None, "") and not isinstance(v, (dict, list, bool))]


def _shown(x: Any) -> Any:
    if x is None:
        return ""
    return words.visible(x) if isinstance(x, str) and not isinstance(x, Markup) else x


def _clip(text: Any, limit: int = 2000) -> str:
    line = words.visible(text)
    return line if len(line) <= limit else f"{line[:limit]} \u2026 ({len(line) - limit} more characters)"


def policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def rich(text: Any) -> Markup:
    """A sentence of the case; what stands between backticks becomes code, everything is escaped."""
    parts = words.visible("" if text is None else text).split("`")
    if len(parts) % 2 == 0:  # a lone backtick is a character
        return Markup.escape("`".join(parts))
    return Markup("").join(
        Markup("<code>{}</code>").format(p) if i % 2 else Markup.escape(p) for i, p in enumerate(parts)
    )


def _anchors(case: dict[str, Any]) -> dict[str, str]:
    """The anchor of each finding and cause: its id, made fit for an address and unique on the page."""
    taken, out = set(PLACES), {}
    for key in [str(x.get("id")) for x in case["findings"] + case["hypotheses"]]:
        if key in out:
            continue
        base = re.sub(r"[^A-Za-z0-9_.-]+", "-", key)[:80].strip("-") or "item"
        anchor, n = base, 2
        while anchor in taken:
            anchor, n = f"{base}-{n}", n + 1
        taken.add(anchor)
        out[key] = anchor
    return out


def _causes(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Each cause with its ledger: one axis for all, every bar starting where the last one ended."""
    sums = [0.0]
    for h in case["hypotheses"]:
        total = 0.0
        for c in h["clues"]:
            total += _weight(c)
            sums.append(total)
    sums += [s for h in case["hypotheses"] if (s := chart.value(h.get("score"))) == s]
    lo, hi = min(sums), max(sums)
    pad = max((hi - lo) * 0.06, 1.0)
    x = chart.Scale(lo - pad, hi + pad)
    marks = chart.ticks(x.lo, x.hi, 5)
    scale = Markup("").join(
        tag('<text class="wl" x="{}" y="13">{}</text>', pct(x(m)), words.decibans(m)) for m in marks
    )
    head = tag('<svg class="wf" width="100%" height="18" aria-hidden="true">{}</svg>', scale)
    out = []
    for h in case["hypotheses"]:
        at, rows = 0.0, []
        parts = {c.get("part", "log") for c in h["clues"]}
        for i, c in enumerate(h["clues"]):
            if len(parts) > 1 and i and c.get("part", "log") != h["clues"][i - 1].get("part", "log"):
                rows.append({"subtotal": at, "bar": _bar(x, marks, None, 0.0, at)})
            start, at = at, at + _weight(c)
            rows.append({"clue": c, "sum": at, "bar": _bar(x, marks, c, start, at, last=i + 1 == len(h["clues"]))})
        score = chart.value(h.get("score"))
        score = at if score != score else score
        out.append({"h": h, "rows": rows, "score": score, "bar": _bar(x, marks, None, 0.0, score), "head": head})
    return out


def _weight(clue: dict[str, Any]) -> float:
    w = clue.get("weight")
    return float(w) if isinstance(w, (int, float)) else 0.0


def _bar(x: chart.Scale, marks: list[float], clue: Any, start: float, end: float, last: bool = False) -> Markup:
    """A row of the ledger: a clue's bar from the sum before it to the sum after it; without a clue the sum itself."""
    out = [tag('<line class="wg" x1="{0}" x2="{0}" y1="0" y2="100%"/>', pct(x(m))) for m in marks]
    a, b, zero = pct(x(start)), pct(x(end)), pct(x(0.0))
    out.append(tag('<line class="wz" x1="{0}" x2="{0}" y1="0" y2="100%"/>', zero))
    if clue is None:
        out.append(tag('<line class="ws" x1="{}" x2="{}" y1="50%" y2="50%"/>', zero, b))
        out.append(tag('<circle class="wd" cx="{}" cy="50%" r="4.5"/>', b))
    else:
        kind = "for" if end >= start else "against"
        out.append(tag('<line class="wb {}" x1="{}" x2="{}" y1="50%" y2="50%"/>', kind, a, b))
        if not last:
            out.append(tag('<line class="wc" x1="{0}" x2="{0}" y1="50%" y2="100%"/>', b))
    return Markup('<svg class="wf" width="100%" height="100%" aria-hidden="true">{}</svg>').format(Markup("").join(out))


def _symptoms(case: dict[str, Any], anchors: dict[str, str]) -> list[list[dict[str, Any]]]:
    """Findings in step order, in groups: one that is shown alone, or many that share a fold."""
    ordered = sorted(case["findings"], key=lambda f: summary.first_step(f.get("steps")))
    cited = {i for h in case["hypotheses"][:3] for c in h["clues"] for i in c.get("findings") or []}
    serious = [f for f in ordered if f.get("severity") in ("critical", "warning")]
    serious.sort(key=lambda f: (f.get("id") not in cited, f.get("severity") != "critical"))
    shown = {id(f) for f in serious[:OPEN_FINDINGS]}
    detailed = {id(f) for f in (serious + ordered)[:DETAILED_CHARTS]}
    groups: list[list[dict[str, Any]]] = []
    run: list[dict[str, Any]] = []
    for f in ordered:
        item = {"f": f, "clock": _clock(case, f), "open": id(f) in shown, "anchor": anchors[str(f.get("id"))],
                "evidence": [_evidence(case, e, id(f) in detailed) for e in f["evidence"]]}  # fmt: skip
        if item["open"]:
            groups += [*_folded(run), [item]]
            run = []
        else:
            run.append(item)
    return groups + _folded(run)


def _clock(case: dict[str, Any], f: dict[str, Any]) -> str:
    pair = f.get("steps") or [None, None]
    known = [summary.times(case, s)[-1:] for s in pair]
    return words.period(f.get("times")) or words.period([t[0][1] if t else None for t in known])


def _folded(items: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [items] if len(items) > MANY else [[item] for item in items]


def _kinds(case: dict[str, Any]) -> list[dict[str, Any]]:
    """How often each symptom was found and where: the overview when there are many."""
    out: dict[str, dict[str, Any]] = {}
    for f in sorted(case["findings"], key=lambda f: summary.first_step(f.get("steps"))):
        row = out.setdefault(str(f.get("kind")), {"n": 0, "first": f, "worst": "info"})
        row["n"] += 1
        row["last"] = f
        row["worst"] = min(row["worst"], f.get("severity"), key=lambda s: {"critical": 0, "warning": 1}.get(s, 2))
    return [{"kind": k, **row} for k, row in out.items()]


def _evidence(case: dict[str, Any], e: dict[str, Any], detailed: bool) -> dict[str, Any]:
    data = e["data"] if isinstance(e.get("data"), dict) else {}
    shown: dict[str, Any] = {"kind": e.get("kind"), "title": e.get("title"), "where": e.get("where"), "data": data}
    if e.get("kind") != "series":
        return shown
    drawn = timeline.curves(data, timeline.abandoned_from(case))
    at = [chart.value(v) for v in data.get("window") or []] + [p[0] for c in drawn for p in (c.points[0], c.points[-1])]
    at = [v for v in at if v == v and abs(v) != float("inf")]
    if not drawn:
        return shown
    seen = [p[0] for c in drawn for p in c.points]
    x = chart.Scale(max(min(at), min(seen)), max(min(max(at), max(seen)), min(seen) + 1))
    name = timeline.describe(str(data.get("metric")), drawn)
    lists = {k: [v for v in data.get(k) or [] if isinstance(v, dict)] for k in ("bands", "marks")}
    shown["svg"] = chart.panel(drawn, x, log=data.get("scale") == "log", height=150, name=name, rows=2, room=480,
                               columns=200 if detailed else 60, bands=lists["bands"], marks=lists["marks"])  # fmt: skip
    shown["axis"] = timeline.axis(case, x, count=5)
    return shown
