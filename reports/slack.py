"""The case as the payload of a Slack message (Block Kit), for an incoming webhook.

All text is `plain_text`: nothing in a log can become markup, a mention or a link.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reports import audit_totals, do_next, first_rows, first_screen, text_format
from reports.audit_rows import hours
from reports.schema import complete
from reports.text_format import cut, one_line

HEADER, SECTION, FALLBACK = 150, 3000, 300  # characters: Slack's limits of a header and a section, ours of the text of a notification
SIGNS = {"unhealthy": "\U0001f534", "healthy": "\U0001f7e2", "inconclusive": "\U0001f7e1"}
RUNS = 10  # that an audit names
Case = dict[str, Any]


def render(case: Case) -> str:
    """Verdict, answer, when, causes and what to do next."""
    full = complete(case)
    rows = [("When", "; ".join(filter(None, first_screen.when(full))))]
    if leader := first_screen.top(full):
        rows.append(("Why", f"{leader['title']}: {first_screen.why(leader)}"))
        others = first_screen.alternatives(full)
        rows.append(("Or else", ", ".join(f"{h['title']} {text_format.percent(h['probability'])}" for h in others)))
    rows += [(name, "; ".join(told)) for name, told in first_rows.rows(full)]
    todo = [f"{i}. {one_line(f'{lead} {text}')}" for i, (lead, text) in enumerate(do_next.do_next(full), 1)]
    title = f"{SIGNS[full['verdict']]} {full['run']['id']}: {full['verdict']}"
    return _message(title, full["answer"], [f"{name}: {one_line(text)}" for name, text in rows if text], todo)


def audit(document: Case) -> str:
    """How many runs went wrong, what is new since the last night or the earlier audit, and the worst."""
    since, history = document["since"], document["history"]
    news = [_new(n) for n in history["new"]] if history is not None else []
    news = [f"New since {text_format.moment(history['last'])}:", *_some(news)] if news else []
    news += _some(
        [
            f"{kind.replace('_', ' ')}: {one_line(c['id'])}, {one_line(c['why'] or c['verdict'])}"
            for kind in since or {}
            for c in since[kind]
        ]
    )
    bad = [r for r in document["rows"] if r["verdict"] == "unhealthy"]
    worst = _some([f"{one_line(r['id'])}: {cut(one_line(r['answer']), 200)}" for r in bad])
    sign = SIGNS["unhealthy" if bad else "healthy"]
    return _message(f"{sign} Audit of {text_format.plural(document['runs'], 'run')}", audit_totals.headline(document), news, worst)


def _new(n: Case) -> str:
    lost = f" {hours(n['lost_gpu_hours'])} GPU-hours lost." if n["lost_gpu_hours"] else ""
    again = f" Run again: {n['rerun']}." if str(n["rerun"]).startswith("yes") else ""
    return one_line(f"{n['id']}{f' ({owner})' if (owner := n['owner']) else ''}: {cut(n['answer'], 200)}{lost}{again}")


def _some(lines: Sequence[str]) -> list[str]:
    return [*lines[:RUNS], *([f"and {len(lines) - RUNS} more"] if len(lines) > RUNS else [])]


def _message(title: str, answer: str, *parts: Sequence[str]) -> str:
    blocks: list[Case] = [{"type": "header", "text": _text(title, HEADER)}]
    for text in (answer, *("\n".join(lines) for lines in parts)):
        if text:
            blocks.append({"type": "section", "text": _text(text, SECTION)})
    shown = (
        cut(one_line(f"{title}. {answer}"), FALLBACK).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )  # this one is markup
    return json.dumps({"text": shown, "blocks": blocks}, indent=1) + "\n"


def _text(text: str, most: int) -> Case:
    shown = "\n".join(one_line(line) for line in text.split("\n"))
    return {"type": "plain_text", "text": cut(shown, most), "emoji": False}
