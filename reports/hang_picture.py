"""A hang on the wall clock: when each rank was last heard of, and in which collective it waits."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from markupsafe import Markup

from reports import clock_ticks, text_format
from reports.labels import Label, pct, place, tag, text
from reports.scales import Scale, value

Case = dict[str, Any]
ROOM, MANY = 34, 12  # pixels of a row; rows beyond which they are thin and without words
THIN = 8


def picture(case: Case) -> Case | None:
    told = case["pictures"]["ranks"]
    lines = _waiting(told) if told else []
    if told is None or not (lines or told["heard"]):
        return None
    shown = {"id": "hang", "title": "Where each rank waits", "lines": lines}
    until = value(told["until"])
    heard = [h for h in told["heard"] if None not in (h["from"], h["to"]) and h["from"] <= h["to"] < until]
    if not heard:
        return shown if lines else None
    first = min(h["to"] for h in heard)
    behind = [str(h["rank"]) for h in heard if h["to"] < max(h["to"] for h in heard) - 1]
    quiet = f"No rank logged a step in the last {text_format.duration(until - max(h['to'] for h in heard))}."
    early = f" Rank {text_format.joined(behind)} stopped first, {text_format.duration(max(h['to'] for h in heard) - first)} before the last one."
    says = quiet + (early if behind and len(behind) < len(heard) else "")
    told = {**told, "heard": heard}
    legend = [("a-kept", "logs steps"), ("a-silent", "waits")]
    return shown | {"says": says, "svg": _drawn(told, until, says), "legend": legend}


def _drawn(told: Case, until: float, says: str) -> Markup:
    heard, waits = told["heard"], {w["rank"]: f"waits in {w['operation']}" for w in told["waits"]}
    x = Scale(min(h["from"] for h in heard), until)
    room = ROOM if len(heard) <= MANY else THIN
    height = room * len(heard)
    out = [tag('<svg class="plot" width="100%" height="{}" role="img" aria-label="{}">', height + 38, says)]
    for i, h in enumerate(heard):
        y, high = room * (i + 1) - (14 if room == ROOM else THIN), 11 if room == ROOM else THIN - 2
        for kind, a, b in (("a-kept", h["from"], h["to"]), ("a-silent", h["to"], until)):
            shape = '<rect class="{}" x="{}" width="{}" y="{}" height="{}"/>'
            out.append(tag(shape, kind, pct(x(a)), pct(max(x(b) - x(a), 0.002)), y, high))
        if room == ROOM:
            out.append(tag('<text class="yl" x="-7" y="{}">rank {}</text>', y + 10, h["rank"]))
            out += [text(label, y - 5) for label in place([Label(x(h["to"]), waits.get(h["rank"], "says nothing more"), "")], 1, 480)]
    out.append(tag('<text class="yl" x="-7" y="{}">UTC</text>', height + 16))
    return Markup("").join([*out, *clock_ticks.drawn(x, height + 16), Markup("</svg>")])


def _waiting(told: Case) -> list[str]:
    """'Collective 3121: rank 0 waits in BROADCAST of 5056 numbers.' One line for all ranks that wait in the same."""
    by = sorted(told["waits"], key=lambda w: (w["collective"], w["operation"], w["rank"]))
    lines = []
    for (number, what), same in groupby(by, key=lambda w: (w["collective"], w["operation"])):
        ranks = [str(w["rank"]) for w in same]
        who = f"ranks {text_format.joined(ranks, 12)} wait" if len(ranks) > 1 else f"rank {ranks[0]} waits"
        lines.append(f"Collective {number}: {who} in {what}.")
    silent = [str(r) for r in told["silent"]]
    return lines + ([f"Rank {text_format.joined(silent)} says nothing."] if silent else [])
