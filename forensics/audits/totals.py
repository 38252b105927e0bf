"""What all runs of an audit cost together: by how they ended, by kind of loss, by node, owner and data shard."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from forensics.audits.row_columns import LOSSES
from forensics.causes.files import named_cause
from forensics.run.goodput import ENDED_BADLY

MOST = 100  # entries of a list; the rest stands in audit.parquet
Row = dict[str, Any]


def of(rows: Sequence[Row]) -> dict[str, Any]:
    """``costs`` of audit.json. Hours are GPU-hours, and null where they are known of no run."""
    costed = [r for r in rows if r["gpu_hours"] is not None]
    by = {"owner": _owner, "host": _names("host"), "shard": _names("shard"), "top_cause": _cause}
    return {
        "known": len(costed),
        "gpu_hours": _sum(costed, "gpu_hours"),
        "lost_gpu_hours": _sum(costed, "lost_gpu_hours"),
        "by_ending": _counted(str(r["ending"]) for r in rows if r["status"] in ENDED_BADLY),
        "by_loss": _sorted(_entry(kind, [(r, r[kind]) for r in costed if r[kind]]) for kind in LOSSES),
        **{f"by_{key}": _lost_by(costed, names) for key, names in by.items()},
        "to_start_again": sum((r["rerun"] or "").startswith("yes") for r in rows),
        "to_look_at_first": sum((r["rerun"] or "").startswith("not yet") for r in rows),
        "unknown": _counted(_why(r) for r in rows if r["gpu_hours"] is None),
    }


def _sum(rows: Sequence[Row], key: str) -> float | None:
    return round(sum(r[key] or 0.0 for r in rows), 6) if rows else None


def _counted(values: Iterable[str]) -> list[Row]:
    return [{"value": v, "runs": n} for v, n in Counter(values).most_common(MOST)]


def _lost_by(rows: Sequence[Row], names: Callable[[Row], list[str]]) -> list[Row]:
    """The values with the most hours lost first. A run on several nodes counts with each: nobody knows whose fault it was."""
    groups: dict[str, list[tuple[Row, float]]] = defaultdict(list)
    for r in rows:
        if r["lost_gpu_hours"]:
            for name in names(r):
                groups[name].append((r, r["lost_gpu_hours"]))
    return _sorted(_entry(name, members) for name, members in groups.items())


def _sorted(entries: Iterable[Row]) -> list[Row]:
    return sorted((e for e in entries if e["runs"]), key=lambda e: (-e["lost_gpu_hours"], -e["runs"], e["value"]))[:MOST]


def _entry(value: str, members: Sequence[tuple[Row, float]]) -> Row:
    return {"value": value, "runs": len(members), "lost_gpu_hours": round(sum(hours for _, hours in members), 6)}


def _names(key: str) -> Callable[[Row], list[str]]:
    return lambda r: str(r[key]).split(", ") if r[key] else []


def _owner(r: Row) -> list[str]:
    return [r["owner"]] if r["owner"] else []


def _cause(r: Row) -> list[str]:
    cause = named_cause(r)
    return [cause] if r["verdict"] == "unhealthy" and cause else []


def _why(r: Row) -> str:
    for part in str(r["why_null"] or "").split("; "):
        columns, _, reason = part.partition(": ")
        if "gpu_hours" in columns.split(", "):
            return reason
    return "it was analyzed by an earlier version"
