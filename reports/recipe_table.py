"""The run's settings beside those of published recipes of its kind: context, and no judgement."""

from __future__ import annotations

from typing import Any

from reports.text_format import joined, number, plural

HEAD = ("setting", ">this run", ">published", "it stands", ">recipes")


def title(case: dict[str, Any]) -> str:
    """'Beside 6 published recipes for a language model of 1.2e+07 parameters: ...'"""
    r = case["run"]["recipe"]
    size = f"{number(r['parameters'])} parameters ({r['how']})"
    return (
        f"Beside {plural(len(r['models']), 'published recipe')} for a {r['kind']} within three times its {size}: {joined(r['models'], 6)}"
    )


def columns() -> list[str]:
    """The heads of the columns, as a page shows them."""
    return [h.lstrip(">").capitalize() for h in HEAD]


def rows(case: dict[str, Any]) -> list[list[str]]:
    """Cells as text; empty where the run does not say its kind, size and optimizer."""
    told = case["run"]["recipe"]["rows"]
    return [[r["what"], number(r["here"]), _span(r["low"], r["high"]), r["stands"], str(r["recipes"])] for r in told]


def _span(low: Any, high: Any) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"
