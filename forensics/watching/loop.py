"""Follows a run until it has ended: glances at its files often, looks at the whole run as often as that may cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forensics.errors import ForensicsError, WrongUsage
from forensics.run.how_it_ended import RUNNING_SECONDS
from forensics.watching import budget, news
from forensics.watching.growth import Growth
from parsers.tables import Run

Document = dict[str, Any]
SILENCE = RUNNING_SECONDS  # seconds without a new byte that are told: longer than most logging intervals and saves


@dataclass(frozen=True)
class Seen:
    """What a look at a run gives: every run below its path, the case as it was written, and the one that stood in its place before."""

    runs: list[Run]
    document: Document
    earlier: Document | None


@dataclass(frozen=True)
class Listener:
    """Who hears of a run: ``news`` gets lines for a person, ``finding`` each new finding of severity warning or worse."""

    news: Callable[[str], None]
    trouble: Callable[[str], None]  # what stood in the way of a look
    finding: Callable[[Document, Document], None]


class Follower:
    """A run that is being followed. What its case already said is no news."""

    def __init__(self, growth: Growth, look: Callable[[], Seen], listener: Listener) -> None:
        self.growth, self.look, self.listener = growth, look, listener
        self.budget, self._news = budget.Budget(), news.News()
        self._grown = time.monotonic()  # when a file last changed
        self._silent = self._alarm = self._looked = False
        self._stale = True  # is there something that no look has seen?
        self._trouble = ""

    def once(self) -> None:
        """One look. Raises ForensicsError where nothing can be read."""
        self.growth.changed()
        self._news.resumed = True
        self._hear(self.look())

    def until_it_ends(self, every: float) -> str:
        """Looks until the run has ended; -> how it did."""
        while True:
            began = budget.cpu()
            self._glance()
            cost = budget.cpu() - began
            if self._stale and self.budget.due(alarm=self._alarm) and (how := self._look()):
                return how
            time.sleep(budget.pause(every, cost))

    def _glance(self) -> None:
        if self.growth.changed():
            self._grown, self._silent, self._stale = time.monotonic(), False, True
            if self._looked:
                self._alarm |= bool(self.growth.alarms())
        elif self._looked and not self._silent and time.monotonic() - self._grown >= SILENCE:
            self._silent = True
            self.listener.news(f"nothing was written for {SILENCE / 60:.0f} minutes")

    def _look(self) -> str:
        """A whole look; -> how the run ended, "" while it goes on."""
        began = budget.cpu()
        self._stale = self._alarm = False
        try:
            how = self._hear(self.look())
        except WrongUsage:
            raise
        except ForensicsError as e:  # files that are being written may come to be readable
            how = ""
            if e.message != self._trouble:
                self.listener.trouble(f"{e.message}: waiting for more")
            self._trouble = e.message
        self.budget.paid(budget.cpu() - began)
        if how and not self.growth.changed():
            return how
        self._stale = bool(how) or self._news.unsure  # it has gone on meanwhile, or something is to be confirmed
        return ""

    def _hear(self, seen: Seen) -> str:
        now, self._trouble = seen.document, ""
        self.growth.learn(seen.runs)
        if not self._looked:
            self.growth.alarms()  # what came before the first look was seen by it
        lines, found = self._news.of(now, seen.earlier)
        for line in lines:
            self.listener.news(line)
        for finding in found:
            self.listener.finding(now, finding)
        self._looked = True
        return news.over(now)
