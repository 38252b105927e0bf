"""The arms: what each changes, and which are worth their steps given the causes that lead so far.

An arm that removes the effect says what the effect needs; it convicts only together with the control that other batches keep it.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forensics.causes.files import asked_by
from forensics.replays.delta_debugging import OutOfBudget
from forensics.replays.reproduce import Reproduction
from forensics.replays.runner import Effect, Lab, Trace, peak

GENERAL = (
    "rate held", "rate x 0.1", "clipping on", "larger epsilon", "moments reset", "smaller beta2", "warmup again", "clipping off", "moments as saved",
)  # fmt: skip
BY_ADAPTER = "by the adapter's load()"  # what the worker says of a state that the adapter's own code has loaded


@dataclass
class Arms:
    """Every experiment with its outcome, in the order it was run; rows of the report's table."""

    effect: Effect
    shift: int
    lab: Lab
    rows: list[dict[str, Any]] = field(default_factory=list)

    def tried(self, name: str, do: Callable[[], Trace], first: int, last: int, *, says: str = "") -> str:
        """Runs an experiment and notes it; the outcome is judged between steps `first` and `last`."""
        spent = self.lab.spent
        trace = do()
        result = self.effect.judge(trace, first, last)
        self.note(name, result, trace, (first, last), self.lab.spent - spent, says)
        return result

    def along(self, name: str, first: int, last: int, swap: Mapping[int, Any] | None = None, says: str = "", **options: Any) -> str:
        """The same of the run's own steps, with some batches or settings changed (`Lab.along`)."""
        return self.tried(name, lambda: self.lab.along(first, last, swap, **options), first, last, says=says)

    def note(self, name: str, outcome: str, trace: Trace, window: tuple[int, int], steps: int, says: str = "") -> None:
        first, last = window
        curve = [[s + self.shift, trace.at(s)] for s in range(max(first - 8, trace.first), min(last + 1, trace.first + len(trace)))]
        self._add(name, outcome, peak(trace.window(first, last)), steps, says, curve)

    def failed(self, name: str, sentence: str) -> None:
        """An experiment that the adapter could not do."""
        self._add(name, "undecided", None, 0, sentence[:200], [])

    def _add(self, name: str, outcome: str, top: float | None, steps: int, says: str, curve: list[Any]) -> None:
        self.rows.append({"name": name, "outcome": outcome, "peak": top, "steps": steps, "says": says, "curve": curve})


def saves_moments(parts: Sequence[str]) -> bool:
    """Whether a state holds the optimizer's moments, as far as the worker says of what parts it is."""
    return bool({"optimizer", BY_ADAPTER} & set(parts))


@dataclass(frozen=True)
class Arm:
    """An arm that changes how the run's own steps go: `options` of `Lab.along`, and what the report says of it."""

    name: str
    options: dict[str, Any]
    says: str = ""


def optimizer_arms(again: Reproduction, about: dict[str, Any], leading: Sequence[str], begin: int, parts: Sequence[str]) -> list[Arm]:
    """The arms on rate and optimizer from step `begin` on, the most informative first; `parts` of the state that it all began from.

    Those that a leading cause asks for come first, in the order of the causes; then the cheap general ones.
    """
    trace, adaptive = again.trace, about["adaptive"]
    norms = sorted(n for i, n in enumerate(trace.norm) if n is not None and n == n and trace.first + i < begin)
    usual = norms[len(norms) // 2] if norms else None
    rates = trace.lr[: max(begin - trace.first, 1)]
    base = sorted(rates)[len(rates) // 2]
    now = trace.lr[begin - trace.first :]
    possible: dict[str, tuple[dict[str, Any], str]] = {
        "rate x 0.1": ({"changes": {"lr": 0.1}}, f"the rate was {max(now):.3g}"),
        "warmup again": ({"changes": {"warmup": max(20, again.first - begin + 8)}}, "the rate grows from zero over the window"),
    }
    if usual is not None and usual < float("inf"):
        possible["clipping on"] = ({"changes": {"clip": usual}}, f"at the usual norm, {usual:.3g}")
    if about["clip"] is not None or about["own_step"]:
        possible["clipping off"] = ({"changes": {"clip": "off"}}, "")
    if max(now) > 1.3 * base and base > 0:
        held = {str(s): base for s in range(begin, trace.first + len(trace) + 1)}
        possible["rate held"] = ({"changes": {"lr_as_logged": held}}, f"at {base:.3g}, what it was before")
    if adaptive:
        eps, betas = about["settings"].get("eps", 1e-8), about["settings"].get("betas") or [0.9, 0.999]
        possible["larger epsilon"] = ({"changes": {"eps": max(1e3 * eps, 1e-5)}}, f"{max(1e3 * eps, 1e-5):g} for {eps:g}")
        if len(betas) > 1 and betas[1] > 0.95:
            possible["smaller beta2"] = ({"changes": {"beta2": 0.95}}, f"0.95 for {betas[1]:g}")
        possible["moments reset"] = ({"reset": begin}, "")
        if begin > trace.first and saves_moments(parts):
            possible["moments as saved"] = ({"moments": [begin, "start"]}, f"those of step {trace.first + again.overlay.shift} once more")
    wanted = [a for cause in leading for a in asked_by(cause)]
    return [Arm(n, *possible[n]) for n in dict.fromkeys([*wanted, *GENERAL]) if n in possible]


def run_arms(
    arms: Arms, again: Reproduction, wanted: Sequence[Arm], begin: int, until: int, more: Sequence[Lab] = ()
) -> tuple[dict[str, str], list[str]]:
    """(outcome by arm as far as the budget reaches, the arms that it did not reach); each begins a little before the effect.

    `more`: labs on other devices, that take arms at the same time and stand at the same start.
    """
    lab, todo = arms.lab, queue.SimpleQueue[Arm]()
    for arm in wanted:
        todo.put(arm)
    outcomes: dict[str, str] = {}

    def work(bench: Lab) -> None:
        mine = Arms(arms.effect, arms.shift, bench, arms.rows)
        with contextlib.suppress(queue.Empty, OutOfBudget):
            if begin not in bench.states:
                bench.along(again.trace.first, begin - 1, keep={str(begin - again.trace.first): f"at {begin}"})
                bench.states[begin] = f"at {begin}"
            while True:
                arm = todo.get_nowait()
                run: Callable[[], Trace] = partial(bench.along, begin, until, **arm.options)
                outcomes[arm.name] = mine.tried(arm.name, run, max(begin, again.first - 2), until, says=arm.says)

    if more:
        for bench in more:
            bench.budget = max(lab.budget - lab.spent, 0) // (len(more) + 1)
        with ThreadPoolExecutor(len(more) + 1) as pool:
            for done in [pool.submit(work, bench) for bench in (lab, *more)]:
                done.result()
        lab.spent += sum(bench.spent for bench in more)
    else:
        work(lab)
    return outcomes, [arm.name for arm in wanted if arm.name not in outcomes]
