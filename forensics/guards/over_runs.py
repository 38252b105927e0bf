"""What each guard would have done over many runs: where it would have caught the harm, and its false alarms on the healthy ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from forensics.case import Finding
from forensics.guards.backtest import backtests, harms
from forensics.guards.guard_table import GUARDS
from parsers.tables import Run

HEALTHY, UNHEALTHY = "healthy", "unhealthy"
Told = Sequence[Any]  # [guard, verdict, whether its harm is there, steps from its firing to the harm or None, false alarms, values]


def of_run(run: Run, findings: Sequence[Finding[Any]], verdict: str) -> list[Told]:
    """One entry for each guard whose metric was logged. A run that cannot be judged tells nothing of a guard."""
    if verdict not in (HEALTHY, UNHEALTHY):
        return []
    found = () if verdict == HEALTHY else findings
    kinds = {f.kind for f in harms(found)}
    catches = {rule.name: kinds & set(rule.catches) for rule in GUARDS}
    return [[b.guard, verdict, bool(catches[b.guard]), b.lead, b.false_alarms, b.healthy_values] for b in backtests(run, found)]


def table(told: Iterable[Told]) -> list[dict[str, Any]]:
    """One row for each guard whose metric some run logged: ``{"guard", "says", "runs", "harmed", "caught", "before", "healthy", "alarmed",
    "alarms", "values"}``. `harmed`: runs with the harm that it is there for; `before`: of these, at least one step earlier; `alarmed`: of the
    healthy runs, those with an alarm, which is a false one; `alarms` and `values` are counted in healthy runs, too."""
    by_guard: dict[str, list[Told]] = {}
    for entry in told:
        by_guard.setdefault(entry[0], []).append(entry)
    rows = []
    for rule in GUARDS:
        mine = by_guard.get(rule.name, [])
        harmed, healthy = [t for t in mine if t[2]], [t for t in mine if t[1] == HEALTHY]
        counts = {
            "runs": len(mine), "harmed": len(harmed), "caught": sum(t[3] is not None for t in harmed),
            "before": sum((t[3] or 0) > 0 for t in harmed), "healthy": len(healthy), "alarmed": sum(t[4] > 0 for t in healthy),
            "alarms": sum(t[4] for t in healthy), "values": sum(t[5] for t in healthy),
        }  # fmt: skip
        rows += [{"guard": rule.name, "says": rule.says, **counts}] if mine else []
    return rows
