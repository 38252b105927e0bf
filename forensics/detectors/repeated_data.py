"""Repeated data

What it sees
    After a restart the run sees batches again that it had seen at other steps.

How it decides
    With a manifest: five batches in a row hold the very samples of an earlier stretch at another step (the same steps done again
    after a rollback are no repetition). Without: the ups and downs of the loss after the restart repeat those of an
    earlier stretch (correlation of the residuals above 0.6 over at least 40 values), which also names the offset.

Cannot tell
    Without a restart; without a manifest where less than 40 values follow it.

Folklore
    "Loss is lower upon resumption because it repeats samples" (llm-foundry#1277).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forensics import evidence, excursions
from forensics.case import Finding
from forensics.errors import CannotTell
from forensics.series import series
from parsers.tables import Run

NEEDS: list[str] = []
IN_A_ROW, VALUES, CORRELATION = 5, 40, 0.6


def detect(run: Run) -> Iterator[Finding]:
    if len(run.attempts) < 2:
        raise CannotTell("the run was not restarted")
    batches = _batches(run)
    for attempt in range(1, len(run.attempts)):
        step = run.attempts[attempt]["steps"][0]
        found = _by_samples(batches, attempt) if batches else _by_residuals(run, attempt)
        if found is None:
            continue
        offset, how = found
        title = f"After the restart at step {step} the run sees the data of step {step - offset} and on again ({how})"
        facts = {
            "step": step,
            "offset": offset,
            "from_start": step - offset <= run.attempts[0]["steps"][0] + 1,
            "how": how,
        }
        shown = evidence.text(
            "the same data", [f"step {step + i} has the batch of step {step + i - offset}" for i in range(IN_A_ROW)]
        )
        yield Finding(
            f"repeated_data-{step}",
            "repeated_data",
            title,
            step,
            run.attempts[attempt]["steps"][1],
            "warning",
            (shown,),
            facts,
        )


def _batches(run: Run) -> dict[tuple[int, int], frozenset[str]]:
    """(attempt, step) -> samples."""
    table = run.tables["batches"]
    found: dict[tuple[int, int], set[str]] = {}
    for attempt, step, sample in zip(*(table[c].to_pylist() for c in ("attempt", "step", "sample")), strict=True):
        if sample is not None and step is not None:
            found.setdefault((attempt or 0, step), set()).add(sample)
    return {k: frozenset(v) for k, v in found.items()}


def _by_samples(batches: dict[tuple[int, int], frozenset[str]], attempt: int) -> tuple[int, str] | None:
    steps = sorted(s for a, s in batches if a == attempt)
    earlier: dict[frozenset[str], list[int]] = {}
    for (a, s), samples in batches.items():
        if a < attempt:
            earlier.setdefault(samples, []).append(s)
    for start in steps[:3]:
        for old in earlier.get(batches[attempt, start], []):
            offset = start - old
            run_of = [s for s in steps if start <= s < start + 3 * IN_A_ROW]
            same = [s for s in run_of if s - offset in earlier.get(batches[attempt, s], [])]
            if offset and len(same) >= IN_A_ROW:
                return offset, "by its samples"
    return None


def _by_residuals(run: Run, attempt: int) -> tuple[int, str] | None:
    s = series(run, "loss.train")
    if s is None:
        return None
    old = np.flatnonzero((s.attempt < attempt) & np.isfinite(s.value))
    new = np.flatnonzero((s.attempt == attempt) & np.isfinite(s.value))
    n = min(len(new), 200)
    if n < VALUES or len(old) < n or s.interval > 10:
        return None
    past, now = _residual(s.value[old]), _residual(s.value[new[:n]])
    windows = np.lib.stride_tricks.sliding_window_view(past, n)
    centred = windows - windows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1) * np.linalg.norm(now - now.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(centred @ (now - now.mean()) / norms)
    best = int(np.argmax(correlation))
    offset = int(s.step[new[0]] - s.step[old[best]])
    return (
        (offset, "by the ups and downs of the loss")
        if correlation[best] > CORRELATION and abs(offset) > s.interval
        else None
    )


def _residual(x: np.ndarray) -> np.ndarray:
    return np.clip(x - excursions.centred_median(x, 15), *np.percentile(x - excursions.centred_median(x, 15), [1, 99]))


def smallest_effect(run: Run) -> str:
    return (
        f"{IN_A_ROW} batches in a row"
        if run.tables["batches"].num_rows
        else f"{VALUES} values whose ups and downs agree"
    )
