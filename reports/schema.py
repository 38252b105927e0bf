"""The case as the outputs may rely on it: every part present and of its kind, whatever the file held.

A case can come from a damaged file or from another version; a page that shows the rest beats a traceback.
"""

from __future__ import annotations

import math
import shlex
from typing import Any


def text(x: Any) -> str:
    return x if isinstance(x, str) else "" if x is None or isinstance(x, (list, dict)) else str(x)


def number(x: Any) -> Any:
    """A number, or None."""
    return x if isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) < 1e300 else None


def index(x: Any) -> int:
    return int(number(x) or 0)


def share(x: Any) -> float:
    return min(max(float(number(x) or 0.0), 0.0), 1.0)


def steps(x: Any) -> list[Any]:
    """Two steps, each of which may be None."""
    return [number(v) for v in x] if isinstance(x, list) and len(x) == 2 else [None, None]


def times(x: Any) -> list[Any]:
    return [v if isinstance(v, str) else None for v in x] if isinstance(x, list) and len(x) == 2 else [None, None]


def points(x: Any) -> list[Any]:
    """[step, value] pairs; the value may be the string of a NaN or an infinity."""
    pairs = [p for p in x if isinstance(p, list) and len(p) == 2] if isinstance(x, list) else []
    return [[s, v if isinstance(v, str) else number(v)] for s, v in pairs if number(s) is not None]


def sibling(x: Any) -> dict[str, Any]:
    """Another run of the same place; an older case holds its path alone."""
    known = x if isinstance(x, dict) else {"id": x, "path": x}
    path = text(known.get("path")) or text(known.get("id"))
    told = {key: text(known.get(key)) for key in ("id", "status", "answer", "ended", "command")}
    told["verdict"] = one_of("unhealthy", "inconclusive", "healthy", "")(known.get("verdict"))
    return known | told | {"path": path, "command": told["command"] or f"forensics analyze {shlex.quote(path)}"}


def clock(x: Any) -> list[Any]:
    return sorted(p for p in points(x) if number(p[1]) is not None)


def one_of(*known: str) -> Any:
    return lambda x: x if x in known else known[-1]


MARK = {"step": number, "label": text, "kind": text}
BAND = {"from": number, "to": number, "kind": text}
ATTEMPTS = [{"attempt": index, "points": points}]
SERIES = {"metric": text, "tag": text, "unit": text, "scale": text, "lives": ATTEMPTS}
DATA = {"metric": text, "unit": text, "scale": text, "window": steps, "lives": ATTEMPTS, "marks": [MARK], "bands": [BAND],
        "columns": [text], "rows": [[None]], "lines": [text]}  # fmt: skip
SAVED = {"rows": [{"path": text, "step": number, "kind": text, "bytes": number, "optimizer_steps": number, "healthy": None, "complete": None,
                   "norms": {"weights": number}, "moved": {"relative": number, "step_over_rate": number}}],
         "findings": [{"path": text, "title": text, "severity": one_of("critical", "warning", "info")}]}  # fmt: skip
ATTEMPT = {"index": index, "steps": steps, "started": text, "ended": text, "why": text, "evidence": text}
FACT = {"what": text, "value": None, "where": text, "says": text, "against": [text]}
RECIPE = {"kind": text, "parameters": number, "how": text, "models": [text],
          "rows": [{"what": text, "here": number, "low": number, "high": number, "recipes": index, "stands": text}]}  # fmt: skip
RUN = {"id": text, "path": text, "status": text, "framework": text, "steps": steps, "siblings": [sibling], "metrics": {},
       "step_unit": text, "axis": {"unit": text, "steps": steps, "says": text}, "ending": {"kind": text, "says": text, "where": text}, "facts": [FACT],
       "records": {"scalars": index, "events": index, "batches": index, "checkpoints": index}, "goodput": {}, "checkpoints": SAVED, "attempts": [ATTEMPT],
       "again": {"says": text, "why": text, "first": text, "trouble_from": number}, "recipe": RECIPE, "last_lines": [{"path": text, "lines": [text]}]}  # fmt: skip
CLUE = {"text": text, "weight": number, "findings": [text], "part": text}
BEFORE = {"says": text, "source": text}
CAUSE = {"id": text, "title": text, "probability": share, "certainty": text, "score": number, "steps": steps, "clues": [CLUE],
         "settle": text, "interventions": [text], "seen_before": [BEFORE]}  # fmt: skip
SPIKE = {"metric": text, "start": number, "peak": number, "end": number, "class": text, "cost_steps": number,
         "class_probability": {}, "batches": [{"samples": [None]}]}  # fmt: skip
FINDING = {"id": text, "kind": text, "title": text, "steps": steps, "times": times, "facts": {},
           "severity": one_of("critical", "warning", "info"),
           "evidence": [{"kind": text, "title": text, "where": text, "data": DATA}]}  # fmt: skip
TIMELINE = {"series": [SERIES], "marks": [MARK], "bands": [BAND], "clock": [{"attempt": index, "points": clock}]}
WAIT = {"rank": index, "collective": index, "operation": text}
DIFFERENCE = {"unit": text, "points": points, "level": points, "noise": number, "parts": number}
PICTURES: dict[str, dict[str, Any]] = {
    "ranks": {"metric": text, "starts": [number], "rows": [{"rank": index, "last": index, "cells": [None]}], "waits": [WAIT], "silent": [number], "left_out": index,
              "heard": [{"rank": index, "from": number, "to": number}], "until": number},
    "layers": {"starts": [number], "rows": [{"layer": text, "cells": [None]}], "left_out": index},
    "memory": {"tag": text, "points": points, "capacity": number, "where": text, "tried": number},
    "seeds": {"metric": text, "scale": text, "runs": [{"id": text, "points": points, "last": number}], "left_out": index},
    "baseline": {"path": text, "metric": text, "scale": text, "run": points, "baseline": points,
                 "difference": DIFFERENCE},
    "evaluation": {"metric": text, "tag": text, "how": text, "points": [[None]], "best": number, "alike": index, "alike_from": number},
}  # fmt: skip
GUARD = {"guard": text, "tag": text, "fired": number, "lead": number, "false_alarms": index, "healthy_values": index}
SHAPE: dict[str, Any] = {
    "tool": {"name": text, "version": text, "command": [text]},
    "run": RUN,
    "verdict": one_of("healthy", "unhealthy", "inconclusive"),
    "answer": text,
    "redacted": text,
    "notes": [None],
    "hypotheses": [CAUSE],
    "spikes": [SPIKE],
    "findings": [FINDING],
    "checks": [{"id": text, "status": text, "note": text, "smallest_effect": text, "rule": text, "needs": [text]}],
    "culprits": [{"step": number, "samples": [None], "how": text}],
    "blind_spots": [{"what": text, "why": text, "would_tell": text}],
    "sources": [{"path": text, "format": text, "sha256": text, "note": text}],
    "gaps": [{"path": text, "at": text, "what": text}],
    "timeline": TIMELINE,
}


def complete(case: Any) -> dict[str, Any]:
    """The case in the shape above; keys that it does not name are kept as they are.

    ``steps`` of findings and causes are then places on the charts, and ``labels`` the same as the log prints them.
    """
    full: dict[str, Any] = shaped(plain(case), SHAPE)
    for told in (*full["findings"], *full["hypotheses"]):
        told["labels"], told["steps"] = told["steps"], steps(told.get("axis_steps") or told["steps"])
    replay = full.get("replay")
    arms = [{"name": text, "outcome": text}]
    looked = full.get("suspects")
    guards = full.get("guards")
    full["guards"] = shaped(guards, {"best": text, "says": text, "rows": [GUARD]}) if isinstance(guards, dict) else None
    told = full.get("pictures")
    drawn: dict[str, Any] = told if isinstance(told, dict) else {}
    full["pictures"] = {k: shaped(drawn[k], shape) if isinstance(drawn.get(k), dict) else None for k, shape in PICTURES.items()}
    full["suspects"] = shaped(looked, {"data": text, "why": text, "lines": [text], "habits": [text]}) if isinstance(looked, dict) else None
    full["replay"] = shaped(replay, {"verdict": text, "device": text, "arms": arms}) if isinstance(replay, dict) else None
    return full


def shaped(x: Any, shape: Any) -> Any:
    if isinstance(shape, dict):
        known = x if isinstance(x, dict) else {}
        return {**known, **{key: shaped(known.get(key), inner) for key, inner in shape.items()}}
    if isinstance(shape, list):
        kind = dict if isinstance(shape[0], dict) else list if isinstance(shape[0], list) else object
        return [shaped(each, shape[0]) for each in x if isinstance(each, kind)] if isinstance(x, list) else []
    return x if shape is None else shape(x)


def plain(x: Any) -> Any:
    """The case as JSON and UTF-8 can carry it: non-finite floats as strings, no half surrogate pairs."""
    if isinstance(x, (list, tuple)):
        return [v if type(v) is int or (type(v) is float and -math.inf < v < math.inf) else plain(v) for v in x]
    if isinstance(x, str):
        return x.encode("utf-8", "replace").decode("utf-8")
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    if isinstance(x, dict):
        return {plain(str(k)): plain(v) for k, v in x.items()}
    return x
