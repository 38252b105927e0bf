"""Ranks over the steps: who is behind, who is missing, and in which collective each one waits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.case_parts import heat_columns
from forensics.detectors import rank_disagreement, stall
from forensics.findings import findings_of
from forensics.run import hang_ranks
from forensics.run.series import Series, by_rank
from parsers.tables import DATED, Run

SHOWN = ("time.step", "loss.train", "grad.norm")  # where no finding names a metric: the first that two ranks logged
APART = math.log(1.2)  # as rank_disagreement has it for the time of a step; not critical: a picture, no verdict
TELLING = 32  # unit: rows that are kept for what they show; the others are at even distances


def ranks(run: Run, findings: Sequence[Finding[Any]]) -> dict[str, Any] | None:
    """The keys of `pictures.ranks`; None where nothing was found that sets ranks apart."""
    apart = [f.facts.metric for f in findings_of(findings, rank_disagreement.Apart)]
    stalled = bool(findings_of(findings, stall.Facts)) or bool(findings_of(findings, rank_disagreement.Steps))
    if not apart and not stalled:
        return None
    said = hang_ranks.said(run)
    waits = [
        {"rank": rank, "collective": number, "operation": what}
        for number, of in sorted(hang_ranks.works(said).items())
        for rank, what in sorted(of.items())
    ]
    found = _cells(next((each for n in (*apart, *SHOWN) if len(each := _each_rank(run, n)) > 1), []))
    if not apart and not _told_apart(found["rows"]):
        found = _cells([])
    heard, until = _heard(run, said) if stalled else ([], None)
    told = {"waits": waits[: heat_columns.ROWS], "silent": hang_ranks.silent(run, said), "heard": heard, "until": until, **found}
    return told if len(waits) > 1 or heard or found["rows"] else None


def _heard(run: Run, said: Sequence[hang_ranks.Event]) -> tuple[list[dict[str, Any]], float | None]:
    """From when to when each rank logged steps, and until when they waited: the last line that says so, else how long a collective is
    said to have run after the last step. Seconds since 1970."""
    each = next((s for n in SHOWN if len(s := _each_rank(run, n)) > 1), [])
    spans = [(s.rank, s.time[s.alive & (s.time >= DATED)]) for s in each]
    heard = [{"rank": rank, "from": float(time.min()), "to": float(time.max())} for rank, time in spans if len(time)]
    until = max((e["time"] for e in said if e["time"] is not None and e["time"] >= DATED), default=None)
    last = max((h["to"] for h in heard), default=None)
    if until is None and last is not None and (seconds := hang_ranks.waited(said)) is not None:
        until = last + seconds
    if until is None or last is None or until <= last or len(heard) < 2:
        return [], None
    kept = heat_columns.spread_out(sorted(range(len(heard)), key=lambda i: heard[i]["to"]), TELLING)
    return [heard[i] for i in kept], until


def _told_apart(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a rank stopped before the others, or is far from them anywhere."""
    far = any(v is not None and v > 0 and abs(math.log(v)) > APART for row in rows for v in row["cells"])
    return far or len({row["last"] for row in rows}) > 1


def _each_rank(run: Run, name: str) -> list[Series]:
    return [s for s in by_rank(run, name) if s.alive.any()]


def _cells(each: Sequence[Series]) -> dict[str, Any]:
    """Each rank's values over the median of all ranks, by columns of steps."""
    if not each:
        return {"metric": None, "starts": [], "rows": [], "left_out": 0}
    first = heat_columns.starts(each)
    table = np.array([heat_columns.cells(s, first, np.median) for s in each])
    finite = np.where(np.isfinite(table), table, np.nan)
    usual = np.array([np.nanmedian(c) if np.isfinite(c).any() else np.nan for c in finite.T])
    with np.errstate(all="ignore"):
        ratio = np.where(np.isinf(table), np.inf, np.where((usual > 0) & (table > 0), table / usual, np.nan))
        far = np.nanmax(np.where(np.isfinite(ratio), np.abs(np.log(ratio)), 0.0), axis=1)
    last = np.array([int(s.step[s.alive].max()) for s in each])
    order = sorted(range(len(each)), key=lambda i: (last[i] == last.max(), np.isfinite(ratio[i]).all(), -far[i]))
    kept = heat_columns.spread_out(order, TELLING)
    rows = [{"rank": each[i].rank, "last": int(last[i]), "cells": heat_columns.plain(ratio[i])} for i in kept]
    return {"metric": each[0].name, "starts": first.tolist(), "rows": rows, "left_out": len(each) - len(kept)}
