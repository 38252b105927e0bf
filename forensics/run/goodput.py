"""Goodput: how much of what a run did was of use, and whether it saved as often as its interruptions ask for.

A step is useful where no later attempt did it again. Young (CACM 17(9), 1974) and Daly (2006): with C seconds for a save and
M seconds between interruptions, saving every sqrt(2 C M) seconds loses least.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from forensics.run import done_twice, endings, how_it_ended, pace, settings
from forensics.run.robust import median, robust_sigma
from forensics.run.series import series
from parsers import arrow
from parsers.tables import Run

ENDED_BADLY = ("crashed", "hung", "stopped")
LEAST_SAVES = 3
MOST_PROCESSES = 100_000
SAVE_KEYS = "save_every save_steps save_interval save_freq checkpoint_interval checkpoint_every ckpt_interval"


def measure(run: Run) -> dict[str, Any]:
    """The keys of ``run.goodput`` in docs/case.md; what the log does not tell is None. Times in seconds."""
    spans = [a["steps"] for a in run.attempts]
    done = sum(b - a + 1 for a, b in spans)
    twice = [done_twice.steps(run, before, after) for before, after in pairwise(run.attempts)]
    lost = sum(twice)
    interruptions = max(len(spans) - 1, 0) + (how_it_ended.status(run) in ENDED_BADLY)
    doubted = pace.is_doubted(run)
    clocked = [a for a in run.attempts if a["started"] is not None and a["ended"] is not None and not doubted]
    running = sum(a["ended"] - a["started"] for a in clocked) if len(clocked) == len(spans) and spans else None
    down = sum(max(b["started"] - a["ended"], 0) for a, b in zip(clocked, clocked[1:], strict=False)) if running else None
    kept = [max(1 - n / max(b - a + 1, 1), 0) for (a, b), n in zip(spans, twice, strict=False)] + [1.0]
    useful = sum(k * (a["ended"] - a["started"]) for k, a in zip(kept, clocked, strict=True)) if running else None
    between = running / interruptions if running and interruptions else None
    a_step = running / done if running and done else None
    every, save = cadence(run), save_seconds(run)
    best = math.sqrt(2 * save * between) if save and between else None
    return {
        "interruptions": interruptions,
        "steps_done": done,
        "steps_lost": lost,
        "processes": processes(run),
        "share_steps": round((done - lost) / done, 4) if done else None,
        "seconds_running": running,
        "seconds_down": down,
        "share_time": round(useful / (running + (down or 0)), 4) if running and useful is not None else None,
        "seconds_between": between,
        "checkpoint_every_steps": every,
        "checkpoint_every_seconds": every * a_step if every and a_step else None,
        "save_seconds": save,
        "best_every_seconds": best,
        "best_every_steps": max(round(best / a_step), 1) if best and a_step else None,
    }


def processes(run: Run) -> int | None:
    """How many processes trained at once, as config says or as the ranks in the log show; None where neither tells."""
    said = [settings.as_number(s.value) for s in settings.named(run, "world_size num_processes num_gpus")]
    ranks = arrow.distinct(run.tables["metrics"]["rank"])
    known = [int(n) for n in said if n and 1 <= n <= MOST_PROCESSES and n == int(n)] + ([max(ranks) + 1] if len(ranks) > 1 else [])
    return max(known, default=None)


def cadence(run: Run) -> int | None:
    """Steps between checkpoints: the usual distance of those that were saved, else what config says."""
    steps = {e["step"] for e in endings.events(run, "checkpoint_saved") if e["step"]}
    steps |= {s for s in run.tables["checkpoints"]["step"].to_pylist() if s}
    if len(steps) >= LEAST_SAVES:
        return int(np.median(np.diff(sorted(steps))))
    said = [settings.as_number(s.value) for s in settings.named(run, SAVE_KEYS)]
    return next((int(n) for n in said if n and n >= 1), None)


def save_seconds(run: Run) -> float | None:
    """What a save costs: how much longer the steps take that follow one, where that stands out of the noise."""
    s = series(run, "loss.train")
    saved = {e["step"] for e in endings.events(run, "checkpoint_saved") if e["step"]}
    if s is None or len(saved) < LEAST_SAVES or np.isfinite(s.time).sum() < 10:
        return None
    p = pace.pauses(s)
    steps = s.step[p.row].tolist()
    holds = np.array([any(x in saved for x in range(a, b + 1)) for a, b in zip(steps, steps[1:], strict=False)])
    known = np.isfinite(p.seconds) & (p.steps > 0)
    at_save, else_where = p.seconds[known & holds], p.seconds[known & ~holds]
    if len(at_save) < LEAST_SAVES or len(else_where) < 10:
        return None
    usual = median(else_where)
    noise = robust_sigma(else_where, usual)
    # a save touches one of the two intervals at its step, so that the longer half of them holds it
    cost = median(np.sort(at_save)[len(at_save) // 2 :]) - usual
    return cost if cost > max(5 * noise, 0.05 * usual) else None
