"""Seed spread

What it sees
    Runs that differ only in their seed and end far apart.

How it decides
    Compares the last levels (medians of the last tenth, or fifth) of the training loss, or of the evaluation loss, between the runs of
    a group. It fires when the farthest two differ by more than 40 % and by three times what the noise inside a run explains,
    and by more than half a percent of what the loss has fallen by, or a tenth of that in its logarithm. Of policies, whose losses say little, it compares what the reward
    is over the last tenth, and what it gained since the first: it fires when the farthest two differ in both by half of what the best seed gained, and by as
    much noise.

Cannot tell
    Where one run lies here, or the runs differ in more than their seed.

Folklore
    "One seed is an anecdote": an improvement smaller than the spread of seeds is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.robust import error_of_median, median, noise_by_steps, robust_sigma
from forensics.run.series import series
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["runs"]
APART = math.log(1.4)  # measured, not critical: 27 % and 60 % apart tell the same groups, no healthy one (docs/thresholds.md)
TRIFLE = 0.005  # of what the loss has fallen by; unit: as of a spike (loss_spike), for near zero small is large as a share
TENTH = 0.1  # unit: of all that it had gained in its logarithm, as in train_eval_gap; six seeds of a healthy recipe that end near zero differ by a fifteenth
# unit: half of what another seed gained; Henderson et al. (arXiv 1709.06560, figure 5) part the seeds of one recipe by as much
HALF = 0.5
LEAST = 30  # bound: rewards, of which a tenth are three
ERRORS = 3.0  # statistical: standard errors; chance does it once in 370; not critical (docs/thresholds.md)


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Last levels of runs that differ in the seed."""

    metric: str  # canonical name
    apart: float  # worst over best, less 1
    runs: int
    best: str  # run id
    worst: str


def detect(run: Run) -> Iterator[Finding]:
    if len(run.group) < 2:
        raise CannotTell("there is one run, or the runs differ in more than the seed")
    ended = [(r, *x) for r in run.group if (x := rewards(r)) is not None]
    if len(ended) > 1:
        yield from _by_reward(ended)
        return
    judged = False
    for name, share in ((n, s) for n in ("loss.eval", "loss.train") for s in (10, 5)):
        levels = [level(r, name, share) for r in run.group]
        known = [(r, *x) for r, x in zip(run.group, levels, strict=True) if x is not None]
        if len(known) < 2 or min(k[1] for k in known) <= 0:
            continue
        judged = True
        known.sort(key=lambda k: k[1])
        apart = math.log(known[-1][1] / known[0][1])
        error = math.hypot(known[0][2] / known[0][1], known[-1][2] / known[-1][1])
        first = _first(known[-1][0], name)
        if apart <= APART or apart <= ERRORS * error or known[-1][1] - known[0][1] < TRIFLE * (first - known[-1][1]):
            continue
        if apart < TENTH * math.log(max(first / known[-1][1], 1.0)):  # in the logarithm, by which a loss near zero falls
            continue
        title = f"{len(known)} runs that differ only in the seed end between {known[0][1]:.4g} and {known[-1][1]:.4g} ({name})"
        rows = [[r.id, f"{last:.4g}", f"{noise:.2g}"] for r, last, noise in known]
        shown = evidence.table("last level of each seed", ["run", name, "noise of the level"], rows, known[-1][0].path)
        facts = Facts(name, math.expm1(apart), len(known), known[0][0].id, known[-1][0].id)
        yield evidence.found(facts, title, (None, None), "warning", shown, key=name)
        return
    if not judged:
        raise CannotTell("fewer than two of the runs logged a loss")


def _by_reward(ended: list[tuple[Run, float, float, float]]) -> Iterator[Finding]:
    (low, least, noise, _), (high, most, more, _) = (f(ended, key=lambda k: k[1]) for f in (min, max))
    gains = [k[3] for k in ended]
    gained = max(gains)
    alike = gained - min(gains) <= HALF * gained  # seeds of other environments begin elsewhere, and learn as much
    if gained <= 0 or alike or most - least <= max(HALF * gained, ERRORS * math.hypot(noise, more)):
        return
    title = f"{len(ended)} runs that differ only in the seed end between {least:.4g} and {most:.4g} of reward (rl.reward); the best gained {gained:.4g}"
    rows = [[r.id, f"{x:.4g}", f"{error:.2g}"] for r, x, error, _ in sorted(ended, key=lambda k: -k[1])]
    shown = evidence.table("reward of each seed at the end", ["run", "rl.reward", "its noise"], rows, high.path)
    facts = Facts("rl.reward", (most - least) / gained, len(ended), high.id, low.id)
    yield evidence.found(facts, title, (None, None), "warning", shown, key="rl.reward")


def rewards(run: Run) -> tuple[float, float, float] | None:
    """(reward over the last tenth of the values, its standard error, what it gained since the first tenth)."""
    s = series(run, "rl.reward")
    if s is None or s.usable.sum() < LEAST:
        return None
    x = s.value[s.usable]
    n = len(x) // 10
    noise = noise_by_steps(x)
    last = median(x[-n:])
    return last, error_of_median(noise, n), last - median(x[:n])


def _first(run: Run, name: str) -> float:
    """Where the metric of a run began: its first level, or its first value where it falls from there."""
    s = series(run, name)
    assert s is not None
    x = s.value[s.usable]
    falls = len(x) > 2 and x[0] > x[1] > x[2]
    return float(max(np.median(x[:3]), x[0] if falls else x[-1]))


def smallest_effect(run: Run) -> str:
    if sum(rewards(r) is not None for r in run.group) > 1:
        return f"seeds whose rewards end apart by {HALF:.0%} of what the best one gains"
    levels = [x for r in run.group if (x := level(r, "loss.eval") or level(r, "loss.train")) is not None and x[0] > 0]
    if len(levels) < 2:
        return ""
    error = math.sqrt(2) * max(error / last for last, error in levels)
    return f"seeds that end {math.expm1(max(APART, ERRORS * error) + MARGIN * error):.0%} apart"


def level(run: Run, name: str, share: int = 10) -> tuple[float, float] | None:
    """(level of the last 1/share of the values, its standard error)."""
    s = series(run, name)
    if s is None:
        return None
    x = s.value[s.usable]
    if len(x) < 3:
        return None
    last = x[-max(len(x) // share, 3) :]
    noise = robust_sigma(last)
    return median(last), error_of_median(noise, len(last))
