"""How often a growing run is looked at: as often as the cost of a look allows.

A look takes what reading and judging the whole run takes, and a log of an hour takes longer than one of a minute. So the
pause after it grows with what it has cost, and the share of a core stays the same.
"""

from __future__ import annotations

import os
import time

SHARE = 0.012  # of a core for whole looks; aim: under 2 % with all the rest, for a run that logs once a second
URGENT = 0.1  # of a core where an alarm asks for a look; what it spends too much is saved afterwards
SHORT = 10.0  # seconds; of less a share says nothing
STAT = 0.004  # of a core for looking which files grew, and reading their ends


def cpu() -> float:
    """Seconds of CPU that this process and its children have spent."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


class Budget:
    """When a look is due; all times are those of the monotonic clock, in seconds."""

    def __init__(self) -> None:
        self.looks = 0
        self.began, self.start = time.monotonic(), cpu()  # of the time after the first look
        self._free = self._urgent = self.began

    def paid(self, cost: float) -> None:
        """A look was taken that cost so many seconds of CPU. The first one loads what all the others use."""
        now = time.monotonic()
        self.looks += 1
        self._urgent = now + cost / URGENT
        if self.looks == 1:
            self.began, self.start, self._free = now, cpu(), self._urgent
        else:
            self._free = max(self._free, now) + cost / SHARE

    def told(self) -> str:
        """What was spent, for the user."""
        seconds, spent = time.monotonic() - self.began, cpu() - self.start
        share = f", {100 * spent / seconds:.1f} % of a core" if seconds >= SHORT else ""
        looks = f"{self.looks} look{'s' * (self.looks != 1)}"
        return f"{looks}; {self.start:.1f} s of CPU to start, then {spent:.1f} s in {seconds:.0f} s{share}"

    def due(self, *, alarm: bool) -> bool:
        return time.monotonic() >= (min(self._urgent, self._free) if alarm else self._free)


def pause(every: float, cost: float) -> float:
    """Seconds to sleep after a glance at the files that cost so many seconds of CPU."""
    return max(every, cost / STAT)
