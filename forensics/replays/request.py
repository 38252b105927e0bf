"""What is asked of a replay, what comes back, and what all experiments on one effect share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forensics.case import Case
from forensics.replays import all_ranks, verdict
from forensics.replays.agreement import Check
from forensics.replays.arms import Arms
from forensics.replays.client import MEMORY, Order, Worker
from forensics.replays.journal import Answering
from forensics.replays.reproduce import Reproduction
from forensics.replays.runner import Effect, Lab
from forensics.replays.start_checkpoints import Start
from forensics.replays.targets import Logged, Trouble
from parsers.tables import Run

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    adapter: Path
    python: str
    device: str = "auto"
    budget: int | None = None
    steps: tuple[int, int] | None = None
    checkpoint: str | None = None
    timeout: float = 300.0
    threads: int = 0
    memory: int = MEMORY  # bytes of states in memory; more go to disk
    max_time: float = math.inf  # seconds, from the first step on
    more_workers: int = 0  # beside the one, and one for each further GPU
    order: Order = None  # of the samples, where the adapter leaves it to the run
    processes: int = 1  # ranks, on this machine
    check: bool = False  # whether the adapter is checked, and nothing else done
    journal: Path | None = None  # what was learned so far, for a second start
    show: bool = False  # whether samples of the culprits are kept for the page


def started(options: Options, root: object, processes: Sequence[dict[str, str]] | None = None) -> Worker:
    """A worker with the user's adapter, with a process for each rank unless the `processes` are given. `root`: the run, that it may not change."""
    each = all_ranks.environments(options.processes) if processes is None else processes
    return Worker(options.python, options.adapter, run=root, timeout=options.timeout, order=options.order, processes=each)


@dataclass
class Result:
    """What replay found: `document` is case.json's `replay`, `clues` the weights for the ranking."""

    document: dict[str, Any]
    outcomes: verdict.Outcomes | None = None
    culprits: list[dict[str, Any]] = field(default_factory=list)
    traceback: str = ""
    low_precision: bool = False
    failed: str = ""
    interrupted: bool = False
    root: str = ""
    steps_elsewhere: int = 0  # steps that further workers ran
    recalled: int = 0  # steps that the journal of an earlier start knew
    unproven: bool = False  # the log holds too little to show that the adapter is the run's
    content: list[dict[str, Any]] = field(default_factory=list)  # samples for the page, where they were asked for; no part of the document


@dataclass(frozen=True)
class Asked:
    """What is to be explained, by which worker; `about` is what that says of the adapter."""

    run: Run
    case: Case
    options: Options
    worker: Answering
    about: dict[str, Any]
    progress: Progress
    deadline: float = math.inf  # time.monotonic() after which no further experiment is begun
    checked: Check | None = None


@dataclass(frozen=True, kw_only=True)
class Scene(Asked):
    """One effect that came back or did not: its log, the bench with its states, and where the replay began.

    `known` are the good checkpoints; `bound` the steps that one culprit should cost.
    """

    known: list[Start]
    start: Start
    parts: list[str]  # of the state it began from: "weights", "optimizer", ...
    lab: Lab
    arms: Arms
    again: Reproduction
    trouble: Trouble
    log: Logged
    bound: int
    result: Result
    first: bool  # of the run's effects; of the others only the culprits are wanted

    @property
    def effect(self) -> Effect:
        """The effect to judge by, of a scene where it came back."""
        return self.arms.effect

    @property
    def shift(self) -> int:
        return self.again.overlay.shift

    @property
    def leading(self) -> list[str]:
        """The causes that lead before the replay, best first."""
        return [h.id for h in self.case.hypotheses[:6]]

    @property
    def begin(self) -> int:
        """The kept state a little before the effect, where most arms begin."""
        return self.lab.nearest(max(self.again.first - 16, self.again.trace.first))

    def tell(self, what: str) -> None:
        self.progress(what, self.lab.spent, self.lab.budget)
