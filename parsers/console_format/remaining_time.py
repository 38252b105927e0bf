"""Which end a loop's remaining time runs to: that of the epoch (LAVIS, DINO, torchvision) or that of the run (MMCV, PaddleDetection).

A loop that counts its remaining time through the run counts its iterations through the run, too, though it prints them by epoch.
"""

from __future__ import annotations

from parsers.lazy_regex import lazy_re

_ETA = lazy_re(r"(?i)\beta\b\W{0,3}(?:(\d+) days?,? *)?(\d+):(\d\d)(?::(\d\d))?")
LATE = 0.9  # of an epoch: its own remaining time has fallen to a tenth there
SLOWER = 2.0  # times what is left by the first lines of the epoch: an epoch may slow down, its remaining time falls all the same


def seconds_left(text: str) -> float | None:
    """What a line says is left: 'eta: 1 day, 17:59:33', 'eta 03:20'; None where it says nothing."""
    m = _ETA.search(text)
    if m is None:
        return None
    a, b, c = int(m[2]), int(m[3]), m[4]
    return 86400.0 * int(m[1] or 0) + (60 * a + b if c is None else 3600 * a + 60 * b + int(c))


class Remaining:
    """``of_run``: at the end of an epoch more time was left than the epoch can have."""

    def __init__(self) -> None:
        self.of_run = False
        self._first: tuple[int | None, float, float] = (None, 0.0, 0.0)  # epoch, seconds left, part of the epoch left

    def saw(self, text: str, epoch: int | None, it: int, total: int) -> None:
        """A line ``it`` of ``total`` of an epoch."""
        begins = epoch != self._first[0]
        if self.of_run or not (begins or it >= LATE * total) or (left := seconds_left(text)) is None:
            return
        if begins:
            self._first = (epoch, left, 1 - it / total)
            return
        _, before, part = self._first
        of_epoch = before * max(1 - it / total, 1 - LATE) / part if part > 1 - LATE else left
        self.of_run = left > SLOWER * of_epoch
