"""Many runs as one page: what they share, then a table to sort and filter, with a small curve of each loss.

Ten thousand rows have to open at once and fit into 5 MB, so rows are plain cells without closing tags, one a line, in folds of
`PAGE` rows that a browser lays out when they are opened. All but the first fold stand inside <noscript>: where script runs, a browser
does not even build them, and the script takes their lines for one page of sorted and filtered rows at a time.
The same policy as for a case: no request, everything escaped, style and script by hash.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from reports import text_format
from reports.html import environment, policy_hash, template
from reports.markdown import code, esc, table

PAGE = 250
ROOM = 4_600_000  # bytes of rows; beyond it healthy runs lose their curves, then all that are left
STEP, TOP = 3, 16  # of the small curve: pixels from point to point, height
SHOWN, FOLDED = 12, 100  # entries of a list in full; in a fold
ENDINGS = {"exception": "by an exception", "interrupt": "interrupted", "scheduler": "stopped by the scheduler",
           "signal": "killed by a signal", "hardware": "by a hardware fault", "disk": "with a full disk", "hang": "hung", "cut": "cut off"}  # fmt: skip
OPEN = "unknown"  # the id of what is no cause on our list
RANK = {"unhealthy": 0, "inconclusive": 1, "healthy": 2}
COLUMNS = (
    ("run", ""), ("loss", "curve"), ("verdict", ""), ("cause", ""), ("sure", "n"), ("spikes", "n"), ("first bad step", "n"),
    ("steps", "n"), ("last loss", "n"), ("status", ""),
)  # fmt: skip
FURTHER = ("framework", "host", "owner", "folder")  # columns that stand only where some run has them


def render(audit: dict[str, Any]) -> str:
    """The page of `forensics audit`; `audit` is the document of audit.json with ``rows`` and ``curves``."""
    order = sorted(range(len(audit["rows"])), key=lambda i: _rank(audit["rows"][i]))
    titles = {c["cause"]: c.get("title", c["cause"]) for c in audit["causes"]}
    folders = _folders([str(r["path"]) for r in audit["rows"]])
    rows = [r | {"folder": folder} for r, folder in zip(audit["rows"], folders, strict=True)]
    further = [c for c in FURTHER if any(r.get(c) for r in rows)]
    lines = _lines([rows[i] for i in order], [audit["curves"][i] for i in order], titles, further)
    style, script = template("report.css") + template("audit.css"), template("audit.js")
    return environment().get_template("audit.html").render(
        a=audit, pages=[lines[i : i + PAGE] for i in range(0, len(lines), PAGE)], page_size=PAGE, columns=[*COLUMNS, *((c, "") for c in further)], numbers=headline_numbers(audit),
        titles=titles, links=_links(audit["rows"]), shown=SHOWN, folded=FOLDED,
        headline=headline(audit), style=Markup(style), script=Markup(script), style_hash=policy_hash(style), script_hash=policy_hash(script),
    )  # fmt: skip


def headline(audit: dict[str, Any]) -> str:
    """One sentence with the counts."""
    v = audit["verdicts"]
    said = f"{v['unhealthy']} of {text_format.plural(audit['runs'], 'run')} went wrong"
    rest = [f"{n} {status}" for status, n in audit.get("endings", {}).items()]
    rest += [f"{v['inconclusive']} cannot be judged"] if v["inconclusive"] else []
    rest += [f"{len(audit['failed'])} could not be analyzed"] if audit["failed"] else []
    shared = len(audit["shared_batches"])
    rest += [f"{text_format.plural(shared, 'bad batch', 'bad batches')} shared by several"] if shared else []
    return f"{said}{', ' + ', '.join(rest) if rest else ''}."


def headline_numbers(audit: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(number, what it counts, what is behind it): what one asks first of many runs."""
    rows, v = audit["rows"], audit["verdicts"]
    unhealthy = f"{v['healthy']} healthy, {v['inconclusive']} cannot be judged"
    told = [(f"{v['unhealthy']} of {audit['runs']}", "runs went wrong", unhealthy)]
    why = Counter(
        ENDINGS.get(str(r.get("ending")), str(r.get("ending")).replace("_", " "))
        for r in rows
        if r["status"] in ("crashed", "hung", "stopped")
    )
    if why:
        told.append((str(why.total()), "died", text_format.joined([f"{n} {kind}" for kind, n in why.most_common()], 5)))
    lost = [r["gpu_hours_lost"] for r in rows if r.get("gpu_hours_lost") is not None]
    if sum(lost) > 0:
        told.append(
            (
                text_format.number(round(sum(lost), 2)),
                "GPU-hours lost",
                f"repeated work and silence, known for {text_format.plural(len(lost), 'run')}",
            )
        )
    often = [c for c in audit["causes"] if c["runs"] > 1 and c["cause"] != OPEN][:3]
    if often:
        told.append(
            (
                str(len([c for c in audit["causes"] if c["runs"] > 1])),
                "causes seen more than once",
                text_format.joined([f"{c.get('title', c['cause'])} ({c['runs']})" for c in often]),
            )
        )
    return told


def _folders(paths: Sequence[str]) -> list[str]:
    """The folder of each run, without the beginning that all share."""
    parts = [p.rstrip("/").split("/")[:-1] for p in paths]
    common = next((i for i, at in enumerate(zip(*parts, strict=False)) if len(set(at)) > 1), min(map(len, parts), default=0))
    return ["/".join(p[common:]) for p in parts]


def _rank(row: dict[str, Any]) -> tuple[Any, ...]:
    return RANK.get(row["verdict"], 1), not row["error"], -(row["spikes_non_recovering"] or 0), -(row["grave"] or 0), row["id"]


def _links(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """id -> address of its page."""
    return {r["id"]: quote(r["page"]) for r in rows if r["page"]}


def _lines(rows: list[dict[str, Any]], curves: list[bytes], titles: dict[str, str], further: Sequence[str]) -> list[Markup]:
    cells = [_cells(r, titles, further) for r in rows]
    drawn = [spark(c) for c in curves]
    spent = sum(len(head) + len(tail) for head, tail in cells)
    keep = set()
    for i in sorted(range(len(rows)), key=lambda i: (RANK.get(rows[i]["verdict"], 1), i)):
        spent += len(drawn[i])
        if spent > ROOM:
            break
        keep.add(i)
    return [Markup(f"{head}{drawn[i] if i in keep else ''}{tail}") for i, (head, tail) in enumerate(cells)]


def _cells(r: dict[str, Any], titles: dict[str, str], further: Sequence[str]) -> tuple[str, str]:
    """The row before and after its curve. End tags of rows and cells may be left out in HTML, and 10 000 rows thank for it."""
    name = escape(text_format.one_line(r["id"]))
    first = f'<a href="{escape(quote(r["page"]))}">{name}</a>' if r["page"] else str(name)
    spikes = [str(r[f"spikes_{k}"] or 0) for k in ("fast", "slow", "non_recovering")]
    verdict = str(r["verdict"]) + (", known" if r["known"] else "") + (", not analyzed" if r["error"] else "")
    cause = titles.get(r["top_cause"], r["top_cause"]) if r["verdict"] == "unhealthy" else ""
    sure = text_format.percent(r["probability"]) if cause and r["top_cause"] != OPEN and r["probability"] is not None else ""
    told = [verdict, cause, sure, "" if spikes == ["0", "0", "0"] else "/".join(spikes), r["first_bad_step"], r["steps"]]
    told += [_loss(r["loss"]), r["status"], *(r.get(c) for c in further)]
    tail = "".join(f"<td>{escape(text_format.one_line(x)) if x is not None else ''}" for x in told).rstrip()
    kind = {"unhealthy": "u", "healthy": "h"}.get(str(r["verdict"]), "i")
    return f'<tr class="{kind}"><td>{first}<td>', tail


def _loss(x: float | None) -> str:
    return "" if x is None else text_format.number(x) if math.isfinite(x) else "NaN"


def spark(curve: Sequence[int]) -> str:
    """The small curve as one path: x in steps of `STEP`, y down from 0 to `TOP`; 255 (not finite) leaves a gap."""
    out, last = [], None
    for i, v in enumerate(curve):
        if v > 99:
            last = None
            continue
        y = round((99 - v) * TOP / 99)
        if last is None:
            out.append(f"M{i * STEP} {y}l0 0")
        else:
            dx, dy = (i - last[0]) * STEP, y - last[1]
            out.append(f" {dx}{'' if dy < 0 else ' '}{dy}")
        last = (i, y)
    return f'<svg><path d="{"".join(out)}"/></svg>' if out else ""


def markdown(audit: dict[str, Any]) -> str:
    """The summary of an audit, to paste into an issue or a chat."""
    lines = [f"# {esc(headline(audit))}", "", f"Roots: {', '.join(code(r) for r in audit['roots'])}."]
    if audit["known"]:
        lines += ["", f"{text_format.plural(audit['known'], 'finding')} judged before and left out."]
    lines += _section("Causes", ("Cause", ">Runs"), [(esc(c.get("title", c["cause"])), str(c["runs"])) for c in audit["causes"]])
    since = audit["since"]
    rows: list[tuple[str, ...]]
    if since is not None:
        rows = [(kind.replace("_", " "), code(c["id"]), esc(c["why"] or c["verdict"])) for kind in since for c in since[kind]]
        lines += _section("Since the earlier audit", ("What", "Run", "Why"), rows) or ["", "Nothing changed since the earlier audit."]
    rows = [(esc(b["says"]), str(b["runs"]), f"{b['p']:.1e}") for b in audit["shared_batches"]]
    lines += _section("Batches that are bad for many", ("Where", ">Runs", ">Chance"), rows)
    rows = [
        (code(c["cause"]), code(f"{c['key']} = {c['value']}"), f"{c['runs']} of {c['of']}", f"{c['expected']:.1f}", f"{c['p']:.1e}")
        for c in audit["shared_causes"]
    ]
    lines += _section("Causes that come together with a value", ("Cause", "Value", ">Runs", ">Expected", ">Chance"), rows)
    groups = audit["seed_groups"]
    rows = []
    for g in groups:
        off = ", ".join(code(o["id"]) for o in g["off"])
        rows.append((str(len(g["runs"])), code(g["metric"] or "no loss"), text_format.number(g["mean"]), text_format.number(g["sd"]), off))
    lines += _section("Groups that differ only in the seed", (">Seeds", "Metric", ">Mean", ">Spread", "Off the spread"), rows)
    rows = []
    for c in audit["comparisons"]:
        low, high = map(text_format.number, c["interval"])
        rows.append((esc(difference(c["differs"])), esc(c["verdict"]), text_format.number(c["effect"]), f"{low} to {high}"))
    lines += _section("One recipe against another", ("Differs in", "Verdict", ">Effect", "99 % interval"), rows)
    rows = [(d["kind"], ", ".join(code(r) for r in d["runs"][:6]), esc(difference(d["differs"]))) for d in audit["duplicates"]]
    lines += _section("Copies and forks", ("What", "Runs", "Differs in"), rows)
    rows = [(code(f["id"]), esc(f["error"])) for f in audit["failed"]]
    lines += _section("Not analyzed", ("Run", "Why"), rows)
    keys = ("runs", "harmed", "caught", "before", "healthy", "alarmed")
    rows = [(code(g["guard"]), *(str(g[k]) for k in keys)) for g in audit.get("guards", [])]
    heads = ("Guard", ">Runs that logged it", ">With its harm", ">Caught", ">Before it began", ">Healthy runs", ">With a false alarm")
    lines += _section("Live guards", heads, rows)
    bad = sorted((r for r in audit["rows"] if r["verdict"] == "unhealthy"), key=_rank)
    rows = [(code(r["id"]), code(r["top_cause"]), esc(r["answer"])) for r in bad]
    lines += _section("Runs that went wrong", ("Run", "Cause", "What happened"), rows)
    lines += ["", esc(audit["redacted"])] if audit.get("redacted") else []
    return "\n".join(lines) + "\n"


def _section(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], most: int = 40) -> list[str]:
    if not rows:
        return []
    drawn = ["| " + " | ".join(r) + " |" for r in rows[:most]]
    more = ["", f"{len(rows) - most} more are in `audit.json` and `audit.parquet`."] if len(rows) > most else []
    return ["", f"## {title}", *table(head, drawn), *more]


def difference(differs: Sequence[dict[str, Any]]) -> str:
    """'lr: 0.001 against 0.003, seed: 1 against 2'."""
    told = [f"{d['key']}: {text_format.number(d['a'])} against {text_format.number(d['b'])}" for d in differs[:4]]
    return ", ".join(told) + (f" and {len(differs) - 4} more" if len(differs) > 4 else "") or "nothing that was logged"


def terminal(audit: dict[str, Any]) -> str:
    """A few lines for the terminal."""
    lines = [headline(audit)]
    causes = [f"{c.get('title', c['cause'])} {c['runs']}" for c in audit["causes"][:6]]
    lines += [f"  causes: {', '.join(causes)}"] if causes else []
    lines += [f"  {b['says']}" for b in audit["shared_batches"][:4]]
    for c in audit["shared_causes"][:4]:
        often = f"{c['runs']} of {c['of']} runs, {c['expected']:.1f} expected by chance"
        lines.append(f"  {c['cause']} with {c['key']} = {c['value']}: {often}")
    for g in audit["seed_groups"][:4]:
        off = f", off the spread: {', '.join(o['id'] for o in g['off'])}" if g["off"] else ""
        spread = f"{text_format.number(g['mean'])} \u00b1 {text_format.number(g['sd'])}"
        lines.append(f"  {len(g['runs'])} seeds of one recipe: {g['metric']} {spread}{off}")
    since = audit["since"]
    if since is not None:
        lines.append("  since: " + ", ".join(f"{len(since[k])} {k.replace('_', ' ')}" for k in since))
    return "\n".join(text_format.visible(line) for line in lines)
