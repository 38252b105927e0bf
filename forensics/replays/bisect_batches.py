"""Which batches are needed: replaced by others one set at a time (delta debugging), then tried at other states.

A batch is replaced, not left out, so that the number of steps, the schedule and the optimizer's counts stay as they were. The
replacements are batches that the log shows to be ordinary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.replays.delta_debugging import minimal
from forensics.replays.reproduce import Reproduction
from forensics.replays.request import Scene
from forensics.replays.runner import spread

ALONE = ((0, ""), (3, " by further ones"))  # draws of replacements, and what names them
MOST = 0.99  # confidence in what an experiment of this kind shows
WINDOW = 16  # batches before the effect that are suspects at first; all that were replayed, if it is none of these


@dataclass(frozen=True)
class Hunted:
    """`steps`: the minimal set of batches without which there is no effect, empty where any batches make it."""

    steps: tuple[int, ...]
    other_batch: tuple[str, ...] = ()  # outcomes with the culprits replaced by further batches
    alone: tuple[str, ...] = ()  # outcomes with all others replaced
    confidence: float = 0.0  # that these batches are needed, from how often the effect went with them and stayed without


def ordinary(scene: Scene, count: int) -> list[int]:
    """Batches to replace others with: steps whose logged loss is near its level, away from the suspects; past ones first."""
    log, onset, shift = scene.log, scene.trouble.onset, scene.shift
    level, sigma = spread([v for s, v in log.loss.items() if onset - 200 * log.interval < s < onset])
    near = 2.5 * sigma + 0.1 * abs(level)
    away = list(range(max(scene.again.first - WINDOW - 1, scene.lab.offset), scene.lab.offset - 1, -1))
    calm = [s for s in away if (v := log.loss.get(s + shift)) is None or not math.isfinite(level) or abs(v - level) <= near]
    found = calm[: 8 * count : 3] or calm or away
    behind = scene.trouble.until - shift + 2
    return (found * (count // len(found) + 1))[:count] if found else list(range(behind, behind + count))


def swapped(steps: Sequence[int], spare: Sequence[int], stride: int = 1, offset: int = 0) -> dict[int, int]:
    """Step -> the ordinary batch that it is given instead."""
    return {s: spare[(i * stride + offset) % len(spare)] for i, s in enumerate(steps)}


def order(again: Reproduction, first: int, last: int) -> list[int]:
    """Suspects, the most suspicious first: an outlying loss or gradient norm in the replay, then closeness to the effect."""
    trace = again.trace
    scores: dict[int, float] = {}
    for values in (trace.loss, tuple(math.nan if n is None else n for n in trace.norm)):
        level, sigma = spread([v for i, v in enumerate(values) if trace.first + i < first])
        for s in range(first, last + 1):
            v = values[s - trace.first]
            z = (v - level) / sigma if sigma and math.isfinite(v) else 0.0
            scores[s] = max(scores.get(s, 0.0), z)
    bad = [s for s in range(first, last + 1) if not math.isfinite(trace.loss[s - trace.first])]
    if bad:
        scores[bad[0]] = math.inf
    outlying = [s for s in scores if scores[s] > 4 and (not bad or s <= bad[0])]
    rest = [s for s in scores if s not in outlying]
    return [*sorted(outlying, key=lambda s: (-scores[s], s)), *sorted(rest, key=lambda s: (s > again.first, abs(again.first - s)))]


def hunt(scene: Scene, spare: list[int], until: int) -> Hunted:
    """Finds the batches that are needed, and asks the two controls: another batch here, and only this batch."""
    lab, arms, again, effect = scene.lab, scene.arms, scene.again, scene.effect
    begin = max(again.trace.first, again.first - WINDOW)
    end = min(until, again.first + 4) if not effect.nonfinite else again.first
    suspects = order(again, begin, end)

    asked: list[tuple[set[int], bool]] = []

    def suffices(steps: list[int]) -> bool:
        found = lab.along(min(steps), until, swapped(sorted(steps), spare, 2))
        before = effect.of(again.trace.window(again.first, min(steps) - 1))
        asked.append((set(steps), before == "no spike" == effect.judge(found, min(steps), until)))
        return asked[-1][1]

    outcome = arms.along("all batches of the window replaced", begin, until, swapped(suspects, spare))
    if outcome != "no spike" and begin > again.trace.first:
        wide = max(again.trace.first, again.first - 4 * WINDOW)
        suspects, begin = [*suspects, *range(begin - 1, wide - 1, -1)], wide
        if lab.nearest(wide) + 4 * WINDOW < wide:
            return Hunted(())
        outcome = arms.along("all batches of a wider window replaced", begin, until, swapped(suspects, spare))
    if outcome != "no spike":
        return Hunted(())
    culprits = sorted(minimal(suspects, suffices))
    named, others = words(culprits, scene.shift), []
    for offset in (1, 5):
        swap = swapped(culprits, spare, 2, offset)
        what = "another batch" if len(culprits) == 1 else "other batches"
        name = f"{named} replaced by {what} ({', '.join(str(b + scene.shift) for b in swap.values())})"
        others.append(arms.along(name, culprits[0], until, swap))
    rest = [s for s in range(begin, end + 1) if s not in culprits]
    alone = [
        arms.along(f"all batches around {named} replaced{again}", begin, until, swapped(rest, spare, 1, offset)) for offset, again in ALONE
    ]
    went = others.count("no spike") + sum(gone for steps, gone in asked if set(culprits) <= steps)
    stayed = (
        len(alone)
        - alone.count("no spike")
        - alone.count("undecided")
        + sum(not gone for steps, gone in asked if not set(culprits) <= steps)
    )
    return Hunted(tuple(culprits), tuple(others), tuple(alone), confidence(went, stayed, len(asked)))


def confidence(went: int, stayed: int, asked: int) -> float:
    """That the effect hangs on the culprits, and did not go away by chance whenever they were replaced.

    `went`: replacements of the culprits, each with other batches, with which the effect went. `stayed`: replacements of others with which it
    stayed. By Laplace's rule of succession a replacement that has nothing to do with the effect removes it in 1 of `stayed` + 2 cases; all
    `went` would have to be such, for one of the `asked` sets that were tried.
    """
    return min(MOST, max(0.0, 1 - max(asked, 1) * (1 / (stayed + 2)) ** went))


def words(steps: Sequence[int], shift: int) -> str:
    labels = [str(s + shift) for s in steps]
    return f"batch {labels[0]}" if len(labels) == 1 else f"batches {', '.join(labels)}"


def length(culprits: tuple[int, ...], until: int) -> int:
    """Steps that are run with the culprits elsewhere."""
    return min(max(until - culprits[0] + 1, len(culprits) + 3), 24)


def elsewhere(scene: Scene, culprits: tuple[int, ...], states: list[tuple[int, str]], until: int) -> tuple[str, ...]:
    """The culprits' batches at other states, each beside the batches that the run had there."""
    lab, skip, n = scene.lab, own(scene.again, culprits, until), length(culprits, until)
    outcomes = []
    for step, name in states:
        usual = list(range(step, step + n))
        control, spent = lab.run(name, step, usual), lab.spent
        trace = lab.run(name, step, [*culprits, *usual[len(culprits) :]])
        outcomes.append(scene.effect.elsewhere(list(trace.loss[skip:]), list(control.loss[skip:])))
        named = f"{words(culprits, scene.shift)} at the state of step {step + scene.shift}"
        scene.arms.note(named, outcomes[-1], trace, (step, step + n), lab.spent - spent)
    return tuple(outcomes)


def own(again: Reproduction, culprits: tuple[int, ...], until: int) -> int:
    """How many losses to leave out elsewhere: the culprits' own, where the effect is what they did to the state.

    It is that where the losses after them rise clearly higher than their own (their own is a rise of less than 0.8 of it).
    """
    effect, trace = again.effect, again.trace
    assert effect is not None
    after = [trace.at(s) for s in range(culprits[-1] + 1, until + 1)]
    rise = max(trace.at(s) for s in culprits)
    if effect.nonfinite or not after or not math.isfinite(rise):
        return 0
    return len(culprits) if rise - effect.level < 0.8 * (max(after) - effect.level) else 0
