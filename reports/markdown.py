"""The case as Markdown: the text of a postmortem, for an issue, a chat or a notebook.

Nothing in the case can become markup: every special character of Markdown and HTML is escaped, and code is fenced by
more backticks than it holds. What GitHub and GitLab make active in plain text whatever is escaped (addresses, mentions, references,
commits, emoji, quick actions) is written as code, where they leave it alone.
"""

from __future__ import annotations

import re
from typing import Any

from reports import attempt_table, checkpoint_table, do_next, first_rows, first_screen, recipe_table, run_list, text_format
from reports import replay_section as replayed
from reports.clues import said_once
from reports.schema import complete
from reports.text_format import decibans, number

MAX_FINDINGS = 40
CELL = 200  # characters of a log line in a cell
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")
_BLOCK = re.compile(r"^(\d*)([-+=:]|(?<=\d)[.)](?=\s|$))")  # what would begin a list, a rule or the second row of a table
_ACTIVE = re.compile(
    r"(?i)[a-z][a-z0-9+.\-]{0,30}://[^\s|]*|(?<!\w)(?:mailto|xmpp|javascript|tel):[^\s|]+|(?<![\w.])www\.[^\s|]+"  # GFM 6.9, autolinks
    r"|[^\s|`<>(){}\[\]@]{0,64}@[^\s|`<>(){}\[\]]{0,254}\w"  # mail, mentions; RFC 5321 allows 64 characters and 255
    r"|(?<![\w&])(?:[\w.\-]{1,60}(?:/[\w.\-]{1,60})?)?[#!&$]\d+|(?<!\w)(?:GH-|[%~^])\w+"  # issues, requests, labels, milestones
    r"|(?<![\w])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,64}(?!\w)"  # commits
    r"|(?<![\w:]):(?:[a-z][\w+\-]*|[+\-]1|100|1234):(?!\w)|^/[a-z]\w*"  # emoji, quick actions of GitLab
)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
Case = dict[str, Any]


def esc(text: Any) -> str:
    """Text of the case as Markdown text on one line; what stands between backticks stays code."""
    parts = text_format.one_line("" if text is None else text).split("`")
    if len(parts) % 2 == 0:
        parts = ["`".join(parts)]
    line = ""
    for written in (code(p) if i % 2 else _inert(p) for i, p in enumerate(parts)):
        line += " " * (line.endswith("`") and written.startswith("`")) + written  # two spans side by side would be one
    return _BLOCK.sub(r"\1\\\2", line)


def _inert(text: str) -> str:
    """Text between code: escaped, and what would become active as code."""
    out, done = [], 0
    for m in _ACTIVE.finditer(text):
        found = m[0] if "`" in m[0] else m[0].rstrip(".,;:!?)]'\"")
        out += [_escaped(text[done : m.start()]), code(found)]
        done = m.start() + len(found)
    return "".join([*out, _escaped(text[done:])])


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda m: _ENTITIES.get(m[0], "\\" + m[0]), text)


def code(text: Any) -> str:
    """An inline code span; longer fences where the text has backticks. A pipe would split a table cell."""
    line = text_format.one_line(text).replace("|", "\u00a6")
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{space}{line}{space}{fence}"


def action(text: Any) -> str:
    return code(text) if text_format.is_command(text) else esc(text)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def table(head: tuple[str, ...], rows: list[str]) -> list[str]:
    """A table; a heading that begins with '>' is of a column of numbers."""
    rule = row(*("---:" if h.startswith(">") else "---" for h in head))
    return ["", row(*(h.lstrip(">") for h in head)), rule, *rows]


def render(case: Case) -> str:
    """The whole postmortem."""
    full = complete(case)
    parts = [
        brief(full),
        _attempts(full),
        _causes(full),
        _symptoms(full),
        _replay(full),
        _checkpoints(full),
        _checked(full),
        _unknown(full),
        _beside(full),
        _read(full),
    ]
    return "\n\n".join(p.strip() for p in parts if p.strip()) + "\n"


def brief(case: Case) -> str:
    """The first screen: answer, when, why, or else, what to do. Takes a case that ``schema.complete`` filled."""
    run, clock, (word, found) = case["run"], "; ".join(filter(None, first_screen.when(case))), first_screen.status(case)
    state = f"{esc(run.get('status', 'unknown'))}; **{esc(word)}**{' ' if found.startswith('in ') else ', '}{esc(found)}."
    lines = [f"# {esc(first_screen.headline(case))}", "", f"Run {code(run.get('id', '?'))}, {state}", ""]
    told = dict(first_rows.rows(case))
    rows = [("One of several", esc(run_list.heading(case))), ("Beware", esc("; ".join(told.pop("Beware", [])))), ("When", esc(clock))]
    if leader := first_screen.top(case):
        proven = "proven by replay, " if replayed.logs_alone(case) is not None else ""
        sure = f"{proven}{text_format.percent(leader['probability'])}" if proven else first_screen.why(leader)
        rows.append(("Cause", f"**{esc(first_screen.named(case))}**: {esc(sure)}"))
        others = first_screen.alternatives(case, least=0.0)
        rows.append(("Or else", ", ".join(f"{esc(h.get('title'))} {esc(text_format.percent(h['probability']))}" for h in others)))
    rows += [("Ruled out by the author", f"{esc(title)}: {esc(why)}") for title, why in first_screen.ruled_out(case)]
    rows += [("Author's note", esc(remark)) for remark in first_screen.remarks(case)]
    rows += [(name, "; ".join(map(esc, sentences))) for name, sentences in told.items()]
    lines += [f"- {name}: {text}" for name, text in rows if text]
    todo = [f"{esc(lead)} {action(text)}".strip() for lead, text in do_next.do_next(case)]
    return "\n".join(lines + (["", "## Do next", "", *_numbered(todo)] if todo else []))


def _numbered(items: list[str]) -> list[str]:
    return [f"{i}. {item}" for i, item in enumerate(items, 1)]


def _attempts(case: Case) -> str:
    head, rows = attempt_table.table(case)
    if not rows:
        return ""
    hidden = len(rows) - attempt_table.OPEN
    shown = [row(*(esc(text_format.cut(cell, CELL)) for cell in r)) for r in rows[: attempt_table.OPEN]]
    more = ["", f"and {text_format.plural(hidden, 'more attempt')} in the case file"] if hidden > 0 else []
    return "\n".join(["## Attempts", *table(tuple(head), shown), *more])


def _causes(case: Case) -> str:
    out = ["## Causes, best first"] if case["hypotheses"] else []
    for h in case["hypotheses"]:
        sure = first_screen.why(h)
        if ruled := h.get("ruled_out"):
            sure = f"ruled out: {ruled.get('because') if isinstance(ruled, dict) else ruled}"
        line = f"{esc(sure)}. Sum {decibans(h.get('score'))} dB. {esc(text_format.at(case['run'], h))}"
        out += ["", f"### {esc(h.get('title'))}", "", line.strip()]
        clues = [row(decibans(c.get("weight")), esc(c.get("text")), _ids(c.get("findings"))) for c in said_once(h["clues"])]
        out += table((">dB", "clue", "seen in"), clues) if clues else []
        if h.get("settle"):
            out += ["", f"What settles it: {action(h['settle'])}"]
        if h["interventions"]:
            out += ["", "What to do, quickest first:", "", *_numbered([action(t) for t in h["interventions"]])]
        if h["seen_before"]:
            out += ["", "Seen before:", "", *(f"- {esc(b['says'])} {code(b['source'])}" for b in h["seen_before"])]
    return "\n".join(out)


def _ids(findings: Any) -> str:
    return ", ".join(code(f) for f in findings or [])


def _symptoms(case: Case) -> str:
    ranked = sorted(case["findings"], key=lambda f: f.get("severity") == "info")[:MAX_FINDINGS]
    out = ["## Symptoms", ""] if ranked else []
    for f in sorted(ranked, key=lambda f: first_screen.first_step(f.get("steps"))):
        where = _ids([e["where"] for e in f["evidence"] if e.get("where")])
        at = "; ".join(filter(None, (text_format.at(case["run"], f), text_format.period(f.get("times")))))
        line = f"- **{esc(f.get('severity'))}** {code(f.get('id'))} {esc(at)}: {esc(f.get('title'))}"
        out.append(line + (f" ({where})" if where else ""))
    hidden = len(case["findings"]) - len(ranked)
    return "\n".join(out + ([f"- and {hidden} more in the case file"] if hidden else []))


def _replay(case: Case) -> str:
    replay = case.get("replay")
    if not isinstance(replay, dict):
        return ""
    spread = f"identical replays differ by {esc(number(replay.get('noise_floor')))}."
    intro = f"On {esc(replay.get('device'))}, {esc(replay.get('steps_replayed', '?'))} steps; {spread}"
    arms = [a for a in replay.get("arms") or [] if isinstance(a, dict)]
    rows = [row(esc(replayed.named(a)), esc(a.get("outcome")), esc(number(a.get("peak"))), esc(a.get("steps"))) for a in arms]
    head = ("experiment", "outcome", ">highest loss", ">steps")
    more = [line for text in [*replayed.said(case), *replayed.conditions(case)] for line in ("", esc(text))]
    for t in replayed.tables(case)[:1]:
        more += ["", f"### {esc(t['title'])}", *table(tuple(t["columns"]), [row(*(esc(number(c)) for c in r)) for r in t["rows"]])]
    return "\n".join([f"## Replay: {esc(replay.get('verdict'))}", "", intro, *more, *table(head, rows)])


def _checkpoints(case: Case) -> str:
    found = checkpoint_table.rows(case)
    if not found:
        return ""
    told = [f"- **{esc(severity)}** {esc(text)}" for severity, text in checkpoint_table.found(case)]
    shown = []
    for r in found:
        step, *others = (esc(x) for x in checkpoint_table.cells(r))
        shown.append(row(step, code(r["path"]), *others))
    out = ["## Checkpoints", "", *told] if told else ["## Checkpoints"]
    return "\n".join([*out, *table(checkpoint_table.HEAD, shown)])


def _checked(case: Case) -> str:
    clear = first_screen.by_status(case, "clear")
    rows = [row(code(c.get("id")), esc(c.get("smallest_effect")), esc(c.get("note"))) for c in clear]
    return "\n".join(["## Checked and clear", *table(("check", "it would have seen", "note"), rows)]) if rows else ""


def _unknown(case: Case) -> str:
    rows = []
    for b in case["blind_spots"]:
        rows.append(f"- {esc(b.get('what'))}: {esc(b.get('why'))}. It would show {esc(b.get('would_tell'))}.")
    for c in first_screen.by_status(case, "cannot_tell", "error"):
        rows.append(f"- {code(c.get('id'))} could not be checked: {esc(c.get('note'))}")
    return "\n".join(["## What could not be determined", "", *rows]) if rows else ""


def _beside(case: Case) -> str:
    others = case["run"]["siblings"]
    if not others:
        return ""
    shown = [row(esc(o["verdict"] or "not judged"), code(o["command"]), esc(run_list.short(o))) for o in others[: run_list.SHOWN]]
    more = ["", f"and {len(others) - run_list.SHOWN} more"] if len(others) > run_list.SHOWN else []
    head = ("verdict", "opened by", "answer")
    return "\n".join(["## The other runs", *table(head, shown), *more])


def _read(case: Case) -> str:
    rows = []
    for s in case["sources"]:
        sha = code(s["sha256"]) if s.get("sha256") else ""
        rows.append(row(code(s.get("path")), esc(s.get("format")), text_format.bytes_(s.get("bytes")), esc(s.get("records")), sha))
    told = [row(esc(f.get("what")), esc(f.get("value")), code(f["where"]) if f.get("where") else "") for f in case["run"]["facts"][:40]]
    beside = recipe_table.rows(case)
    out = [
        "## What was read",
        *(table(("what", ">value", "where"), told) if told else []),
        *(["", esc(recipe_table.title(case)), *table(recipe_table.HEAD, [row(*map(esc, r)) for r in beside])] if beside else []),
        "",
        *table(("file", "format", ">size", ">records", "sha256"), rows),
    ]
    if case["gaps"]:
        out += ["", "Not readable:", ""]
    for g in case["gaps"]:
        lost = f", {esc(g['lost'])} lost" if g.get("lost") else ""
        out.append(f"- {code(g.get('path'))}, {esc(g.get('at'))}: {esc(g.get('what'))}{lost}")
    if case.get("redacted"):
        out += ["", esc(case["redacted"])]
    tool = case["tool"]
    command = code(" ".join(text_format.one_line(p) for p in tool.get("command") or []))
    return "\n".join([*out, "", f"Made by {esc(tool.get('name', 'forensics'))} {esc(tool.get('version', ''))}: {command}"])
