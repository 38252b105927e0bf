"""Runs by the week in which they ended: how many died, what they cost, what of that was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from forensics.run.goodput import ENDED_BADLY

MOST = 520  # weeks: ten years; what is older has a wrong clock
AHEAD = timedelta(days=1)  # by which a clock may be ahead of the audit's: time zones


def weeks(rows: Iterable[Mapping[str, Any]], night: datetime) -> tuple[list[dict[str, Any]], int]:
    """(the weeks in order, those without a run included; how many runs stand in none, for their log has no clock that can be right).

    A week is ``{"week": "2026-W48", "from": "2026-11-23", "runs", "died", "costed", "gpu_hours", "lost_gpu_hours"}``; ``costed`` is how many
    of its runs have known hours."""
    found: dict[datetime, dict[str, Any]] = {}
    undated = 0
    for row in rows:
        monday = _monday(row, night)
        if monday is None:
            undated += 1
            continue
        week = found.setdefault(monday, _empty(monday))
        week["runs"] += 1
        week["died"] += row["status"] in ENDED_BADLY
        if row["gpu_hours"] is not None:
            week["costed"] += 1
            for key in ("gpu_hours", "lost_gpu_hours"):
                week[key] = round(week[key] + (row[key] or 0.0), 6)
    if not found:
        return [], undated
    first, last = min(found), max(found)
    return [found.get(m) or _empty(m) for i in range((last - first).days // 7 + 1) if (m := first + timedelta(weeks=i))], undated


def _empty(monday: datetime) -> dict[str, Any]:
    year, week, _ = monday.isocalendar()
    told = {"week": f"{year}-W{week:02d}", "from": f"{monday:%Y-%m-%d}"}
    return told | {"runs": 0, "died": 0, "costed": 0, "gpu_hours": 0.0, "lost_gpu_hours": 0.0}


def _monday(row: Mapping[str, Any], night: datetime) -> datetime | None:
    """Of the week of the last clock in the log."""
    try:
        ended = datetime.fromisoformat(str(row["started"])).replace(tzinfo=UTC) + timedelta(seconds=row["seconds"] or 0.0)
    except (ValueError, OverflowError):
        return None
    if not night - timedelta(weeks=MOST) < ended < night + AHEAD:
        return None
    return datetime(ended.year, ended.month, ended.day, tzinfo=UTC) - timedelta(days=ended.weekday())
