"""Before anything is explained: is this adapter that of the run? `forensics replay --check`, and the first phase of every replay.

The steps after a good checkpoint are run and laid over the log. A replay of another run, of another order of the data, or of a
state that was only half loaded shows effects, too, and would accuse batches that have nothing to do with the logged ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from forensics.replay import start_checkpoints
from forensics.replay.agreement import MOST, Agreement, Check, View, best, noise_of, shown, views
from forensics.replay.request import Asked
from forensics.replay.runner import Lab, Trace, spread
from forensics.replay.start_checkpoints import Start
from forensics.replay.targets import Logged, Trouble, logged
from forensics.run import settings
from forensics.run.endings import step_origin

LABELS = 24  # logged values that are asked for, where so many lie between a checkpoint and the effect
ENOUGH = 12  # of them, for the nearest checkpoint to be taken
MOST_STEPS = 400
CONSTANT = 0.02  # of a ratio: what it may scatter to be a factor
FEWEST = 3  # logged values below which a replay that does not meet them says nothing, either
OFFSETS = (1, -1, 2, -2)  # batch(step + offset), where batch(step) does not meet the log
PARTS = (2, 4, 8)  # into which a log may have cut the batch: ranks, micro-batches


@dataclass(frozen=True)
class _Ground:
    """The steps that are compared: from a state on, up to a label."""

    start: Start
    first: int
    last: int  # label
    log: Logged
    origin: int


def check(asked: Asked, trouble: Trouble | None) -> Check:
    """Runs the adapter after a good state, up to the effect or the next restart, and says whether it meets the log."""
    impure = asked.worker.ask("pure", batches=_some(asked.about["last_step"]))["differs"]
    if impure:
        why = f"batch({impure[0]}) gives another batch when it is asked for once more: it draws from random numbers that the step does not fix"
        return Check(View(step_origin(asked.run)), False, why, (f"{why}.",))
    lab = Lab(asked.worker, 10**9)
    known = start_checkpoints.good(asked.run, asked.about["checkpoints"])
    ground = _ground(asked, known, trouble)
    told = asked.worker.ask("start", path=ground.start.path, name="check")
    first = start_checkpoints.step_of(told, ground.start)
    labels = sorted(s for s in ground.log.loss if first + ground.origin <= s <= ground.last)[:LABELS]
    count = min(max(labels[-1] - ground.origin - first + 1, 1), MOST_STEPS) if labels else 1
    asked.progress("checking the adapter", 0, 2 * count)
    trace = lab.run("check", first, range(first, first + count))
    nudged = lab.run("check", first, range(first, first + count), changes={"nudge": 1})
    noise = noise_of([abs(a - b) for a, b in zip(trace.loss, nudged.loss, strict=True)], 0.0)
    last = min(ground.last, first + count - 1 + ground.origin)
    found = best(trace, ground.log, views(ground.log, ground.origin), noise, last)
    why = ""
    if (not found.certain or found.exact < MOST * found.compared) and found.compared >= FEWEST:
        found, why = _otherwise(asked, lab, ground, trace, noise, found, told["left"])
    met = True if found.certain and not why else False if found.compared >= FEWEST else None
    lines = [*_loaded(told, ground.start), *_rates(trace, ground.log, found.view), _said(found, met)]
    numbers = {"agreed": found.agreed, "of": found.compared, "chance": found.chance, "view": asdict(found.view), "loaded": told["parts"],
               "left": told["left"], "steps": lab.spent, "step": first, "met": met}  # fmt: skip
    if why:
        lines.append(f"{why[0].upper()}{why[1:]}.")
    return Check(found.view if found.certain else View(ground.origin), met, why, tuple(lines), numbers)


def _some(last: int | None) -> list[int]:
    """Steps whose batches are asked for twice."""
    return [s for s in (0, 1, 5) if last is None or s < last] or [0]


def _ground(asked: Asked, known: Sequence[Start], trouble: Trouble | None) -> _Ground:
    """The latest good state that has enough logged values between itself and the effect, else the one that has most.

    What lies behind a restart belongs to another life of the run, and may not go on from this state.
    """
    log, origin = logged(asked.run, trouble.attempt if trouble else None), step_origin(asked.run)
    end = trouble.onset - 1 if trouble else max(log.loss, default=0)
    ends = {s: min([end, *[r - 1 for r in log.restarts if r > s.step + origin]]) for s in [Start(0, None), *known]}
    have = {s: sum(s.step + origin <= label <= last for label in log.loss) for s, last in ends.items()}
    enough = [s for s, n in have.items() if n >= ENOUGH]
    start = max(enough, key=lambda s: s.step) if enough else max(have, key=lambda s: (have[s], s.step))
    return _Ground(start, start.step, ends[start], log, origin)


def _otherwise(
    asked: Asked, lab: Lab, ground: _Ground, trace: Trace, noise: list[float], plain: Agreement, left: Sequence[str]
) -> tuple[Agreement, str]:
    """A better agreement, or the likeliest reason why there is none; "" where the first one holds."""
    steps, last = range(trace.first, trace.first + len(trace)), min(ground.last, trace.first + len(trace) - 1 + ground.origin)
    again = lab.run("check", trace.first, steps)
    floor = max((abs(a - b) for a, b in zip(trace.loss, again.loss, strict=True) if math.isfinite(a - b)), default=0.0)
    if floor > max(noise):
        return plain, f"two identical replays differ by {floor:.2g}: the step draws random numbers that nothing restores"
    for offset in OFFSETS:
        moved = lab.run("check", trace.first, [max(s + offset, 0) for s in steps])
        found = best(moved, ground.log, views(ground.log, ground.origin), noise, last)
        if found.certain and (found.exact, found.first) > (plain.exact, plain.first):
            both = f"batch(step {'+' if offset > 0 else '-'} {abs(offset)}) agrees with {found.agreed} of {found.compared} logged values"
            side = "behind" if offset > 0 else "ahead of"
            return plain, f"{both}, and batch(step) with {plain.exact}: the adapter counts its batches {abs(offset)} {side} the run"
    if plain.certain:
        return plain, ""
    sizes = [n for n in PARTS if n in {settings.number(asked.run, "accumulation"), settings.number(asked.run, "world_size")}] or [2]
    parted = lab.run("check", trace.first, steps, parts=sizes)
    tried = [View(s, 1, 0.0, name) for name in sorted({name for row in parted.parts for name in row}) for s in (0, 1)]
    found = best(parted, ground.log, tried, noise, last) if tried else plain
    return (found, "") if found.certain else (plain, _reason(ground, trace, plain, left))


def _reason(ground: _Ground, trace: Trace, found: Agreement, left: Sequence[str]) -> str:
    """What the values themselves say: another unit, another order, another state."""
    log, view = ground.log, View(ground.origin, ground.log.interval if found.view.mean_of > 1 else 1)
    pairs = [
        (log.loss[s], x)
        for s in sorted(log.loss)
        if s <= ground.last and (x := shown(trace, view, log, s)) is not None and math.isfinite(x)
    ]
    ratios = [a / b for a, b in pairs if b]
    level, scatter = spread(ratios)
    if len(ratios) >= FEWEST and abs(level - 1) > 0.2 and scatter < CONSTANT * abs(level):
        return f"the log shows {level:.3g} times the loss throughout: another sum or mean over tokens, samples or micro-batches"
    if found.chance > 0.5 and found.agreed >= 0.9 * found.compared:
        return "the logged values hardly differ from step to step, or are printed with so few digits, that any order of the data would meet them"
    off, usual = spread([a - b for a, b in pairs])
    if found.first >= 1:
        step = sorted(s for s in log.loss if s <= ground.last and s >= ground.first + ground.origin)[min(found.first, len(pairs) - 1)]
        return f"it meets the first {found.first} logged values and leaves the log at step {step}: rate, random numbers of the step or the order of the data differ from there on"
    if abs(off) <= usual:
        return "the level is that of the log and the single values are not: another order of the data (seed, epoch, shuffling), or random numbers in the step that nothing restores"
    lost = f", and of the checkpoint was not loaded: {', '.join(left)}" if left else ""
    return (
        f"the loss begins {abs(off):.3g} {'below' if off > 0 else 'above'} the log: the state or the data are not those of this run{lost}"
    )


def _loaded(told: dict[str, Any], start: Start) -> list[str]:
    place = start.path or "the model as built"
    lines = [f"Loaded from {place}: {', '.join(told['parts'])}."]
    return lines + ([f"Not loaded, though it is there: {', '.join(told['left'])}."] if told["left"] else [])


def _rates(trace: Trace, log: Logged, view: View) -> list[str]:
    """Whether the learning rate is the logged one."""
    pairs = [
        (trace.lr[s - view.shift - trace.first], v) for s, v in sorted(log.lr.items()) if 0 <= s - view.shift - trace.first < len(trace)
    ]
    if not pairs:
        return []
    same = sum(abs(a - b) <= 0.01 * abs(b) + 1e-12 for a, b in pairs)
    first = "" if same == len(pairs) else f"; the first: {pairs[0][0]:.4g} here, {pairs[0][1]:.4g} logged"
    return [f"The learning rate agrees with {same} of {len(pairs)} logged values{first}."]


def _said(found: Agreement, met: bool | None) -> str:
    if not found.compared:
        return "No logged loss lies between a checkpoint and the effect: nothing shows that this adapter is the run's."
    words = f" as {found.view.words}" if found.view.words else ""
    counted = f"The loss{words} agrees with {found.agreed} of {found.compared} logged values"
    return f"{counted}; by chance: {found.chance:.1g}." if met else f"{counted}{'' if met is False else ', too few to tell'}."
