"""Rank disagreement

What it sees
    Ranks of one job that should agree and do not: one whose loss, gradient norm or speed is apart from the others', ranks
    that drift away from each other, ranks that stand at different steps.

How it decides
    Rows of several ranks are laid side by side, step by step. Where all ranks log the same number (what an all-reduce
    leaves) and from some step on do not, for at least ten steps and half of those that follow, they part. Elsewhere the
    median over ranks is taken off, and what is left of a rank must step to another level, or with three ranks and more stand
    apart throughout (of two, one must be above the other at every step, by half as much again), by three noises of a single
    value, eight standard errors, and 5 % of the level (loss), 30 % (gradient norm) or 20 % (time of a step). Drift: the spread
    between ranks rises from quarter to quarter to three times that of the first. A spike: one of three ranks or more alone,
    for less than ten steps, by 50 % and fifteen noises; for information, as it is mostly one batch. Different steps: the last
    steps of the ranks differ by two log intervals where the run did not finish.

Cannot tell
    Where only one rank logs, as most do; where ranks share fewer than twenty steps. Ranks that log zeros throughout (no
    last stage of a pipeline) are left out.

Folklore
    BLOOM-176B's layer norms drifted apart between tensor-parallel ranks, and nothing in the loss showed it (BigScience
    chronicles). Straggler detection compares ranks, not times: NVRx, MegaScale (arXiv:2402.15627).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Evidence, Finding
from forensics.errors import CannotTell
from forensics.run import how_it_ended, rank_shapes, ranks
from forensics.run.rank_shapes import Shape
from forensics.run.ranks import Matrix
from forensics.run.robust import median
from forensics.run.series import series
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["ranks"]
# Shares of the level. Not critical: 0.7 and 1.4 of all tell the same runs (docs/thresholds.md); few of these have ranks.
FLOORS = {"loss.train": 0.05, "loss.eval": 0.05, "grad.norm": 0.3, "param.norm": 0.01, "time.step": 0.2, "time.data": 0.5}
PACE = ("time.step", "time.data", "tput.tokens_dev", "tput.samples_dev")
WHAT = {"loss.train": "loss", "loss.eval": "evaluation loss", "grad.norm": "gradient norm", "param.norm": "norm of the weights",
        "time.step": "time of a step", "time.data": "time spent waiting for data"}  # fmt: skip
FAR = 0.2  # a loss apart throughout by this much is no matter of which data a rank sees; not critical (docs/thresholds.md)
SHOWN = 12  # unit: rows of the table
SMALLEST_EFFECT = "one rank's loss off by 5 % and three noises; numbers that were equal and are not"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """How the ranks disagree."""

    pattern: str  # parts, drift, jump, apart, straggler, spike; steps
    step: int  # from which on
    ranks: int


@dataclass(frozen=True)
class Apart(Facts):
    """A metric that differs between ranks."""

    metric: str  # canonical name
    rank: int | None  # the one that is apart, None where all are
    relative: float  # difference as a share of the level
    noises: float  # difference over the noise of a single value


@dataclass(frozen=True)
class Steps(Facts):
    behind: list[int]  # ranks that stopped first


def detect(run: Run) -> Iterator[Finding]:
    judged = False
    reach = ranks.last_steps(run)
    if reach:
        judged = True
        yield from _steps(run, reach)
    for name, floor in FLOORS.items():
        m = ranks.matrix(run, name)
        m = _speaking(m) if m is not None else None
        if m is None or len(m.step) < rank_shapes.LEAST:
            continue
        judged = True
        if (shape := _shape(m, floor, name)) is not None:
            yield _finding(m, shape, name)
    if not judged:
        raise CannotTell("only one rank logs" if len(ranks.columns(run)) == 0 else f"the ranks share fewer than {rank_shapes.LEAST} steps")


def _speaking(m: Matrix) -> Matrix | None:
    """Without ranks that log zeros or nothing finite, and without steps at which a rank did."""
    keep = [j for j in range(len(m.ranks)) if (np.isfinite(m.value[:, j]) & (m.value[:, j] != 0)).mean() > 0.5]
    rows = np.isfinite(m.value[:, keep]).all(axis=1)
    return Matrix(m.tag, m.step[rows], [m.ranks[j] for j in keep], m.value[rows][:, keep]) if len(keep) > 1 else None


def _shape(m: Matrix, floor: float, name: str) -> Shape | None:
    if name not in PACE and (found := rank_shapes.parts(m.value)) is not None:
        return found
    if rank_shapes.equal_share(m.value) > 0.5:
        return None
    one = rank_shapes.one_apart(m.value, floor)
    if name in PACE:
        return one
    together = rank_shapes.drift(m.value, floor)
    if one is not None and together is not None and len(m.ranks) == 2:
        return together if _gradual(m, one) else one
    return one or together or (rank_shapes.alone(m.value) if name == "loss.train" else None)


def _gradual(m: Matrix, one: Shape) -> bool:
    """True where two ranks came apart over a stretch of the run and not from one step to the next."""
    gap = np.abs(m.value[:, 0] - m.value[:, 1])
    width = max(rank_shapes.SIDE, len(gap) // 20)
    at_once = median(gap[one.row : one.row + width])
    return at_once < 0.5 * median(gap[-len(gap) // 4 :])


def _finding(m: Matrix, s: Shape, name: str) -> Finding:
    what = WHAT[name]
    first, last = int(m.step[s.row]), int(m.step[-1])
    who = f"rank {m.ranks[s.column]}" if s.column is not None else None
    slow = name in PACE and s.size > 0
    if s.pattern == "parts":
        told = f"The {what}, equal on all {len(m.ranks)} ranks before, differs between them from step {first} on" + (
            f": {who} left the others" if who else ""
        )
    elif s.pattern == "drift":
        told = f"The ranks drift apart: their {what} differs by {s.relative:.0%} at the end, {s.noises:.1f} times as much as at first"
    elif s.pattern == "spike":
        told = f"The {what} of {who} spikes alone at step {first}, {s.relative:.0%} above that of the other ranks"
    elif s.pattern == "jump":
        told = f"The {what} of {who or 'one of two ranks'} leaves that of the other{'s' if len(m.ranks) > 2 else ''} at step {first}, by {s.relative:.0%}"
    else:
        told = f"The {what} of {who} is {s.relative:.0%} {'above' if s.size > 0 else 'below'} that of the other ranks, throughout"
    pattern = "straggler" if slow and s.pattern in ("jump", "apart") else s.pattern
    rank = m.ranks[s.column] if s.column is not None else None
    facts = Apart(pattern, first, len(m.ranks), name, rank, s.relative, s.noises)
    # apart from the first step on may be the design (other data, another stage), unless it is a loss and far
    mild = s.pattern == "spike" or (s.pattern == "apart" and not (name == "loss.train" and s.relative >= FAR)) or name == "time.data"
    key = f"{first}-{name.replace('.', '_')}"
    return evidence.found(facts, told, (first, last), "info" if mild else "warning", _table(m, s.row, what), key=key)


def _table(m: Matrix, row: int, what: str) -> Evidence:
    near = np.unique(np.r_[np.arange(max(row - 4, 0), min(row + 4, len(m.step))), np.linspace(0, len(m.step) - 1, SHOWN - 8).astype(int)])
    shown = list(range(len(m.ranks)))[:8]
    rows = [[int(m.step[i]), *(float(f"{m.value[i, j]:.6g}") for j in shown)] for i in near]
    return evidence.table(f"{what} by rank ({m.tag})", ["step", *(f"rank {m.ranks[j]}" for j in shown)], rows)


def _steps(run: Run, reach: dict[int, int]) -> Iterator[Finding]:
    s = series(run, "loss.train")
    far, near = max(reach.values()), min(reach.values())
    if far - near < 2 * (s.interval if s is not None else 1) or how_it_ended.status(run) == "finished":
        return
    behind = sorted(r for r, step in reach.items() if step == near)
    names = ", ".join(map(str, behind[:6])) + (" ..." if len(behind) > 6 else "")
    rows = [[r, step] for r, step in sorted(reach.items())][:64]
    told = f"The ranks stand at different steps: the last of rank {names} is {near}, others came to {far}"
    shown = evidence.table("last step by rank", ["rank", "last step"], rows)
    severity = "warning" if len(behind) < len(reach) / 2 or len(reach) == 2 else "info"
    yield evidence.found(Steps("steps", near, len(reach), behind), told, (near, far), severity, shown, key=f"{near}-steps")
