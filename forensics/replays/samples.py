"""Which samples of a culprit batch: ranked by loss and gradient norm against ordinary batches, confirmed by leaving them out.

The ranking alone is a guess; what is named is what was confirmed: without these samples there is no effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from forensics.replays.bisect_batches import swapped
from forensics.replays.client import ReplayFailed
from forensics.replays.delta_debugging import OutOfBudget, minimal
from forensics.replays.request import Scene
from forensics.replays.runner import Lab, spread

CLEAR = 2.0  # a gap of so many widths of the control's tail needs no second opinion
QUESTIONS = 4  # times log2 of the batch, so many sets are left out before the batch as a whole is blamed
CONTROLS = 8  # ordinary batches that say what losses samples have at this state


@dataclass(frozen=True)
class Found:
    rows: tuple[int, ...]  # positions in the batch
    how: str
    confirmed: bool
    table: tuple[dict[str, Any], ...] = ()  # the first of the ranking, for the report


def blame(scene: Scene, step: int, others: tuple[int, ...], spare: list[int], until: int) -> Found:
    """The rows of the batch of `step` without which the effect is gone; `others`: further culprit batches, replaced meanwhile."""
    lab = scene.lab
    state = state_before(lab, step, others, spare)
    losses = lab.sample_losses(state, [step, *spare[:CONTROLS]])
    mine, usual = losses[0], [x for row in losses[1:] for x in row]
    norms, usual_norms, how = _gradients(lab, state, step, spare)
    scores = _scores(mine, usual, norms, usual_norms)
    ranked = sorted(range(len(mine)), key=lambda i: -scores[i])
    table = tuple({"row": i, "loss": mine[i], "gradient": norms[i] if norms else None, "score": scores[i]} for i in ranked[:32])
    asked = 0

    def without(rows: list[int]) -> dict[int, Any]:
        left = [i for i in range(len(mine)) if i not in rows]
        return {**swapped(others, spare), step: {"batch": step, "rows": left} if left else spare[0]}

    def gone(rows: list[int]) -> bool:
        nonlocal asked
        if asked >= QUESTIONS * math.log2(max(len(mine), 2)) + 8:
            raise OutOfBudget("no smaller set of samples was found")
        asked += 1
        return scene.effect.judge(lab.along(step, until, without(rows)), step, until) == "no spike"

    outlying = _outlying(ranked, losses, norms, usual_norms)
    words = f"ranked by loss and gradient norm ({how})" if norms else "ranked by loss"
    try:
        name = f"batch {step + scene.shift} without {len(outlying)} of its {len(mine)} samples"
        whole = len(outlying) == len(mine)  # replacing the batch was tried already
        if outlying and (whole or scene.arms.along(name, step, until, without(outlying)) == "no spike"):
            return Found(tuple(sorted(outlying)), words + ", confirmed by leaving them out", True, table)
        start = [*outlying, *[i for i in ranked if i not in outlying]]
        found = minimal(start, gone)
        return Found(tuple(sorted(found)), words + ", confirmed by delta debugging", True, table)
    except OutOfBudget as e:
        best = getattr(e, "best", outlying or ranked)
        if len(best) == len(mine):
            how = f"{words}; no sample stands out, and {asked} smaller sets left out keep the effect"
            return Found(tuple(range(len(mine))), how, True, table)
        return Found(tuple(sorted(best)), words + "; the budget ended before it was confirmed", False, table)


def state_before(lab: Lab, step: int, others: tuple[int, ...], spare: list[int]) -> str:
    """The state before the culprit step, with other culprits before it replaced."""
    before = [o for o in others if o < step]
    if step in lab.states and not before:
        return lab.states[step]
    name = f"before {step}"
    first = min([*before, step])
    begin = lab.nearest(first)
    if begin == step:
        return lab.states[begin]
    lab.along(first, step - 1, swapped(before, spare), keep={str(step - begin): name})
    return name


def _gradients(lab: Lab, state: str, step: int, spare: list[int]) -> tuple[list[float], list[float], str]:
    try:
        found = lab.worker.ask("gradients", state=state, batch=step)
        usual = [x for b in spare[:2] for x in lab.worker.ask("gradients", state=state, batch=b)["norms"]]
    except ReplayFailed:
        return [], [], ""
    lab.looks += 3
    return [float(x) for x in found["norms"]], [float(x) for x in usual], found["how"]


def _scores(mine: list[float], usual: list[float], norms: list[float], usual_norms: list[float]) -> list[float]:
    """The larger of two robust distances from what is usual: of the loss, and of the logarithm of the gradient norm."""
    a = _distances(mine, usual)
    b = _distances([_log(x) for x in norms], [_log(x) for x in usual_norms]) if norms else [0.0] * len(mine)
    return [max(x, y) for x, y in zip(a, b, strict=True)]


def _log(x: float) -> float:
    return math.log(max(x, 1e-30)) if math.isfinite(x) else x


def _distances(mine: list[float], usual: list[float]) -> list[float]:
    middle, sigma = spread(usual)
    top = sorted(x for x in usual if math.isfinite(x))
    wide = max(sigma, (top[int(0.95 * (len(top) - 1))] - middle) / 2 if top else 0.0, 1e-12)
    return [(x - middle) / wide if math.isfinite(x) else math.inf for x in mine]


def _outlying(ranked: list[int], losses: list[list[float]], norms: list[float], usual_norms: list[float]) -> list[int]:
    """Rows that stand out: not finite; else above a wide gap beyond what samples of ordinary batches reach, and as many of the
    highest losses as have to go for the rest to be an ordinary batch."""
    mine, usual = losses[0], [x for row in losses[1:] for x in row]
    odd = [i for i in ranked if not math.isfinite(mine[i]) or (norms and not math.isfinite(norms[i]))]
    if odd:
        return odd
    logs = [[_log(x) for x in norms], [_log(x) for x in usual_norms]]
    width, found = max(_above_gap(mine, usual), _above_gap(*logs), key=lambda x: x[0])
    if width < CLEAR:
        found = max(found, _until_ordinary(mine, losses[1:]), key=len)
    return found


def _above_gap(values: list[float], control: list[float]) -> tuple[float, list[int]]:
    """Indices above the widest gap, where what lies below it is like the control and what lies above is hardly ever seen there.

    With the width of the gap, in widths of the upper tail of the control: a tail has gaps of its own, so below 1 nothing is said.
    """
    seen = sorted(x for x in control if math.isfinite(x))
    if not values or len(seen) < 4:
        return 0.0, []
    middle = seen[len(seen) // 2]
    high, most = seen[int(0.9 * (len(seen) - 1))], seen[-1] + 0.25 * (seen[-1] - middle)
    order = sorted(range(len(values)), key=lambda i: -values[i])
    best, cut = 0.0, 0
    for k in range(1, len(order) + 1):
        upper = values[order[k - 1]]
        lower = values[order[k]] if k < len(order) else middle
        if upper > high and lower <= most and upper - lower > best:
            best, cut = upper - lower, k
    width = best / max(seen[-1] - middle, 1e-12)
    return (width, order[:cut]) if width >= 1 else (0.0, [])


def _until_ordinary(mine: list[float], batches: list[list[float]]) -> list[int]:
    """The fewest of the highest losses without which the mean of the rest is one that ordinary batches have."""
    usual = [x for b in batches for x in b if math.isfinite(x)]
    if len(usual) < 16:
        return []
    middle = sum(usual) / len(usual)
    sigma = (sum((x - middle) ** 2 for x in usual) / (len(usual) - 1)) ** 0.5
    order = sorted(range(len(mine)), key=lambda i: -mine[i])
    if sum(mine) / len(mine) <= middle + 3 * sigma / len(mine) ** 0.5:
        return []  # the batch is no outlier by its own loss
    for k in range(1, len(order)):
        rest = [mine[i] for i in order[k:]]
        if sum(rest) / len(rest) <= middle + 2 * sigma / len(rest) ** 0.5:
            return order[:k]
    return []
