"""The arms: what each changes, and which are worth their steps given the causes that lead so far.

An arm that removes the effect says what the effect needs; it convicts only together with the control that other batches keep it.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from forensics.replay.bisect import OutOfBudget
from forensics.replay.lab import Effect, Lab, Trace, peak
from forensics.replay.reproduce import Reproduction

OPTIMIZER = ("rate x 0.1", "clipping on", "clipping off", "larger epsilon", "smaller beta2", "moments reset", "warmup again", "rate held")
ASKED_BY = {
    "lr_too_high": ("rate x 0.1", "rate held"), "lr_jump": ("rate held", "rate x 0.1"), "lr_schedule_reset": ("rate held", "warmup again"),
    "warmup_too_short": ("warmup again", "rate x 0.1"), "schedule_wrong_units": ("rate x 0.1",),
    "gradient_clipping_missing": ("clipping on",), "optimizer_second_moment": ("larger epsilon", "smaller beta2"),
    "optimizer_state_lost": ("moments reset", "warmup again"), "config_changed": ("rate x 0.1",),
}  # fmt: skip


@dataclass
class Arms:
    """Every experiment with its outcome, in the order it was run; rows of the report's table."""

    effect: Effect
    shift: int
    lab: Lab
    rows: list[dict[str, Any]] = field(default_factory=list)

    def tried(self, name: str, do: Callable[[], Any], first: int, last: int, *, says: str = "", outcome: list[str] | None = None) -> str:
        """Runs an experiment and notes it; the outcome is judged between steps `first` and `last`, or taken from `outcome`."""
        spent = self.lab.spent
        trace: Trace = do()
        result = outcome[0] if outcome else self.effect.judge(trace, first, last)
        self.note(name, result, trace, first, last, self.lab.spent - spent, says)
        return result

    def note(self, name: str, result: str, trace: Trace, first: int, last: int, steps: int, says: str = "") -> None:
        curve = [[s + self.shift, trace.at(s)] for s in range(max(first - 8, trace.first), min(last + 1, trace.first + len(trace)))]
        self.rows.append({"name": name, "outcome": result, "peak": peak(trace.window(first, last)), "steps": steps, "says": says, "curve": curve})


def optimizer_arms(again: Reproduction, about: dict[str, Any], leading: Sequence[str]) -> list[tuple[str, dict[str, Any], str]]:
    """(name, changes, what is said) of the arms on rate and optimizer, the most informative first.

    Those that a leading cause asks for come first, in the order of the causes; then the cheap general ones.
    """
    trace, adaptive = again.trace, about["adaptive"]
    begin = max(again.first - 16, trace.first)
    norms = sorted(n for i, n in enumerate(trace.norm) if n is not None and n == n and trace.first + i < begin)
    usual = norms[len(norms) // 2] if norms else None
    rates = trace.lr[: max(begin - trace.first, 1)]
    base = sorted(rates)[len(rates) // 2]
    now = trace.lr[begin - trace.first :]
    possible: dict[str, tuple[dict[str, Any], str]] = {
        "rate x 0.1": ({"lr": 0.1}, f"the rate was {max(now):.3g}"),
        "clipping on": ({"clip": usual}, f"at the usual norm, {usual:.3g}" if usual else ""),
        "clipping off": ({"clip": "off"}, ""),
        "warmup again": ({"warmup": max(20, again.first - begin + 8)}, "the rate grows from zero over the window"),
    }
    if usual is None or not usual < float("inf"):
        possible.pop("clipping on")
    if about["clip"] is None and not about["own_step"]:
        possible.pop("clipping off")
    if max(now) > 1.3 * base and base > 0:
        held = {str(s): base for s in range(begin, trace.first + len(trace) + 1)}
        possible["rate held"] = ({"lr_as_logged": held}, f"at {base:.3g}, what it was before")
    if adaptive:
        eps, betas = about["settings"].get("eps", 1e-8), about["settings"].get("betas") or [0.9, 0.999]
        possible["larger epsilon"] = ({"eps": max(1e3 * eps, 1e-5)}, f"{max(1e3 * eps, 1e-5):g} for {eps:g}")
        if len(betas) > 1 and betas[1] > 0.95:
            possible["smaller beta2"] = ({"beta2": 0.95}, f"0.95 for {betas[1]:g}")
        possible["moments reset"] = ({"moments": "reset"}, "")
    wanted = [a for cause in leading for a in ASKED_BY.get(cause, ())]
    names = list(dict.fromkeys([a for a in wanted if a in possible] + [a for a in ("rate held", "rate x 0.1", "clipping on", "larger epsilon", "moments reset", "smaller beta2", "warmup again", "clipping off") if a in possible]))
    return [(n, *possible[n]) for n in names]


def run_arms(lab: Lab, arms: Arms, again: Reproduction, wanted: list[tuple[str, dict[str, Any], str]], until: int, more: Sequence[Lab] = ()) -> dict[str, str]:
    """Outcome by arm, as far as the budget reaches; each begins a little before the effect. `more`: labs on other devices, that
    take arms at the same time and stand at the same start."""
    begin = lab.nearest(max(again.first - 16, again.trace.first))
    todo: queue.SimpleQueue[tuple[str, dict[str, Any], str]] = queue.SimpleQueue()
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
                name, changes, says = todo.get_nowait()
                outcomes[name] = "undecided"
                options: dict[str, Any] = {"changes": {k: v for k, v in changes.items() if k != "moments"}}
                if changes.get("moments") == "reset":
                    options["reset"] = begin
                outcomes[name] = mine.tried(name, lambda options=options: bench.along(begin, until, **options), max(begin, again.first - 2), until, says=says)  # type: ignore[misc]

    if not more:
        work(lab)
        return outcomes
    for bench in more:
        bench.budget = max(lab.budget - lab.spent, 0) // (len(more) + 1)
    with ThreadPoolExecutor(len(more) + 1) as pool:
        for done in [pool.submit(work, bench) for bench in (lab, *more)]:
            done.result()
    lab.spent += sum(bench.spent for bench in more)
    return outcomes
