"""Many runs as one page: what they share, then a table to sort and filter, with a small curve of each loss.

Ten thousand rows have to open at once and fit into 5 MB, so rows are plain cells without closing tags, one a line, in folds of
`PAGE` rows that a browser lays out when they are opened. All but the first fold stand inside <noscript>: where script runs, a browser
does not even build them, and the script takes their lines for one page of sorted and filtered rows at a time.
The same policy as for a case: no request, everything escaped, style and script by hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from reports import audit_rows, audit_totals, text_format, week_chart
from reports.audit_rows import LOSSES, hours, rank
from reports.html import environment, policy_hash, template
from reports.markdown import code, esc, table

PAGE = 250
SHOWN, FOLDED = 12, 100  # entries of a list in full; in a fold
TILE = 5  # entries of a tile in full
LOST_BY = {"by_host": "node", "by_owner": "owner", "by_shard": "data shard"}


def render(audit: dict[str, Any]) -> str:
    """The page of `forensics audit`; `audit` is the document of audit.json with ``rows`` and ``curves``."""
    ranks = [rank(r) for r in audit["rows"]]
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    counted = {c["cause"]: c.get("title", c["cause"]) for c in audit["causes"]}
    titles = audit.get("titles", {}) | counted
    folders = _folders([str(r["path"]) for r in audit["rows"]])
    rows = (audit["rows"][i] | {"folder": folders[i]} for i in order)
    columns, lines = audit_rows.lines(rows, [audit["curves"][i] for i in order], titles)
    style, script = f"{template('report.css')}{template('audit.css')}{_cells(columns)}\n", template("audit.js")
    history = audit.get("history")
    return environment().get_template("audit.html").render(
        a=audit, pages=[lines[i : i + PAGE] for i in range(0, len(lines), PAGE)], page_size=PAGE, columns=columns, tiles=audit_totals.tiles(audit, titles), tile=TILE,
        titles=titles, links=_links(audit["rows"]), shown=SHOWN, folded=FOLDED, missing=audit_totals.missing(audit["costs"]), history=history,
        selects=_selects(audit["rows"], counted), period=_period(audit["rows"]), again=_again(audit["rows"]), hours=hours, ended=audit_rows.ended, weeks=week_chart.bars(history["weeks"]) if history else [], headline=audit_totals.headline(audit),
        style=Markup(style), script=Markup(script), style_hash=policy_hash(style), script_hash=policy_hash(script),
    )  # fmt: skip


CELLS = {
    "n": "text-align:right",
    "wide": "white-space:normal;overflow-wrap:anywhere;min-width:23ch;max-width:32ch",
    "name": "white-space:normal;overflow-wrap:anywhere;min-width:11ch;max-width:18ch",
}


def _cells(columns: Sequence[audit_rows.Column]) -> str:
    """How the cells of each kind of column stand: no cell has an attribute."""
    by_kind = {kind: ",".join(f".runs td:nth-child({i})" for i, c in enumerate(columns, 1) if c.kind == kind) for kind in CELLS}
    return "".join(f"{cells}{{{CELLS[kind]}}}" for kind, cells in by_kind.items() if cells)


def _selects(rows: Sequence[dict[str, Any]], causes: dict[str, str]) -> list[tuple[str, list[str]]]:
    """(column, what can be picked in it): what occurs, the most frequent first."""
    told: dict[str, Counter[str]] = {name: Counter() for name in ("ending", "owner", "host")}
    for r in rows:
        told["ending"].update([audit_rows.ended(r.get("ending")) or ""])
        told["owner"].update([r.get("owner") or ""])
        told["host"].update(str(r.get("host") or "").split(", "))
    found = {name: [text_format.one_line(v) for v, _ in c.most_common(FOLDED * 3) if v] for name, c in told.items()}
    picks = {"verdict": ["unhealthy", "inconclusive", "healthy"], "cause": [text_format.one_line(t) for t in causes.values()], **found}
    return [(name, values) for name, values in picks.items() if values]


def _period(rows: Sequence[dict[str, Any]]) -> str:
    """From when to when the runs began, and how many say so."""
    days = sorted(str(r["started"])[:10] for r in rows if r.get("started"))
    return (
        f"Began {' to '.join(dict.fromkeys([days[0], days[-1]]))}; known for {len(days)} of {text_format.plural(len(rows), 'run')}."
        if days
        else ""
    )


def _again(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """(path, from where and what to change) of the runs that are ready to run again."""
    ready = [(str(r["path"]), str(r["rerun"])) for r in rows if str(r.get("rerun")).startswith("yes, ")]
    return [(text_format.one_line(path), text_format.one_line(told.removeprefix("yes, "))) for path, told in ready]


def _folders(paths: Sequence[str]) -> list[str]:
    """The folder of each run, without the beginning that all share."""
    parts = [p.rstrip("/").split("/")[:-1] for p in paths]
    common = next((i for i, at in enumerate(zip(*parts, strict=False)) if len(set(at)) > 1), min(map(len, parts), default=0))
    return ["/".join(p[common:]) for p in parts]


def _links(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """id -> address of its page."""
    return {r["id"]: quote(r["page"]) for r in rows if r["page"]}


def markdown(audit: dict[str, Any]) -> str:
    """The summary of an audit, to paste into an issue or a chat."""
    lines = [f"# {esc(audit_totals.headline(audit))}", "", f"Roots: {', '.join(code(r) for r in audit['roots'])}."]
    rows: list[tuple[str, ...]]
    if audit["known"]:
        lines += ["", f"{text_format.plural(audit['known'], 'finding')} judged before and left out."]
    lines += _news(audit["history"]) if audit["history"] is not None else []
    costs = audit["costs"]
    rows = [(what, esc(e["value"]), hours(e["lost_gpu_hours"])) for key, what in LOST_BY.items() for e in costs[key][:TILE]]
    rows = [("kind of loss", LOSSES[e["value"]], hours(e["lost_gpu_hours"])) for e in costs["by_loss"]] + rows
    lines += _section("GPU-hours lost", ("By", "", ">GPU-hours"), rows)
    lines += _section("Causes", ("Cause", ">Runs"), [(esc(c.get("title", c["cause"])), str(c["runs"])) for c in audit["causes"]])
    since = audit["since"]
    if since is not None:
        rows = [(kind.replace("_", " "), code(c["id"]), esc(c["why"] or c["verdict"])) for kind in since for c in since[kind]]
        lines += _section("Since the earlier audit", ("What", "Run", "Why"), rows) or ["", "Nothing changed since the earlier audit."]
    lines += _coming_back(audit)
    lines += _alike(audit)
    rows = [(code(f["id"]), esc(f["error"])) for f in audit["failed"]]
    lines += _section("Not analyzed", ("Run", "Why"), rows)
    keys = ("runs", "harmed", "caught", "before", "healthy", "alarmed")
    rows = [(code(g["guard"]), *(str(g[k]) for k in keys)) for g in audit.get("guards", [])]
    of_guards = (
        "Guard",
        ">Runs that logged its metric",
        ">With the harm it watches for",
        ">Fired in",
        ">Fired before the harm",
        ">Healthy runs",
        ">With a false alarm",
    )
    lines += _section("Live guards", of_guards, rows)
    bad = sorted((r for r in audit["rows"] if r["verdict"] == "unhealthy"), key=rank)
    rows = [(code(r["id"]), code(r["top_cause"]), esc(r["answer"])) for r in bad]
    lines += _section("Runs that went wrong", ("Run", "Cause", "What happened"), rows)
    lines += ["", esc(audit["redacted"])] if audit.get("redacted") else []
    return "\n".join(lines) + "\n"


def _coming_back(audit: dict[str, Any]) -> list[str]:
    """What repeats, and what is ready to run again."""
    rows: list[tuple[str, ...]] = [
        (code(f["line"]), str(f["runs"]), esc(", ".join([*f["hosts"], *f["owners"]])), ", ".join(code(i) for i in f["ids"][:6]))
        for f in audit.get("repeated_failures", [])
    ]
    lines = _section("Failures that repeat", ("Line that ended it", ">Runs", "Hosts and owners", "Among them"), rows)
    lines += _section("Ready to run again", ("Run", "How"), [(code(path), esc(told)) for path, told in _again(audit["rows"])])
    rows = [(esc(b["says"]), str(b["runs"]), f"{b['p']:.1e}") for b in audit["shared_batches"]]
    lines += _section("Batches that are bad for many", ("Where", ">Runs", ">Probability by chance"), rows)
    rows = [
        (
            code(c["cause"]) if c["cause"] != "any" else "went wrong, whatever the cause",
            code(f"{c['key']} = {c['value']}"),
            f"{c['runs']} of {c['of']}",
            f"{c['expected']:.1f}",
            f"{c['p']:.1e}",
        )
        for c in audit["shared_causes"]
    ]
    heads = (
        "Cause",
        "Host, shard or setting",
        ">With it and the cause, of all with it",
        ">Expected if unrelated",
        ">Probability by chance",
    )
    lines += _section("Causes that come together with a host, a shard or a setting", heads, rows)
    return lines


def _alike(audit: dict[str, Any]) -> list[str]:
    """Runs that differ in little: seeds, recipes, copies."""
    rows: list[tuple[str, ...]] = []
    for g in audit["seed_groups"]:
        off = ", ".join(code(o["id"]) for o in g["off"])
        rows.append((str(len(g["runs"])), code(g["metric"] or "no loss"), text_format.number(g["mean"]), text_format.number(g["sd"]), off))
    lines = _section("Groups that differ only in the seed", (">Seeds", "Metric", ">Mean", ">Spread", "Off the spread"), rows)
    rows = []
    for c in audit["comparisons"]:
        low, high = map(text_format.number, c["interval"])
        rows.append((esc(difference(c["differs"])), esc(c["verdict"]), text_format.number(c["effect"]), f"{low} to {high}"))
    lines += _section("One recipe against another", ("Differs in", "Verdict", ">Effect", "99 % interval"), rows)
    rows = [
        (d["kind"], ", ".join(code(r) for r in d["runs"][:6]), esc(difference(d["differs"]))) for d in audit["duplicates"] if d["differs"]
    ]
    lines += _section("Copies and forks", ("What", "Runs", "Differs in"), rows)
    same = len(audit["duplicates"]) - len(rows)
    lines += ["", f"{same} copies or forks with the same settings, as far as they were logged, are in `audit.json`."] if same else []
    return lines


def _news(history: dict[str, Any]) -> list[str]:
    """What is new since the last night."""
    lines = ["", *(esc(n) for n in history["notices"])] if history["notices"] else []
    if not history["nights"]:
        return lines
    head = ("Run", "Cause", "What happened", ">GPU-hours lost", "Owner", "Run again")
    rows = []
    for n in history["new"]:
        lost = hours(n["lost_gpu_hours"]) if n["lost_gpu_hours"] else ""
        rows.append((code(n["id"]), code(n["top_cause"]), esc(n["answer"]), lost, esc(n["owner"] or ""), esc(n["rerun"] or "")))
    since = text_format.moment(history["last"])
    return lines + (_section(f"New since {since}", head, rows) or ["", f"Nothing new since {since}."])


def _section(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], most: int = 40) -> list[str]:
    if not rows:
        return []
    drawn = ["| " + " | ".join(r) + " |" for r in rows[:most]]
    more = ["", f"{len(rows) - most} more are in `audit.json` and `audit.parquet`."] if len(rows) > most else []
    return ["", f"## {title}", *table(head, drawn), *more]


def difference(differs: Sequence[dict[str, Any]]) -> str:
    """'lr: 0.001 against 0.003, seed: 1 against 2'."""
    told = [f"{d['key']}: {_short(d['a'])} against {_short(d['b'])}" for d in differs[:4]]
    return ", ".join(told) + (f" and {len(differs) - 4} more" if len(differs) > 4 else "") or "nothing that was logged"


def _short(value: Any) -> str:
    return text_format.cut(str(text_format.number(value)), 40)


def terminal(audit: dict[str, Any]) -> str:
    """A few lines for the terminal."""
    lines = [audit_totals.headline(audit)]
    named = [c for c in audit["causes"] if c["cause"] != audit_rows.OPEN]
    causes = [f"{c.get('title', c['cause'])} {c['runs']}" for c in named[:6]]
    more = f" and {len(named) - len(causes)} more" * (len(named) > len(causes))
    left = [f"open {n}"] if (n := audit_totals.open_causes(audit)) else []
    lines += [f"  causes: {'; '.join([', '.join(causes) + more] * bool(causes) + left)}"] if causes or left else []
    lines += [f"  {b['says']}" for b in audit["shared_batches"][:4]]
    for c in audit["shared_causes"][:4]:
        often = f"{c['runs']} of {c['of']} runs, {c['expected']:.1f} expected by chance"
        lines.append(f"  {c['cause']} with {c['key']} = {c['value']}: {often}")
    for g in audit["seed_groups"][:4]:
        off = f", off the spread: {', '.join(o['id'] for o in g['off'])}" if g["off"] else ""
        spread = f"{text_format.number(g['mean'])} \u00b1 {text_format.number(g['sd'])}"
        lines.append(f"  {len(g['runs'])} seeds of one recipe: {g['metric']} {spread}{off}")
    lost = [f"{LOSSES[e['value']]} {hours(e['lost_gpu_hours'])}" for e in audit["costs"]["by_loss"]]
    lines += [f"  GPU-hours lost: {', '.join(lost)}"] if lost else []
    if audit["history"] is not None and audit["history"]["nights"]:
        names = [n["id"] for n in audit["history"]["new"]]
        lines.append(f"  new since {text_format.moment(audit['history']['last'])}: {text_format.joined(names) or 'nothing'}")
    since = audit["since"]
    if since is not None:
        lines.append("  since: " + ", ".join(f"{len(since[k])} {k.replace('_', ' ')}" for k in since))
    return "\n".join(text_format.visible(line) for line in lines)
