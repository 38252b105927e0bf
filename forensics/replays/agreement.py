"""Whether a replay meets the log: how the log shows what a step gave, and how many of its values chance alone would meet.

A log may count steps from 0 or 1, print the mean of some steps, a running mean, or the loss of a part of the batch. Each such
view is judged by the logged values that the replay meets, to the digits that the log prints. The null is the same replay laid
over the log some steps off: a log that hardly changes from step to step is met by any order of the data, and proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forensics.replays.runner import Trace
from forensics.replays.targets import Logged
from forensics.run.robust import noise_by_steps

RUNNING = (10, 20, 50, 100, 200)  # steps of running means that training scripts keep
DECAYS = (0.9, 0.95, 0.98, 0.99)  # of exponential ones
OFF = tuple(d for d in range(-10, 11) if abs(d) > 2)  # steps by which the null is laid off
CLOSE = 0.1  # of the scatter from step to step: another machine's rounding, never another batch, which is 1.4 of it off
REACH, FLOOR = 20, 3  # times what one rounding grows to, and the difference of identical replays
CERTAIN = 1e-3  # chance below which a replay is taken to be of this run, all views together
MOST = 0.9  # of the values that must be met where it is not the first ones alone


@dataclass(frozen=True)
class View:
    """How the log shows steps: `label - shift` is the step; the mean of `mean_of` steps, or a running mean with `decay`, of the batch
    or of a `part` of it (of a rank)."""

    shift: int
    mean_of: int = 1
    decay: float = 0.0
    part: str = ""

    @property
    def words(self) -> str:
        """What a logged value is, empty where it is the loss of its step."""
        if self.part:
            return f"the loss of {self.part}"
        if self.decay:
            return f"a running mean (decay {self.decay:g})"
        return f"the mean of {self.mean_of} steps" if self.mean_of > 1 else ""


@dataclass(frozen=True)
class Agreement:
    """`agreed` of `compared` logged values are met, `first` of them before `parts`, the first label that is not; `chance`: how likely so many are
    met in another order of the data, corrected for the views that were tried. `exact`: those that are met to the last printed digit."""

    view: View
    agreed: int
    compared: int
    first: int
    parts: int | None
    exact: int
    chance: float

    @property
    def certain(self) -> bool:
        return self.chance < CERTAIN


@dataclass(frozen=True)
class Check:
    """`view`: how the log shows steps. `met`: the replay meets the log (None: the log holds too little to tell). `why`: the likeliest
    reason where it does not. `lines`: what is told of all this."""

    view: View
    met: bool | None
    offset: int = 0  # what the adapter counts for the first step after a state, less the steps that the state has done
    why: str = ""
    lines: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()  # into how many parts batches are cut, where the log shows the loss of one
    numbers: dict[str, Any] = field(default_factory=dict)


def shown(trace: Trace, view: View, log: Logged, label: int, off: int = 0) -> float | None:
    """What the log would print at a label; None outside the trace. `off`: of the steps so many earlier."""
    step = label - view.shift - off
    if step - view.mean_of + 1 < trace.first or step >= trace.first + len(trace):
        return None
    if view.part:
        return trace.parts[step - trace.first].get(view.part)
    values = trace.window(step - view.mean_of + 1, step)
    mean = sum(values) / len(values)
    if not view.decay:
        return mean
    before = log.loss.get(label - log.interval)
    return None if before is None else view.decay * before + (1 - view.decay) * mean


def views(log: Logged, natural: int) -> list[View]:
    """The views to try, the plain ones first, about the `natural` shift: a checkpoint may count a step more or less. Running means where
    every step is logged, for the log must show how they grew."""
    shifts = (natural, natural + 1, natural - 1)
    found = [View(s, m) for m in sorted({1, log.interval}) for s in shifts]
    if log.interval == 1:
        found += [View(s, m) for m in RUNNING for s in shifts] + [View(s, 1, d) for d in DECAYS for s in shifts]
    return found


def best(trace: Trace, log: Logged, tried: Sequence[View], noise: Sequence[float], last: int) -> Agreement:
    """The view that is met best, to the last digit if one is; where chance would meet as much, the plainest. Labels up to `last` count."""
    found = [agreement(trace, log, v, noise, last, len(tried)) for v in tried]
    certain = [a for a in found if a.certain]
    return max(certain, key=lambda a: a.exact / a.compared) if certain else found[0]


def agreement(trace: Trace, log: Logged, view: View, noise: Sequence[float], last: int, tried: int = 1) -> Agreement:
    """How well a view is met. `noise`: by step of the trace what rounding may make of the loss; `tried`: views that were."""
    labels = [s for s in sorted(log.loss) if s <= last and math.isfinite(log.loss[s]) and shown(trace, view, log, s) is not None]
    width, digit = tolerance(log, labels), 0.5 * printed_unit([log.loss[s] for s in labels])
    met, exact, chances, tries = [], 0, 0, 0
    for label in labels:
        step = label - view.shift - trace.first
        rounding = 1e-6 * abs(log.loss[label]) + max((x for x in noise[: step + 1] if math.isfinite(x)), default=0.0)
        value, allowed = shown(trace, view, log, label), width + rounding
        met.append(_within(value, log.loss[label], allowed))
        exact += _within(value, log.loss[label], digit + rounding)
        others = [x for off in OFF if (x := shown(trace, view, log, label, off)) is not None]
        chances += sum(_within(x, log.loss[label], allowed) for x in others)
        tries += len(others)
    rate = (chances + 1) / (tries + 2)
    first = met.index(False) if False in met else len(met)
    whole = _tail(sum(met), len(met), rate) if sum(met) >= MOST * len(met) else 1.0
    parts = labels[first] if first < len(labels) else None
    return Agreement(view, sum(met), len(met), first, parts, exact, min(1.0, 2 * tried * min(whole, rate**first)))


def tolerance(log: Logged, labels: Sequence[int]) -> float:
    """How far from a logged value its step may be: half a unit of the last printed digit, and a little of the scatter."""
    values = np.array([log.loss[s] for s in labels])
    scatter = noise_by_steps(values) if len(values) > 3 else 0.0
    return 0.5 * printed_unit(values.tolist()) + CLOSE * scatter


def printed_unit(values: Sequence[float]) -> float:
    """One unit of the last digit that a log prints; 0 where it prints floats whole."""
    decimals = max((len(repr(float(v)).partition(".")[2]) if "e" not in repr(float(v)) else 17 for v in values), default=17)
    return 0.0 if decimals > 6 else 10.0**-decimals


def noise_of(drift: Sequence[float], floor: float) -> list[float]:
    """By step, what rounding may have made of the loss: of another machine (`drift`), and of kernels that are not deterministic."""
    return [max(REACH * d, FLOOR * floor) if math.isfinite(d) else math.inf for d in drift]


def _within(x: float | None, logged: float, allowed: float) -> bool:
    return x is not None and abs(x - logged) <= allowed


def _tail(hits: int, n: int, p: float) -> float:
    """The chance of so many hits or more in n tries."""
    return min(1.0, sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits, n + 1))) if n else 1.0
