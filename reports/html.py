"""The case as one HTML page: no request, readable without script, printable, fit to mail.

Everything that the case says is text: autoescape is on, control and reordering characters are spelled out, the JSON is
embedded through ``tojson``, and the page's own policy allows only the style and the scripts of this package, by hash.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
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
    do_next,
    first_rows,
    first_screen,
    guard_panel,
    hero_chart,
    markdown,
    missing,
    picture_list,
    quiet_series,
    recipe_table,
    replay_section,
    run_list,
    suspect_strips,
    symptom_list,
    text_format,
    timeline_chart,
)
from reports.schema import complete, plain

HERE = Path(__file__).parent
VENDOR = HERE / "vendor" / "uplot-1.6.32"
SAID = {"metric", "start", "peak", "end", "class", "alive", "attempt", "step", "first", "last", "values", "at_resume", "from",
        "ended", "said", "words", "do", "kind", "what", "over_highest", "cost_excess", "cost_steps"}  # fmt: skip
PLACES = ("answer", "causes", "pictures", "timeline", "attempts", "symptoms", "rules", "replay", "suspects",
          "data", "checkpoints", "clear", "not-known", "read", "case", "summary")  # fmt: skip


def template(name: str) -> str:
    return (HERE / "templates" / name).read_text("utf-8")


def render(case: dict[str, Any], shown: dict[str, Any] | None = None) -> str:
    """The page, byte for byte the same for the same case; ``shown``: samples of the training data, for the page alone."""
    full = complete(case)
    x = timeline_chart.domain(full)
    anchors = _anchors(full)
    quiet = quiet_series.quiet(full, timeline_chart.order(full))
    hero = hero_chart.of(full, x)
    told = (hero or {}).get("picture", {}).get("id")
    panels, drawn = timeline_chart.panels(full, x, quiet), [p for p in picture_list.pictures(full) if p["id"] != told]
    style = (VENDOR / "uPlot.min.css").read_text("utf-8") + "".join(
        map(template, ("report.css", "pictures.css", *(["data.css"] if shown else [])))
    )
    scripts = [(VENDOR / "uPlot.iife.min.js").read_text("utf-8"), template("report.js")]
    page = environment().get_template("report.html")
    first, more = panels[: timeline_chart.OPEN_PANELS], panels[timeline_chart.OPEN_PANELS :]
    return page.render(
        case=full, embedded=plain(case), run=full["run"], s=first_screen, rows=first_rows.rows(full), todo=do_next.do_next(full), runs=run_list, guards=guard_panel, saves=checkpoint_table, recipes=recipe_table, attempts=attempt_table.table(full), attempts_open=attempt_table.OPEN, anchors=anchors, unit=text_format.axis_unit(full["run"]), top=first_screen.top(full),
        rules=_rules(full), again=timeline_chart.replayed(full), band_names=timeline_chart.band_names(full), weighs=cause_ledger.weighs(full),
        causes=cause_ledger.causes(full), symptoms=symptom_list.symptoms(full, anchors), kinds=symptom_list.kinds(full), arms=replay_section.arms(full), replayed=replay_section, strips=suspect_strips.of(full), data=data_section.of(shown),
        hero=hero, panels=first, more_panels=more, quiet=list(quiet.values()), lean=not (panels or drawn or full["findings"]), missing=missing.groups(full), lanes=timeline_chart.lanes(full, x), domain=x,
        pictures=drawn,
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
        steps=text_format.steps, at=text_format.at, reach=text_format.reach, axis_note=text_format.axis_note, moment=text_format.moment, period=text_format.period, plural=text_format.plural, metric=text_format.metric,
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
