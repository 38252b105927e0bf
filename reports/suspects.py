"""The samples that are blamed, and what was seen of them in the data, in a few lines."""

from __future__ import annotations

from typing import Any

from reports import text_format

Case = dict[str, Any]
NAMED = 12  # ids that a replay found: each is to be left out


def suspects(case: Case, limit: int = 3, most: int = 6) -> list[str]:
    """The samples that are blamed, one line a step."""
    lines = []
    for c in case["culprits"][:limit]:
        ids = c.get("samples") or []
        most = NAMED if c.get("how") == "bisected" else most
        shown = ", ".join(text_format.number(i) for i in ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
        sure = f"{c.get('how', '?')}, {text_format.percent(c.get('confidence'))}"
        whole = len(ids) > most and c.get("how") != "bisected"  # the batch, not what a replay found in it
        several = f"one or more of {len(ids)} samples: " if whole else f"sample{'s' * (len(ids) > 1)} "
        lines.append(f"step {c.get('step')}, " + (f"{several}{shown} ({sure})" if ids else f"its batch ({sure})"))
    hidden = len(case["culprits"]) - limit
    return lines + ([f"and {text_format.plural(hidden, 'step')} more"] if hidden > 0 else [])


def looked_at(case: Case, limit: int = 5) -> list[str]:
    """What `--data` showed of the suspects, or why nothing, and of random rows; [] where it was not asked for."""
    found = case.get("suspects")
    if not found:
        return []
    habits = found.get("habits") or []  # older cases have none
    if found["why"]:
        return [f"No sample of {found['data']} was set apart: {found['why']}", *habits]
    asked = f"{text_format.plural(int(found.get('looked_at') or 0), 'sample')} of {found['data']} compared with {found.get('random')} random rows"
    told = [f"{asked}: nothing stands out"] if not found["lines"] else [*found["lines"][:limit], asked]
    return [*told, *habits]


def how_to_read(case: Case) -> str:
    """How to see the samples that `--data` looked at; empty where nothing was looked at, or they are on the page."""
    found = case.get("suspects")
    if not found or not found.get("looked_at") or "--show-data" in (case["tool"].get("command") or []):
        return ""
    return "add --show-data to read the suspect samples on the page"
