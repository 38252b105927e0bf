"""The case as one HTML page: no request, readable without script, printable, fit to mail.

Everything that the case says is text: autoescape is on, control and reordering characters are spelled out, the JSON is
embedded through ``tojson``, and the page's own policy allows only the style and the scripts of this package, by hash.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemBytecodeCache, FileSystemLoader
from jinja2.bccache import Bucket
from markupsafe import Markup

from reports import (
    attempt_table,
    cause_ledger,
    chart,
    checkpoint_table,
    data_section,
    first_screen,
    guard_panel,
    hero_chart,
    markdown,
    picture_list,
    recipe_table,
    replay_section,
    run_list,
    scales,
    text_format,
    timeline_chart,
)
from reports.schema import complete, plain

HERE = Path(__file__).parent
VENDOR = HERE / "vendor" / "uplot-1.6.32"
OPEN_FINDINGS = 12  # shown in full; the rest is one line each, folded
OPEN_OF_A_KIND = 4
MANY = 8  # folded findings in a row that share one fold
DETAILED_CHARTS = 60
SAID = {"metric", "start", "peak", "end", "class", "alive", "attempt", "step", "first", "last", "values", "at_resume", "from",
        "ended", "said", "words", "do", "kind", "what"}  # fmt: skip
PLACES = ("answer", "causes", "pictures", "timeline", "attempts", "symptoms", "rules", "replay",
          "data", "checkpoints", "clear", "not-known", "read", "case", "summary")  # fmt: skip


def template(name: str) -> str:
    return (HERE / "templates" / name).read_text("utf-8")


def render(case: dict[str, Any], shown: dict[str, Any] | None = None) -> str:
    """The page, byte for byte the same for the same case; ``shown``: samples of the training data, for the page alone."""
    full = complete(case)
    x = timeline_chart.domain(full)
    anchors = _anchors(full)
    panels = timeline_chart.panels(full, x)
    style = (
        (VENDOR / "uPlot.min.css").read_text("utf-8")
        + template("report.css")
        + template("pictures.css")
        + (template("data.css") if shown else "")
    )
    scripts = [(VENDOR / "uPlot.iife.min.js").read_text("utf-8"), template("report.js")]
    page = environment().get_template("report.html")
    first, more = ([p for p in panels if p["folded"] is folded] for folded in (False, True))
    return page.render(
        case=full, embedded=plain(case), run=full["run"], s=first_screen, runs=run_list, guards=guard_panel, saves=checkpoint_table, recipes=recipe_table, attempts=attempt_table.table(full), attempts_open=attempt_table.OPEN, anchors=anchors, top=first_screen.top(full),
        rules=_rules(full), again=timeline_chart.replayed(full), band_names=timeline_chart.band_names(full), weighs=cause_ledger.weighs(full),
        causes=cause_ledger.causes(full), symptoms=_symptoms(full, anchors), kinds=_kinds(full), arms=replay_section.arms(full), replayed=replay_section, data=data_section.of(shown),
        pictures=picture_list.pictures(full),
        hero=hero_chart.of(full, x), panels=first, more_panels=more, lanes=timeline_chart.lanes(full, x), domain=x,
        axis=timeline_chart.axis(full, x),
        markdown=markdown.brief(full), style=Markup(style), scripts=[Markup(s) for s in scripts],
        style_hash=policy_hash(style), script_hashes=[policy_hash(s) for s in scripts],
    )  # fmt: skip


@cache
def environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        undefined=ChainableUndefined, finalize=_shown, bytecode_cache=_Compiled(str(HERE / "templates" / "__pycache__")),
    )  # fmt: skip
    env.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    env.tests["command"] = text_format.is_command
    env.filters.update(
        rich=rich, parts=parts, num=text_format.number, db=text_format.decibans, pct=text_format.percent, size=text_format.bytes_,
        steps=text_format.steps, reach=text_format.reach, axis_note=text_format.axis_note, moment=text_format.moment, period=text_format.period, plural=text_format.plural, metric=text_format.metric,
        spike=lambda kind: text_format.SPIKES.get(kind, kind), band=chart.band_name, clip=_clip, plain_facts=_plain_facts,
        numeric=_numeric,
    )  # fmt: skip
    return env


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates are kept beside them, as Python keeps its own; where that cannot be done, it is not."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(Exception):  # whatever a torn one raises: then it is compiled again
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


def _plain_facts(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    """Single numbers, and sentences, that the title and the tables do not already say."""
    told = [(k, v) for k, v in facts.items() if k not in SAID and v not in (None, "") and not isinstance(v, (dict, list, bool))]
    return [(text_format.FACTS.get(k, k.replace("_", " ")), v) for k, v in told if not isinstance(v, str) or " " in v]


def _numeric(rows: list[Any]) -> list[bool]:
    """For each column whether it holds numbers only (and empty cells)."""
    columns = max((len(r) for r in rows), default=0)
    cells = [[r[j] for r in rows if j < len(r) and r[j] is not None] for j in range(columns)]
    return [bool(c) and all(isinstance(v, (int, float)) or v == "NaN" for v in c) for c in cells]


def _shown(x: Any) -> Any:
    if x is None:
        return ""
    return text_format.visible(x) if isinstance(x, str) and not isinstance(x, Markup) else x


def _clip(text: Any, limit: int = 2000) -> str:
    line = text_format.visible(text)
    return line if len(line) <= limit else f"{line[:limit]} \u2026 ({len(line) - limit} more characters)"


def policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def rich(text: Any) -> Markup:
    """A sentence of the case; what stands between backticks becomes code, everything is escaped."""
    return Markup("").join(Markup("<code>{}</code>").format(p) if code else Markup.escape(p) for p, code in parts(text))


def parts(text: Any) -> list[tuple[str, bool]]:
    """A sentence of the case, cut at its backticks: (text, whether it is code). A command alone is code without them."""
    if text_format.is_command(text):
        return [(text_format.visible(text), True)]
    cut = text_format.visible("" if text is None else text).split("`")
    if len(cut) % 2 == 0:  # a lone backtick is a character
        cut = ["`".join(cut)]
    return [(p, i % 2 == 1) for i, p in enumerate(cut) if p]


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


def _rules(case: dict[str, Any]) -> dict[str, dict[str, str]]:
    """How each symptom that was found is decided, by the id of its check: {"anchor", "text"}."""
    told = [c for c in case["checks"] if c.get("rule")]
    return {c["id"]: {"anchor": f"rule-{i}", "text": c["rule"]} for i, c in enumerate(told, 1)}


def _symptoms(case: dict[str, Any], anchors: dict[str, str]) -> list[list[dict[str, Any]]]:
    """Findings in step order, in groups: one that is shown alone, or many that share a fold."""
    ordered = sorted(case["findings"], key=lambda f: first_screen.first_step(f.get("steps")))
    cited = {i for h in case["hypotheses"][:3] for c in h["clues"] for i in c.get("findings") or []}
    serious = [f for f in ordered if f.get("severity") in ("critical", "warning")]
    serious.sort(key=lambda f: (f.get("id") not in cited, f.get("severity") != "critical"))
    of_a_kind: dict[Any, list[int]] = {}
    for f in serious:
        of_a_kind.setdefault(f.get("kind"), []).append(id(f))
    few = {i for alike in of_a_kind.values() for i in alike[:OPEN_OF_A_KIND]}
    shown = {id(f) for f in [f for f in serious if id(f) in few][:OPEN_FINDINGS]}
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
    known = [first_screen.times(case, s)[-1:] for s in pair]
    return text_format.period(f.get("times")) or text_format.period([t[0][1] if t else None for t in known])


def _folded(items: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [items] if len(items) > MANY else [[item] for item in items]


def _kinds(case: dict[str, Any]) -> list[dict[str, Any]]:
    """How often each symptom was found and where: the overview when there are many."""
    out: dict[str, dict[str, Any]] = {}
    for f in sorted(case["findings"], key=lambda f: first_screen.first_step(f.get("steps"))):
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
    drawn = timeline_chart.curves(data, timeline_chart.abandoned_from(case))
    if not drawn:
        return shown
    name = timeline_chart.describe(str(data.get("metric")), drawn)
    if not any(math.isfinite(v) for c in drawn for _, v in c.points):
        return shown | {"kind": "text", "data": {"lines": [name]}}
    at = [scales.value(v) for v in data.get("window") or []] + [p[0] for c in drawn for p in (c.points[0], c.points[-1])]
    at = [v for v in at if math.isfinite(v)]
    seen = [p[0] for c in drawn for p in c.points]
    x = scales.Scale(max(min(at), min(seen)), max(min(max(at), max(seen)), min(seen) + 1))
    lists = {k: [v for v in data.get(k) or [] if isinstance(v, dict)] for k in ("bands", "marks")}
    look = chart.Look(name, 150, data.get("scale") == "log", 200 if detailed else 60, rows=2, room=480, **lists)
    return shown | {"svg": chart.panel(drawn, x, look), "axis": timeline_chart.axis(case, x, count=5)}
