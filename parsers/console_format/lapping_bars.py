"""Bars and counts of batches that name no epoch: they begin again in each, below a line that names it or above one that sums it up.

``Epoch 3/10`` stands above the bar (``100%|##| 665/665 [00:04<00:00, loss=0.6]``), or ``Epoch 3/10 | Train Loss: 0.86`` below it. What
stands below is known too late for the bar's own updates: they are laid one epoch further and moved where the line says another one.
"""

from __future__ import annotations

from parsers.console_format.line_prefix import Line
from parsers.records.vocabulary import BATCH_NUMBER


class Bars:
    """Where the bar is, and the steps before each epoch."""

    def __init__(self) -> None:
        self.total = 0
        self.before: dict[int, int] = {}  # epoch -> steps before it
        self.at = (-1, 0)  # epoch and position of the last update
        self.anew = self.began = False  # drawn from its beginning in this epoch; with this very update
        self.lap = self.moved = 0  # where the bar of this epoch began, and by how many steps the line below it moves it

    def lay(self, epoch: int, base: int, it: int, total: int, first: int = 1) -> int | None:
        """The step of a bar's update in this epoch; None for a shorter bar, of something else. A bar that goes on through epochs is over them all.
        ``first``: the count at which one begins."""
        if total < self.total:
            return None
        (last, reached), self.total = self.at, total
        self.began = epoch != last
        if self.began:
            self.anew = it <= (reached if last >= 0 else first)
        if epoch not in self.before:
            earlier = (epoch - base) * total * (epoch > base and self.anew) if last < 0 else 0  # a log that begins in a later epoch
            self.before[epoch] = self.before[last] + total * self.anew if 0 <= last < epoch else earlier
        self.at = (epoch, it)
        return self.before[epoch] + it

    def summed_up(self, epoch: int, base: int) -> int:
        """The line below a bar names its epoch: by how many steps it is another one than was thought (of a resume, of the next fold)."""
        thought, reached = self.at
        if thought < 0 or not self.anew or epoch == thought:
            self.anew = False
            return 0
        before = self.before.pop(thought)
        self.before.setdefault(epoch, max(epoch - base, 0) * self.total)
        self.at, self.anew = (epoch, reached), False
        self.moved = self.before[epoch] - before
        return self.moved

    def moves(self, place: int) -> tuple[int, int]:
        """From which place on what was measured stands in another epoch, and by how many steps; this update or line has its own place."""
        if self.began:
            self.lap, self.began = place, False
        by, self.moved = self.moved, 0
        return self.lap, by

    def fell(self) -> bool:
        """Was such a bar drawn anew in another epoch?"""
        return any(self.before.values())


def laps(line: Line, parts: dict[str, int]) -> bool:
    """May its count begin again in each epoch, which the line does not name: that of a bar, or of ``batch: 200/1600``?"""
    word = next((f.tag for f in line.fields if f.role == "it"), "").lower()
    return (
        {"it", "total"} <= parts.keys() and not {"epoch", "step"} & parts.keys() and (line.bar or word.rpartition(" ")[2] in BATCH_NUMBER)
    )
