"""Before anything is explained: is this adapter that of the run? `forensics replay --check`, and the first phase of every replay.

The steps after a good checkpoint are run and laid over the log. A replay of another run, of another order of the data, or of a
state that was only half loaded shows effects, too, and would accuse batches that have nothing to do with the logged ones.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from forensics.replays import start_checkpoints
from forensics.replays.agreement import MOST, Agreement, Check, View, best, noise_of, shown, views
from forensics.replays.client import ReplayFailed
from forensics.replays.reproduce import SAME
from forensics.replays.request import Asked
from forensics.replays.runner import Lab, Trace, spread
from forensics.replays.start_checkpoints import Start
from forensics.replays.targets import Logged, Trouble, logged
from forensics.run import settings
from forensics.run.endings import step_origin

LABELS = 24  # logged values that are asked for, where so many lie between a checkpoint and the effect
ENOUGH = 12  # of them, for the nearest checkpoint to be taken
MOST_STEPS = 400
CONSTANT = 0.02  # of a ratio: what it may scatter to be a factor
FEWEST = 3  # logged values below which a replay that does not meet them says nothing, either
OFFSETS = (1, -1, 2, -2)  # batch(step + offset), where batch(step) does not meet the log
NEAR = 10  # logged values before an effect in which its cause may show
PARTS = (2, 4, 8)  # into which a log may have cut the batch: ranks, micro-batches


@dataclass(frozen=True)
class _Ground:
    """The steps that are compared: those after a state that has done `done` steps, up to a label."""

    start: Start
    done: int
    last: int  # label
    log: Logged
    origin: int
    onset: int | None  # label of the effect
    count: int = 1  # of steps

    def holds(self, a: Agreement) -> bool:
        """Whether the replay is that of the run: it meets what it should, or leaves the log just before the effect, which may be how that began."""
        near = self.onset is not None and a.parts is not None and a.parts >= self.onset - NEAR * self.log.interval
        return a.certain and (a.agreed >= MOST * a.compared or near)


@dataclass(frozen=True)
class _Trial:
    """The steps run with the adapter's batches from `done` + `offset` on."""

    offset: int
    trace: Trace
    noise: Sequence[float]
    found: Agreement


def check(asked: Asked, trouble: Trouble | None) -> Check:
    """Runs the adapter after a good state, up to the effect or the next restart, and says whether it meets the log."""
    origin = step_origin(asked.run)
    impure = asked.worker.ask("pure", batches=_some(asked))["differs"]
    if impure:
        why = f"the adapter's batch({impure[0]}) gives another batch when it is asked for once more: it draws from random numbers that the step does not fix"
        return Check(View(origin), False, 0, why, (f"{why[0].upper()}{why[1:]}.",))
    lab = Lab(asked.worker, 10**9)
    ground = _ground(asked, start_checkpoints.good(asked.run, asked.about["checkpoints"]), trouble)
    told = asked.worker.ask("start", path=ground.start.path, name="check")
    done = start_checkpoints.step_of(told, ground.start)
    labels = sorted(s for s in ground.log.loss if done + origin <= s <= ground.last)[:LABELS]
    ground = replace(ground, done=done, count=min(max(labels[-1] - origin - done + 1, 1), MOST_STEPS) if labels else 1)
    asked.progress("checking the adapter", 0, 2 * ground.count)
    plain = _trial(lab, ground, 0, None)
    sure = ground.holds(plain.found) and plain.found.exact >= MOST * plain.found.compared
    trial, why = (plain, "") if sure or plain.found.compared < FEWEST else _otherwise(asked, lab, ground, plain, told["left"])
    found, view = trial.found, trial.found.view if ground.holds(trial.found) else View(origin)
    met = True if ground.holds(found) and not why else False if found.compared >= FEWEST else None
    lines = [*_loaded(asked, told, ground.start), *_rates(trial.trace, ground.log, view), _said(found, met)]
    lines += [f"Step {labels[0]} of the log is batch({labels[0] - view.shift}) of the adapter."] if met and view.shift and labels else []
    lines += [f"{why[0].upper()}{why[1:]}."] if why else []
    numbers = {"agreed": found.agreed, "of": found.compared, "chance": found.chance, "view": asdict(view), "offset": trial.offset, "loaded": told["parts"],
               "left": told["left"], "steps": lab.spent, "step": done, "met": met}  # fmt: skip
    sizes = _sizes(asked) if view.part else ()
    return Check(view, met, trial.offset if met else 0, why, tuple(lines), sizes, numbers)


def _trial(lab: Lab, ground: _Ground, offset: int, noise: Sequence[float] | None, parts: Sequence[int] | None = None) -> _Trial:
    """One pass over the steps; without `noise` that is measured first, by a pass from weights that are one rounding off. With `parts` the
    losses of parts of a batch are compared, of ranks where there are several."""
    first = ground.done + offset
    steps = range(max(first, 0), first + ground.count)
    trace = lab.run("check", steps.start, steps, parts=list(parts or ()))
    if noise is None:
        nudged = lab.run("check", steps.start, steps, changes={"nudge": 1})
        noise = noise_of([abs(a - b) for a, b in zip(trace.loss, nudged.loss, strict=True)], 0.0)
    natural = ground.origin - offset
    tried = views(ground.log, natural)
    if parts is not None:
        tried = [View(s, 1, 0.0, name) for name in sorted({name for row in trace.parts for name in row}) for s in (natural, natural + 1)]
    last = min(ground.last, ground.done + ground.count - 1 + ground.origin)
    nothing = Agreement(View(natural), 0, 0, 0, None, 0, 1.0)
    return _Trial(offset, trace, noise, best(trace, ground.log, tried, noise, last) if tried else nothing)


def _tried(lab: Lab, ground: _Ground, offset: int, noise: Sequence[float], parts: Sequence[int] | None = None) -> _Trial | None:
    """The same, None where the adapter has no such batches."""
    try:
        return _trial(lab, ground, offset, noise, parts)
    except ReplayFailed as e:
        if e.kind not in ("adapter", "files"):
            raise
        return None


def _some(asked: Asked) -> list[int]:
    """Steps whose batches are asked for twice, of adapters that count from 0 or from 1."""
    last = asked.about["last_step"]
    if asked.options.order:
        return sorted(asked.options.order)[:3]
    return [s for s in (1, 2, 5) if last is None or s < last] or [0]


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
    return _Ground(start, start.step, ends[start], log, origin, trouble.onset if trouble else None)


def _otherwise(asked: Asked, lab: Lab, ground: _Ground, plain: _Trial, left: Sequence[str]) -> tuple[_Trial, str]:
    """A trial that meets the log better, and what is wrong with it or with the first one; "" where nothing is.

    An adapter counts its batches from 0, or from 1 where the log does: then the label of a step is the adapter's own number.
    """
    again = lab.run("check", plain.trace.first, range(plain.trace.first, plain.trace.first + len(plain.trace)))
    floor = max((abs(a - b) for a, b in zip(plain.trace.loss, again.loss, strict=True) if math.isfinite(a - b)), default=0.0)
    if floor > SAME * abs(spread(list(plain.trace.loss))[0]):
        return plain, f"two identical replays differ by {floor:.2g}: the step draws random numbers that nothing restores"
    moved = [t for offset in OFFSETS if (t := _tried(lab, ground, offset, plain.noise)) is not None]
    right = [t for t in (plain, *moved) if ground.holds(t.found) and t.found.view.shift in {0, ground.origin}]
    off = [t for t in moved if ground.holds(t.found) and t.found.view.shift not in {0, ground.origin}]
    best_right = max(right, key=lambda t: (t.found.exact, -abs(t.offset)), default=plain)
    best_off = max(off, key=lambda t: (t.found.exact, -abs(t.offset)), default=None)
    if best_off is not None and best_off.found.exact > (best_right.found.exact if right else -1):
        delta = ground.origin - best_off.found.view.shift
        instead = f"batch(step {'+' if delta > 0 else '-'} {abs(delta)})"
        side = "behind" if delta > 0 else "ahead of"
        found = best_off.found
        met = f"with {instead} the replay meets {found.agreed} of {found.compared} logged values, with batch(step) {plain.found.exact}"
        return plain, f"{met}: the adapter counts its batches {abs(delta)} {side} the run"
    if right:
        return best_right, ""
    parted = _tried(lab, ground, 0, plain.noise, _sizes(asked))
    return (parted, "") if parted is not None and ground.holds(parted.found) else (plain, _reason(ground, plain.trace, plain.found, left))


def _sizes(asked: Asked) -> tuple[int, ...]:
    """Into how many parts batches are cut, to see whether the log shows the loss of one; none where ranks are the parts."""
    if asked.options.processes > 1:
        return ()
    return tuple(n for n in PARTS if n in {settings.number(asked.run, "accumulation"), settings.number(asked.run, "world_size")}) or (2,)


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
    lost = f"; of the checkpoint was not loaded: {', '.join(left)}" if left else ""
    if found.first >= FEWEST:
        return f"it meets the first {found.first} logged values and leaves the log at step {found.parts}: what the optimizer remembers, the rate, random numbers of the step or the order of the data differ{lost}"
    if found.first and found.exact >= 1:
        return f"it meets the log at its first step and not at the next ones: weights and batch are right, what the optimizer remembers, the rate or the next batches are not{lost}"
    if abs(off) <= usual:
        return "the level is that of the log and the single values are not: another order of the data (seed, epoch, shuffling), or random numbers in the step that nothing restores"
    return (
        f"the loss begins {abs(off):.3g} {'below' if off > 0 else 'above'} the log: the state or the data are not those of this run{lost}"
    )


def _loaded(asked: Asked, told: dict[str, Any], start: Start) -> list[str]:
    place = os.path.relpath(start.path, asked.run.root) if start.path else "the model as built"
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
