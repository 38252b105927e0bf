"""Which batches are needed: replaced by others one set at a time (delta debugging), then tried at other states.

A batch is replaced, not left out, so that the number of steps, the schedule and the optimizer's counts stay as they were. The
replacements are batches that the log shows to be ordinary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.replay.arms import Arms
from forensics.replay.delta_debugging import minimal
from forensics.replay.reproduce import Reproduction
from forensics.replay.runner import Lab, spread
from forensics.replay.targets import Logged, Trouble

WINDOW = 16  # batches before the effect that are suspects at first; all that were replayed, if it is none of these


@dataclass(frozen=True)
class Hunted:
    """`steps`: the minimal set of batches without which there is no effect, empty where any batches make it."""

    steps: tuple[int, ...]
    other_batch: tuple[str, ...] = ()  # outcomes with the culprits replaced by further batches
    alone: tuple[str, ...] = ()  # outcomes with all others replaced


def ordinary(log: Logged, trouble: Trouble, shift: int, start: int, first: int, count: int) -> list[int]:
    """Batches to replace others with: steps whose logged loss is near its level, away from the suspects; past ones first."""
    level, sigma = spread([v for s, v in log.loss.items() if abs(s - trouble.onset) < 200 * log.interval and s < trouble.onset])
    away = list(range(max(first - WINDOW - 1, 0), -1, -1))
    calm = [
        s
        for s in away
        if (v := log.loss.get(s + shift)) is None or not math.isfinite(level) or abs(v - level) <= 2.5 * sigma + 0.1 * abs(level)
    ]
    found = calm[: 8 * count : 3] or calm or away
    return (
        (found * (count // max(len(found), 1) + 1))[:count]
        if found
        else list(range(trouble.until - shift + 2, trouble.until - shift + 2 + count))
    )


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


def hunt(lab: Lab, arms: Arms, again: Reproduction, spare: list[int], until: int) -> Hunted:
    """Finds the batches that are needed, and asks the two controls: another batch here, and only this batch."""
    effect, last = again.effect, again.first
    assert effect is not None
    begin = max(again.trace.first, last - WINDOW)
    end = min(until, last + 4) if not effect.nonfinite else last
    suspects = order(again, begin, end)

    def without(steps: list[int], offset: int = 0) -> str:
        swap = {s: spare[(i * 2 + offset) % len(spare)] for i, s in enumerate(sorted(steps))}
        found = lab.along(min(steps), until, swap)
        before = effect.of(again.trace.window(again.first, min(steps) - 1))
        return before if before != "no spike" else effect.judge(found, min(steps), until)

    outcome = arms.tried(
        "all batches of the window replaced",
        lambda: lab.along(begin, until, {s: spare[i % len(spare)] for i, s in enumerate(suspects)}),
        begin,
        until,
    )
    if outcome != "no spike" and begin > again.trace.first:
        wide = max(again.trace.first, again.first - 4 * WINDOW)
        more = list(range(wide, begin))
        suspects, begin = [*suspects, *reversed(more)], wide
        if lab.nearest(wide) + 4 * WINDOW < wide:
            return Hunted(())
        outcome = arms.tried(
            "all batches of a wider window replaced",
            lambda: lab.along(begin, until, {s: spare[i % len(spare)] for i, s in enumerate(suspects)}),
            begin,
            until,
        )
    if outcome != "no spike":
        return Hunted(())
    culprits = sorted(minimal(suspects, lambda some: without(some) == "no spike"))
    named = words(culprits, again)
    others = []
    for offset in (1, 5):
        swap = {s: spare[(i * 2 + offset) % len(spare)] for i, s in enumerate(culprits)}
        name = f"{named} replaced by {'another batch' if len(culprits) == 1 else 'other batches'} ({', '.join(str(b + again.overlay.shift) for b in swap.values())})"
        others.append(arms.tried(name, lambda swap=swap: lab.along(culprits[0], until, swap), culprits[0], until))  # type: ignore[misc]
    rest = [s for s in range(begin, end + 1) if s not in culprits]
    swap = {s: spare[i % len(spare)] for i, s in enumerate(rest)}
    alone = arms.tried(f"all batches around {named} replaced", lambda: lab.along(begin, until, swap), begin, until)
    return Hunted(tuple(culprits), tuple(others), (alone,))


def words(steps: Sequence[int], again: Reproduction) -> str:
    labels = [str(s + again.overlay.shift) for s in steps]
    return f"batch {labels[0]}" if len(labels) == 1 else f"batches {', '.join(labels)}"


def elsewhere(
    lab: Lab, arms: Arms, again: Reproduction, culprits: tuple[int, ...], states: list[tuple[int, str]], until: int
) -> tuple[str, ...]:
    """The culprits' batches at other states, each beside the batches that the run had there."""
    effect = again.effect
    assert effect is not None
    length = min(max(until - culprits[0] + 1, len(culprits) + 3), 24)
    skip = own(again, culprits, until)
    outcomes = []
    for step, name in states:
        usual = list(range(step, step + length))
        control = lab.run(name, step, usual)
        tried = [*culprits, *usual[len(culprits) :]]
        named = words(culprits, again)
        found: list[str] = []

        def compare(
            name: str = name, step: int = step, tried: list[int] = tried, control: object = control, found: list[str] = found
        ) -> object:
            trace = lab.run(name, step, tried)
            found.append(effect.elsewhere(list(trace.loss[skip:]), list(control.loss[skip:])))  # type: ignore[attr-defined]
            return trace

        arms.tried(f"{named} at the state of step {step + again.overlay.shift}", compare, step, step + length, outcome=found)
        outcomes.append(found[0])
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
