"""The loss of two runs against steps, wall time, tokens and FLOPs: a better number at equal steps can be a worse one at equal cost."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from forensics.run import settings
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import Series, series
from forensics.spikes.excursions import Floats
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

AXES = (("steps", "steps"), ("seconds", "seconds of training"), ("tokens", "tokens"), ("flops", "FLOPs"))
_SEQUENCE = lazy_re(r"(?i)^(seq(uence)?_?len(gth)?|max_seq(uence)?_?len(gth)?|block_size|context_length|n_ctx|seq_length)$")
_PARAMETERS = lazy_re(r"(?i)^(n|num|total|model)_?(trainable_?)?param(eter)?s?(_count|_total)?$")
_WHOLE_BATCH = lazy_re(r"(?i)^(global|total|effective)_batch_size$")
_BATCH = lazy_re(r"(?i)^(per_device_)?(train_)?batch_size$")
PAUSE = 20.0  # times the usual step: what takes longer was no training


def table(a: Run, b: Run, name: str) -> list[dict[str, Any]]:
    """One entry an axis: ``{"axis", "at", "a", "b", "sigma", "better", "cannot_tell", "reach"}``; `at` is how far both came, ``reach`` where
    each came as low as the worse of the two ends."""
    pair = [series(r, name) for r in (a, b)]
    if any(s is None for s in pair):
        return []
    found = []
    for axis, _ in AXES:
        sides = [_against(r, s, axis) for r, s in zip((a, b), pair, strict=True) if s is not None]
        missing = [side if isinstance(side, str) else "" for side in sides]
        if any(missing):
            why = "; ".join(f"{n}: {m}" for n, m in zip("AB", missing, strict=True) if m)
            found.append({"axis": axis, "at": None, "a": None, "b": None, "sigma": None, "better": None, "cannot_tell": why, "reach": None})
        else:
            found.append(_entry(axis, [x for x in sides if not isinstance(x, str)]))
    return found


def _entry(axis: str, sides: list[tuple[Floats, Floats]]) -> dict[str, Any]:
    at = min(float(x.max()) for x, _ in sides)
    ends = [_level(x, y, at) for x, y in sides]
    sigma = float(np.hypot(ends[0][1], ends[1][1]))
    apart = ends[1][0] - ends[0][0]
    better = None if not np.isfinite(apart) or abs(apart) <= 3 * sigma else "A" if apart > 0 else "B"
    worst = max(ends[0][0], ends[1][0])
    reach = [_reach(x, y, worst) for x, y in sides]
    return {"axis": axis, "at": at, "a": ends[0][0], "b": ends[1][0], "sigma": sigma, "better": better, "cannot_tell": "", "reach": reach}


def _level(x: Floats, y: Floats, at: float) -> tuple[float, float]:
    """Median over the last twentieth before `at`, and its standard error."""
    before = np.flatnonzero(x <= at)
    last = y[before[-max(len(before) // 20, 5) :]]
    middle = median(last)
    return middle, error_of_median(robust_sigma(last, middle), len(last))


def _reach(x: Floats, y: Floats, level: float) -> float | None:
    """Where the running median first comes down to a level."""
    from forensics.spikes.medians import rolling_median

    low = np.flatnonzero(rolling_median(y, 15) <= level)
    return float(x[low[0]]) if len(low) else None


def _against(run: Run, s: Series, axis: str) -> tuple[Floats, Floats] | str:
    """(position, loss) of the surviving values, or why the axis is not known."""
    keep = s.usable
    step, value = s.step[keep].astype(np.float64), s.value[keep]
    if len(step) < 10:
        return "too few values"
    if axis == "steps":
        return step, value
    if axis == "seconds":
        time = s.time[keep]
        return (_worked(time), value) if np.isfinite(time).all() else "no clock was logged"
    tokens = _tokens(run, step)
    if isinstance(tokens, str):
        return tokens
    if axis == "tokens":
        return tokens, value
    size = _config_number(run, _PARAMETERS)
    return (6 * size * tokens, value) if size else "the number of parameters was not logged"


def _worked(time: Floats) -> Floats:
    """Seconds of training: pauses (a night between two attempts) count as one usual step."""
    pauses = np.maximum(np.diff(time), 0.0)
    usual = median(pauses) if len(pauses) else 0.0
    pauses = np.where(pauses > PAUSE * usual, usual, pauses) if usual > 0 else pauses
    return np.concatenate([[0.0], np.cumsum(pauses)])


def _tokens(run: Run, step: Floats) -> Floats | str:
    seen = series(run, "tokens.seen")
    if seen is not None and seen.alive.sum() > 1:
        return np.interp(step, seen.step[seen.alive], seen.value[seen.alive])
    length, batch = _config_number(run, _SEQUENCE), _config_number(run, _WHOLE_BATCH)
    if not batch:
        batch = (_config_number(run, _BATCH) or 0.0) * (settings.number(run, "accumulation") or 1.0)
        batch *= settings.number(run, "world_size") or 1.0
    if not batch or not length:
        return "tokens were not logged, and config does not say batch and sequence length"
    return step * batch * length


def _config_number(run: Run, wanted: re.Pattern[str]) -> float | None:
    found = [settings.as_number(v.strip('"')) for k, v in settings.last_values(run).items() if wanted.match(re.split(r"[./]", k)[-1])]
    return next((x for x in found if x and x > 0), None)
