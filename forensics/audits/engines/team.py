"""Which workers of a cluster can do the work. Each is asked once, newcomers too; who cannot is left out, and that is told."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from forensics.audits.engines.probe import Answer, Probe
from forensics.errors import Cluster as Told

ANSWER = 60.0  # seconds for an answer, with the start of a process and the import of a file system's library
NAMED = 3  # hosts in a sentence

Ask = Callable[[Probe, str], "Future[Any]"]


class Team:
    """The workers that were asked, and what is known of each."""

    def __init__(self, ask: Ask, probe: Probe, kind: str) -> None:
        self._ask, self._probe, self._kind, self._ours = ask, probe, kind, probe()
        self._asked: dict[str, tuple[Future[Any], float]] = {}
        self._fit: set[str] = set()
        self._unfit: dict[str, tuple[str, str]] = {}  # worker -> its host, and what it cannot do
        self._odd: dict[str, tuple[str, str]] = {}  # worker -> its host, and what it has of its own
        self._told: set[str] = set()

    def able(self, present: Iterable[str]) -> set[str]:
        """Those of the workers that are there now that can do the work, as far as they have answered."""
        for worker in (there := set(present)) - self._fit - self._unfit.keys() - self._asked.keys():
            self._asked[worker] = (self._ask(self._probe, worker), time.monotonic())
        for worker, (answer, since) in list(self._asked.items()):
            if answer.done() or time.monotonic() - since > ANSWER:
                del self._asked[worker]
                self._hear(worker, answer)
        return self._fit & there

    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._asked)

    def unable(self) -> str:
        """How many workers cannot do the work, and why; empty where all can."""
        return "; ".join(self._sentences(self._unfit))

    def tell(self) -> None:
        """Warns of what is new: who is left out, and whose versions differ."""
        unfit, odd = ({w: v for w, v in known.items() if w not in self._told} for known in (self._unfit, self._odd))
        self._told |= unfit.keys() | odd.keys()
        for text in [f"{t}; left out" for t in self._sentences(unfit)] + self._sentences(odd):
            warnings.warn(text, Told, stacklevel=2)

    def _hear(self, worker: str, answer: Future[Any]) -> None:
        said: Any = (answer.exception() or answer.result()) if answer.done() else TimeoutError()
        if isinstance(said, TimeoutError):
            self._unfit[worker] = worker, f"did not answer within {ANSWER:.0f} s"
        elif not isinstance(said, Answer):
            self._unfit[worker] = worker, f"cannot load forensics {self._ours.forensics} ({type(said).__name__})"
        elif said.forensics != self._ours.forensics:
            self._unfit[worker] = said.host, f"have forensics {said.forensics}, not {self._ours.forensics}"
        elif said.trouble:
            self._unfit[worker] = said.host, said.trouble
        else:
            self._fit.add(worker)
            if (said.python, said.pyarrow) != (self._ours.python, self._ours.pyarrow):
                here = f"not {self._ours.python} and {self._ours.pyarrow} as here"
                self._odd[worker] = said.host, f"have Python {said.python} and pyarrow {said.pyarrow}, {here}"

    def _sentences(self, workers: dict[str, tuple[str, str]]) -> list[str]:
        hosts = defaultdict(list)
        for host, what in workers.values():
            hosts[what].append(host)
        total = len(self._fit) + len(self._unfit)
        return [f"{len(h)} of {total} {self._kind} ({_named(h)}) {what}" for what, h in sorted(hosts.items())]


def _named(hosts: list[str]) -> str:
    few = sorted(set(hosts))
    more = f" and {len(few) - NAMED} more" if len(few) > NAMED else ""
    return ", ".join(few[:NAMED]) + more
