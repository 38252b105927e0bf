"""The bench: runs steps on a worker from kept states, counts them against the budget, and judges what came out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forensics.replays.delta_debugging import OutOfBudget
from forensics.replays.journal import Answering
from forensics.run.robust import SIGMA

HALF, THIRD = 0.5, 0.35  # shares of the height: above the one it is the effect, below the other it is gone


@dataclass(frozen=True)
class Trace:
    """Steps that were run: `first` is the first step, counted as the adapter counts."""

    first: int
    loss: tuple[float, ...]
    norm: tuple[float | None, ...]  # None where the adapter does not say
    lr: tuple[float, ...]
    layers: tuple[dict[str, float], ...] = ()
    parts: tuple[dict[str, float], ...] = ()  # by step the losses of parts of its batch, where they were asked for

    def __len__(self) -> int:
        return len(self.loss)

    def at(self, step: int) -> float:
        return self.loss[step - self.first]

    def window(self, first: int, last: int) -> tuple[float, ...]:
        return self.loss[max(first - self.first, 0) : last - self.first + 1]


@dataclass
class Lab:
    """`states`: step -> name of the state before that step, on the trajectory that the run took."""

    worker: Answering
    budget: int
    states: dict[int, str] = field(default_factory=dict)
    spent: int = 0
    looks: int = 0  # forward-only passes over a batch
    offset: int = 0  # what the adapter counts for the first step after a state, less the steps that the state has done
    deadline: float = math.inf  # time.monotonic() after which no further experiment is begun
    part: str = ""  # of a batch, whose loss the log shows
    sizes: tuple[int, ...] = ()  # into how many parts batches are cut for it
    settings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # of the optimizer's groups, by the name of a loaded state

    def run(self, state: str, first: int, batches: Iterable[int | Mapping[str, Any]], **options: Any) -> Trace:
        """Steps from a state; raises OutOfBudget before it would spend more than is left."""
        plan = [b if isinstance(b, Mapping) else {"batch": b} for b in batches]
        if self.spent + len(plan) > self.budget:
            raise OutOfBudget(f"the budget of {self.budget} steps is spent")
        if time.monotonic() > self.deadline:
            raise OutOfBudget("the time that --max-time gives is over")
        rows: list[dict[str, Any]] = []
        options |= {"parts": list(self.sizes)} if self.sizes else {}
        try:
            self.worker.ask("run", rows.append, state=state, plan=plan, **options)
        finally:
            self.spent += len(rows)
        loss = tuple(float(r["parts"].get(self.part, r["loss"]) if self.part else r["loss"]) for r in rows)
        lr = tuple(float(r["lr"]) for r in rows)
        norm = tuple(None if r["norm"] is None else float(r["norm"]) for r in rows)
        layers, parts = (tuple({k: float(v) for k, v in r[key].items()} for r in rows if key in r) for key in ("layers", "parts"))
        return Trace(first, loss, norm, lr, layers, parts)

    def nearest(self, step: int) -> int:
        """The last kept state at or before a step."""
        return max((s for s in self.states if s <= step), default=min(self.states))

    def along(self, first: int, last: int, instead: Mapping[int, int | Mapping[str, Any]] | None = None, **options: Any) -> Trace:
        """Steps `first` to `last` of the run's own trajectory with some batches replaced, from the nearest kept state.

        `reset`, `moments` and `settings` (step, name of a state) are of steps here. The trace begins at that kept state.
        """
        begin = self.nearest(first)
        swap = instead or {}
        if options.get("reset") is not None:
            options["reset"] -= begin
        for key in ("moments", "settings"):
            if options.get(key) is not None:
                options[key] = [options[key][0] - begin, options[key][1]]
        changes = options.get("changes") or {}
        if "lr_as_logged" in changes:
            moved = {str(int(s) - begin): v for s, v in changes["lr_as_logged"].items()}
            options["changes"] = {**changes, "lr_as_logged": moved}
        return self.run(self.states[begin], begin, [swap.get(s, s) for s in range(begin, last + 1)], **options)

    def sample_losses(self, state: str, batches: list[int]) -> list[list[float]]:
        self.looks += len(batches)
        return [[float(x) for x in row] for row in self.worker.ask("losses", state=state, batches=batches, rows=True)["losses"]]

    def load(self, path: str | None, name: str) -> dict[str, Any]:
        told = self.worker.ask("start", path=path, name=name)
        self.settings[name] = told["settings"]
        return told


@dataclass(frozen=True)
class Effect:
    """What counts as the effect: a loss above `threshold` or a value that is not finite; below `gone` it is not there.

    Between the two an experiment has not decided. No effect below `floor`, the noise of identical replays, is claimed.
    """

    level: float
    height: float  # of the reproduced peak above the level; NaN where it is not finite
    threshold: float
    sigma: float
    nonfinite: bool
    floor: float
    shape: tuple[tuple[int, float], ...] = ()  # (step, rise above the level) where the effect lasts for several steps

    def judge(self, trace: Trace, first: int, last: int) -> str:
        """The same for a trace; an effect that lasts is there, too, where half of its shape is: single batches are noisy."""
        outcome = self.of(trace.window(first, last))
        inside = [(trace.at(s) - self.level, rise) for s, rise in self.shape if first <= s <= min(last, trace.first + len(trace) - 1)]
        if outcome in ("spike", "nan") or len(inside) < 3:
            return outcome
        share = sum(a * b for a, b in inside) / sum(b * b for _, b in inside)
        return "spike" if share >= HALF else "undecided" if share >= THIRD and outcome == "no spike" else outcome

    def of(self, losses: Iterable[float]) -> str:
        """ "nan", "spike", "undecided" or "no spike" for losses at the state of the trouble."""
        seen = list(losses)
        if any(not math.isfinite(x) for x in seen):
            return "nan"
        top = max(seen, default=-math.inf)
        return "spike" if top > self.threshold else "undecided" if top > self.gone else "no spike"

    @property
    def gone(self) -> float:
        """A third of the height, or what ordinary batches reach by chance, but never above the threshold."""
        if self.nonfinite:
            return self.threshold
        return min(self.level + max(THIRD * self.height, 3.5 * self.sigma), self.threshold)

    def elsewhere(self, losses: list[float], control: list[float]) -> str:
        """The same at another state, where `control` is what the run's own batches give there, step by step.

        A spike is half the height of the one to explain, or its ratio to the level (the root of it) well above the noise there.
        """
        if any(not math.isfinite(x) for x in losses):
            return "undecided" if any(not math.isfinite(x) for x in control) else "nan"
        if any(not math.isfinite(x) for x in control):
            return "undecided"
        usual = sorted(control)[len(control) // 2]
        if not self.nonfinite and usual >= self.threshold:
            return "undecided"  # the ordinary loss is higher there than the effect is here
        spread = max(abs(x - usual) for x in control)
        excess = max(x - c for x, c in zip(losses, control, strict=False))
        if self.nonfinite:
            return "spike" if excess > max(10 * spread, 3 * abs(usual), self.floor) else "no spike"
        near = excess >= 0.5 * self.height and excess > max(spread, self.floor)
        ratio = (max(losses) / usual) if usual > 0 else 0.0
        wanted = ((self.level + self.height) / self.level) ** 0.5 if self.level > 0 else math.inf
        far = ratio >= max(wanted, 1.2) and excess > 3 * max(spread, self.sigma)
        return "spike" if near or far else "no spike"


def spread(values: list[float]) -> tuple[float, float]:
    """Median and robust standard deviation of finite values."""
    seen = sorted(v for v in values if math.isfinite(v))
    if not seen:
        return math.nan, 0.0
    middle = seen[len(seen) // 2]
    return middle, SIGMA * sorted(abs(v - middle) for v in seen)[len(seen) // 2]


def peak(losses: Iterable[float]) -> float:
    """The highest loss; NaN where one is not finite."""
    seen = list(losses)
    return math.nan if not seen or any(not math.isfinite(x) for x in seen) else max(seen)
