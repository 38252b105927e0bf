"""What an audit keeps of one run: its row, and what the comparisons across runs need. Small, plain JSON.

``row`` has the columns of `audit.parquet` (row_columns.py). The rest: ``identity`` (by where the run lies and how its first logs begin),
``family`` (framework and tag of the loss), ``config`` (last value of each key), ``settings`` (by meaning), ``levels`` (metric -> last level and its standard error), ``spikes`` ([start, class]), ``logged`` (first, last, interval
of the loss), ``resumes``, ``hosts``, ``shards`` (share of the steps) and ``struck`` (those of the spikes), ``batches`` (fingerprints at
the spikes), ``prefixes`` (hashes of the loss so far), ``grave`` (id, kind and first step of the findings that make the verdict),
``curve`` (0 to 99, -1 where not finite), ``guards`` (what each live guard would have done).
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from forensics.audits import gpu_hours, rerun, whose
from forensics.audits.row_columns import COLUMNS, EXPLAINED
from forensics.batches.recorded import batch, shares
from forensics.case import Case, jsonable
from forensics.case_parts.finding_kinds import kind_of
from forensics.certainty import of_cause
from forensics.findings import GRAVE, began
from forensics.guards import over_runs
from forensics.run import facts, recipe, settings
from forensics.run.goodput import ENDED_BADLY
from forensics.run.robust import median, robust_sigma
from forensics.run.series import Series, series
from parsers import arrow, secrets
from parsers.tables import DATED, Run

CURVE, GROWTH, FIRST = 32, 1.3, 12  # points of the small curve; of the hashes: distance and first
KEYS, TEXT, SPIKES, LOGS, ERROR = 300, 80, 60, 8, 300
LOSS = ("loss.train", "loss.eval")
_SETTINGS = ("batch_size", "accumulation", "optimizer", "schedule", "clip", "beta2", "eps", "width", "world_size")


def of(run: Run, case: Case) -> dict[str, Any]:
    """The record of an analyzed run. Taken from the case itself: its JSON takes a fifth of the time of an analysis."""
    loss = series(run, LOSS[0]) or series(run, LOSS[1])  # the one that the small curve draws
    levels = {n: level for n in LOSS if (level := last_level(series(run, n))) is not None}
    spikes = [(int(s["start"]), str(s["class"])) for s in case.spikes if s["class"] != "not_a_spike"][:SPIKES]
    shards = shares(run)
    struck = [b["shard"] for s, _ in spikes if (b := batch(run, s)) is not None and b["shard"] in shards]
    hosts, times = whose.hosts(run), _times(run)
    more = {"seconds": times[1] - times[0] if times else None, "host": _some(hosts), "shard": _some(list(dict.fromkeys(struck)))}
    return {
        "row": _row(run, case, loss) | more | _told(run, case),
        "identity": case.run["identity"][:LOGS],
        "family": f"{run.framework or ''}|{loss.tag if loss else ''}",
        "config": _config(run),
        "settings": _settings(run),
        "levels": levels,
        "spikes": spikes,
        "logged": [int(loss.step.min()), int(loss.step.max()), loss.interval] if loss is not None and len(loss) else None,
        "resumes": [a["steps"][0] for a in run.attempts[1:]],
        "hosts": hosts,
        "shards": dict(sorted(shards.items(), key=lambda x: (-x[1], x[0]))[:200]),
        "struck": struck,
        "batches": {str(s): _fingerprint(b["samples"]) for s, _ in spikes if (b := batch(run, s)) and b["samples"]},
        "prefixes": _prefixes(loss),
        "grave": [[f.id, kind_of(f.kind), f.first_step] for f in case.findings if f.severity in GRAVE][:SPIKES],
        "times": times,
        "curve": curve(loss),
        "guards": over_runs.of_run(run, case.findings, case.verdict),
    }


def failed(id: str, path: str, error: str) -> dict[str, Any]:
    """The record of a run that could not be analyzed."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    path, error = secrets.mask_shapes(path), secrets.mask_text(error)
    row |= {"id": id, "path": path, "status": "unknown", "verdict": "inconclusive", "answer": f"Could not be analyzed: {error}"}
    counts = ("spikes_fast", "spikes_slow", "spikes_non_recovering", "attempts", "scalars", "lost", "grave", "known")
    row |= dict.fromkeys(counts, 0)
    row |= {"error": error[:500], "why_null": _grouped(dict.fromkeys(EXPLAINED, "it could not be analyzed"))}
    nothing: dict[str, Any] = {"family": "", "config": {}, "settings": {}, "levels": {}, "spikes": [], "logged": None}
    nothing |= {
        "resumes": [],
        "hosts": [],
        "shards": {},
        "struck": [],
        "batches": {},
        "prefixes": "",
        "grave": [],
        "guards": [],
        "identity": "",
    }
    return {"row": row, **nothing, "times": None, "curve": []}


def _row(r: Run, case: Case, loss: Series | None) -> dict[str, Any]:
    run: dict[str, Any] = jsonable(
        {k: case.run[k] for k in ("id", "path", "framework", "status", "attempts", "steps", "records", "ending")}
    )
    causes = case.hypotheses if case.verdict != "healthy" else ()
    grave = [f for f in case.findings if f.severity in GRAVE]
    classes = [s["class"] for s in case.spikes]
    level = last_level(loss)
    found = {
        "id": run["id"],
        "path": run["path"],
        "framework": run["framework"],
        "status": run["status"],
        "verdict": case.verdict,
        "top_cause": causes[0].id if causes else None,
        "probability": round(float(causes[0].probability), 6) if causes else None,
        "certainty": of_cause(causes[0].title, causes[0].probability, True) if causes else None,
        "second_cause": causes[1].id if len(causes) > 1 else None,
        **{f"spikes_{c}": classes.count(c) for c in ("fast", "slow", "non_recovering")},
        "first_bad_step": facts.label(r, began(case.findings)),
        "attempts": len(run["attempts"]),
        "steps": run["steps"][1],
        "first_step": run["steps"][0],
        "scalars": run["records"]["scalars"],
        "lost": run["records"]["lost"],
        "answer": case.answer,
        "grave": len(grave),
        "known": 0,
        "loss": level and (level[0] if loss is not None and np.isfinite(loss.value[loss.alive][-1]) else math.nan),
        "loss_metric": level and (LOSS[0] if series(r, LOSS[0]) is loss else LOSS[1]),
        "started": run["attempts"][0]["started"] if run["attempts"] else None,
        "ending": run["ending"]["kind"] if run["ending"] else None,
        "error_line": run["ending"]["says"][:ERROR] or None if run["ending"] and run["status"] in ENDED_BADLY else None,
    }
    return {c: found.get(c) for c in COLUMNS}


def _told(run: Run, case: Case) -> dict[str, Any]:
    """What it cost, whose it was, whether to start it again; and for what of this is empty, why."""
    found: dict[str, Any] = {}
    why: dict[str, str] = {}
    for told, reasons in (gpu_hours.of(run, case), whose.of(run), rerun.of(run, case)):
        found |= told
        why |= reasons
    return found | {"why_null": _grouped(why)}


def _grouped(why: dict[str, str]) -> str | None:
    """'gpu_hours, lost_gpu_hours: its log has no clock; owner: ...'"""
    columns: dict[str, list[str]] = {}
    for column in EXPLAINED:
        if column in why:
            columns.setdefault(why[column], []).append(column)
    return "; ".join(f"{', '.join(of)}: {reason}" for reason, of in columns.items()) or None


def _some(names: list[str]) -> str | None:
    return ", ".join(names[:4]) or None


def last_level(s: Series | None) -> list[float] | None:
    """[median of the last tenth of the values, its standard error]; None with fewer than 3 values. NaN where the end is not finite."""
    if s is None or len(s) < 3:
        return None
    x = s.value[s.alive]
    last = x[-max(len(x) // 10, 3) :]
    if not np.isfinite(last).any():
        return [math.nan, math.nan]
    last = last[np.isfinite(last)]
    middle = median(last)
    return [middle, 1.25 * robust_sigma(last, middle) / math.sqrt(len(last))]


def curve(s: Series | None) -> list[int]:
    """The loss in `CURVE` buckets: the highest value of each, on a scale from 0 to 99 (log where it fits); -1: not finite."""
    if s is None or len(s) < 2:
        return []
    step, value = s.step[s.alive], s.value[s.alive]
    span = max(int(step.max() - step.min()), 1)
    bucket = ((step - step.min()) * (CURVE - 1) // span).astype(np.int64)
    finite = np.isfinite(value)
    if not finite.any():
        return [-1] * 2
    positive = bool((value[finite] > 0).all())
    y = np.log(value, where=finite & (value > 0), out=np.full(len(value), np.nan)) if positive else np.where(finite, value, np.nan)
    top = np.full(CURVE, np.nan)
    np.fmax.at(top, bucket, y)
    odd = np.zeros(CURVE, bool)
    odd[bucket[~finite]] = True
    low, high = float(np.nanmin(top)), float(np.nanmax(top))
    scaled = np.round((top - low) / ((high - low) or 1.0) * 99)
    return [-1 if odd[i] else int(scaled[i]) for i in range(CURVE) if odd[i] or np.isfinite(top[i])]


def _config(run: Run) -> dict[str, str]:
    return {str(k): _short(str(v)) for k, v in sorted(settings.last_values(run).items())[:KEYS]}


def _short(text: str) -> str:
    if len(text) <= TEXT:
        return text
    return f"{text[: TEXT - 20]} #{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _settings(run: Run) -> dict[str, Any]:
    told = recipe.recipe(run)
    found: dict[str, Any] = {"lr": told.rate, "warmup_steps": told.warmup, "precision": settings.precision(run)}
    for name in _SETTINGS:
        s = settings.setting(run, name)
        if s is not None and isinstance(s.value, (int, float, str, bool)):
            number = settings.as_number(s.value)
            found[name] = number if number is not None else str(s.value)[:TEXT]
    return {k: v for k, v in found.items() if v is not None}


def _fingerprint(samples: list[Any]) -> str:
    return hashlib.sha256("\0".join(sorted(map(str, samples))).encode()).hexdigest()[:12]


def _prefixes(s: Series | None) -> str:
    """`points:step:hash` of growing beginnings of the loss, separated by spaces; empty where it is too short or too flat."""
    if s is None:
        return ""
    step, value = s.step[s.alive], s.value[s.alive]
    if len(step) < FIRST or len(np.unique(value[:FIRST])) < 4:
        return ""
    digest, done, parts = hashlib.blake2b(digest_size=6), 0, []
    n = FIRST
    while True:
        digest.update(step[done:n].astype("<i8").tobytes() + value[done:n].astype("<f4").tobytes())
        parts.append(f"{n}:{int(step[n - 1])}:{digest.copy().hexdigest()}")
        if n == len(step):
            return " ".join(parts)
        done, n = n, min(int(n * GROWTH) + 1, len(step))


def _times(run: Run) -> list[float] | None:
    """First and last moment of its log, seconds since 1970."""
    time = run.tables["metrics"]["time"]
    if not len(time) or time.null_count == len(time):
        return None
    known, x = arrow.valid(time), arrow.values(time)  # pyarrow's own would import pandas
    x = x[(x >= DATED) & (True if known is None else known)]
    return [float(x.min()), float(x.max())] if len(x) else None
