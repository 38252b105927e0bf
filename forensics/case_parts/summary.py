"""The plain tables of the case: the run in figures, spikes, sources, gaps."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forensics.batches import step_to_samples
from forensics.case import Finding
from forensics.checkpoints import run_saves, saves_section
from forensics.detectors import loss_spike
from forensics.published import recipes
from forensics.run import endings, facts, goodput, how_it_ended, identity, metric_aliases
from forensics.run.series import names, series
from parsers import arrow, secrets
from parsers.tables import DATED, Run
from parsers.walk import is_regular

HASHED = 512 * 1024 * 1024  # larger files carry no hash
CHECKPOINTS = "checkpoint_files"
MOST_OTHERS = 5000  # metrics without a meaning that the case lists; the tables have all


def run(r: Run, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    (steps, unit), planned = facts.labels(r), facts.planned(r)
    shown = secrets.names([r.path, *(s["path"] for s in r.siblings)])
    return {
        "id": r.id,
        "path": shown.get(r.path, r.path),
        "identity": identity.of(r),
        "step_origin": endings.step_origin(r),
        "siblings": [s | {"path": shown.get(s["path"], s["path"])} for s in r.siblings],
        "framework": r.framework,
        "config_file": _config_file(r),
        "status": how_it_ended.status(r),
        "steps": steps,
        "step_unit": unit,
        "axis": facts.axis(r),
        "ending": how_it_ended.shown(r),
        "planned_steps": planned.value if planned is not None else None,
        "facts": facts.facts(r),
        "recipe": recipes.beside(r),
        "attempts": how_it_ended.attempts(r),
        "records": {
            "scalars": r.tables["metrics"].num_rows,
            "events": r.tables["events"].num_rows,
            "batches": len(arrow.distinct(r.tables["batches"]["step"])),
            "checkpoints": _checkpoints(r),
            "lost": sum(g.lost or 0 for g in r.gaps),
            "merged": r.merged,
        },
        "goodput": goodput.measure(r),
        "last_healthy_checkpoint": run_saves.last_healthy(r, findings),
        "checkpoints": saves_section.section(r),
        "metrics": {n: _metric(r, n) for n in _listed(r) if series(r, n) is not None},
    }


def _config_file(r: Run) -> dict[str, Any] | None:
    """The forensics.toml that came with the run, and what it changed."""
    if r.aliases is None or not r.aliases.of_run:
        return None
    return {"path": metric_aliases.FILE, "metrics": r.aliases.of_run, "changes": metric_aliases.changes(r, r.aliases)}


def _listed(r: Run) -> list[str]:
    """The names that are told of one by one: all that mean something, and the first MOST_OTHERS of the others."""
    others = [n for n in names(r) if n.startswith(("other/", "axis/"))]
    left_out = set(others[MOST_OTHERS:])
    return [n for n in names(r) if n not in left_out]


def _metric(r: Run, name: str) -> dict[str, Any]:
    s = series(r, name)
    assert s is not None
    meaning = r.meanings.get((s.source[0], s.tag))
    trap = {"trap": meaning.trap} if meaning and meaning.trap else {}
    several = {"values_a_step": int(np.median(s.count))} if s.count is not None else {}
    return {"tag": s.tag, "points": len(s), "unit": s.unit, "smoothing": s.smoothing, "interval": s.interval, **several, **trap}


def _checkpoints(r: Run) -> int:
    """Checkpoints, not files: those of one folder and step are one."""
    table = r.tables["checkpoints"]
    return len({(row["step"], row["source"].rpartition("/")[0]) for row in table.select(["step", "source"]).to_pylist()})


def spikes(r: Run, findings: Sequence[Finding]) -> tuple[dict[str, Any], ...]:
    keys = ("metric", "start", "peak", "end", "class", "class_probability", "height", "noise_sigmas", "censored", "cost_steps")
    found = [(f, f.facts.to_json()) for f in findings if isinstance(f.facts, loss_spike.Facts)]
    return tuple({k: facts[k] for k in keys} | {"finding": f.id, "batches": _batches(r, f)} for f, facts in found)


def _batches(r: Run, spike: Finding[loss_spike.Facts]) -> list[dict[str, Any]]:
    """The batches from the start of a spike to its peak, the first few: recorded, or rebuilt where the loader is known."""
    steps = range(spike.facts.start, min(spike.facts.peak, spike.facts.start + 7) + 1)
    return [b for s in steps if (b := step_to_samples.batch(r, s, spike.facts.attempt)) is not None]


def sources(r: Run) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "path": s.path,
            "format": s.format,
            "bytes": s.bytes,
            "records": s.records,
            "sha256": _sha256(r.file(s.path), s.format, s.claimed),
            "claimed": s.claimed,
            "note": s.note,
        }
        for s in sorted(r.sources, key=lambda s: (not s.claimed, s.path))
    )


def _sha256(path: Path, fmt: str, claimed: bool) -> str | None:
    """Of logs and configs; checkpoints carry the hash of their first MiB, where their header is."""
    try:
        if not claimed or not is_regular(path) or (os.path.getsize(path) > HASHED and fmt != CHECKPOINTS):
            return None
        with path.open("rb") as f:
            if fmt == CHECKPOINTS:
                return hashlib.sha256(f.read(1 << 20)).hexdigest()
            return hashlib.file_digest(f, "sha256").hexdigest()
    except OSError:
        return None


def gaps(r: Run) -> tuple[dict[str, Any], ...]:
    return tuple({"path": g.path, "at": g.at, "what": g.what, "lost": g.lost} for g in r.gaps)


def clock(r: Run, points: int = 40, pauses: int = 10) -> list[dict[str, Any]]:
    """(step, seconds since 1970) along each attempt, thinned, with both sides of its longest pauses: lets a page write UTC beside any step."""
    best = max((series(r, n) for n in _listed(r)), key=lambda s: int((s.time >= DATED).sum()) if s is not None else -1, default=None)
    if best is None or not (best.time >= DATED).any():
        return []
    found = []
    for a in np.unique(best.attempt):
        rows = np.flatnonzero((best.attempt == a) & (best.time >= DATED))
        if len(rows):
            longest = np.argsort(-np.diff(best.time[rows]), kind="stable")[:pauses]
            picked = rows[np.unique(np.r_[np.linspace(0, len(rows) - 1, min(points, len(rows))).astype(int), longest, longest + 1])]
            found.append({"attempt": int(a), "points": [[int(best.step[i]), float(best.time[i])] for i in picked]})
    return found
