"""A bar that is drawn anew more often than its count moves: tqdm's ``set_postfix`` draws at once, the count at most ten times a second.

Where as many values stand behind one count as the next count is further, each is that of a batch; else the last one stands for its count.
"""

from __future__ import annotations

from parsers.console_format.line_prefix import Line
from parsers.console_format.line_shapes import Row

MOST = 10_000  # bound: updates that wait for the count to move
Words = tuple[str, ...]


def counts_batches(line: Line, parts: dict[str, int]) -> bool:
    """Is it a bar of the training that counts up to a total?"""
    return not line.mode and {"it", "total"} <= parts.keys()


class Redraws:
    """Updates of one count, until the next one tells how many batches they are."""

    def __init__(self) -> None:
        self._step: int | None = None  # of the count
        self._waiting: list[tuple[int, Words]] = []  # place and values of each update
        self._last: Words = ()  # values of the update before these
        self._taken = 0  # updates of this count that were handed over
        self._each = False  # a count has proved that each update is a batch

    def drawn(self, place: int, step: int | None, values: Words) -> tuple[dict[int, int], set[int]]:
        """Takes an update; -> of those before: the steps that their places are of, and the places that another one replaces."""
        known: tuple[dict[int, int], set[int]] = ({}, set())
        if step != self._step or len(self._waiting) >= MOST:
            known = self._settled(None if step is None or self._step is None else step - self._step)
            self._step, self._taken = step, 0
        self._waiting.append((place, values))
        return known

    def handed_over(self) -> tuple[dict[int, int], set[int]]:
        """The same of all that wait, before their rows are handed over."""
        return self._settled(None)

    def _settled(self, moved: int | None) -> tuple[dict[int, int], set[int]]:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return {}, set()
        again = not self._taken and waiting[0][1] == self._last  # the count was drawn, with the values of the batch before
        new, self._last = waiting[again:], waiting[-1][1]
        counted = self._taken + len(new)
        self._each = self._each or (moved is not None and counted == moved > 1)
        if self._step is not None and self._each and moved in (counted, None):
            steps = {place: self._step + self._taken + i for i, (place, _) in enumerate(new, 1)}
            self._taken = counted
            return steps, {waiting[0][0]} if again else set()
        # what is drawn again on leaving says nothing new
        kept = max(i for i, (_, values) in enumerate(waiting) if i == 0 or values != waiting[i - 1][1])
        return {}, {place for i, (place, _) in enumerate(waiting) if i != kept}


def moved(rows: list[Row], steps: dict[int, int], replaced: set[int]) -> list[Row]:
    """The rows, of which the last ones are of other steps, or replaced."""
    since = min([*steps, *replaced])
    i = len(rows)
    while i and rows[i - 1][0] >= since:
        i -= 1
    return rows[:i] + [(r[0], steps.get(r[0], r[1]), *r[2:]) for r in rows[i:] if r[0] not in replaced]
