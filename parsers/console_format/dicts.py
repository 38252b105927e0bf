"""Finds the steps of ``{'loss': 2.3, 'epoch': 0.1}``, the lines transformers' Trainer prints without one.

The progress bar that the Trainer redraws before and after each such line shows the step exactly (trainer_callback.py,
ProgressCallback: ``training_bar.write``). Without a bar, ``epoch`` times the steps of an epoch gives it, if the header
``***** Running training *****`` says how many examples and how large a batch; ``epoch`` is rounded, so the nearest
multiple of the logging interval is taken. Otherwise the lines are numbered; where their epoch goes back to one between the first and the last, the
training goes on from an earlier state, and the number goes back with it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from parsers.console_format.line_prefix import Where
from parsers.console_format.line_shapes import Row
from parsers.records.by_turns import BY_TURNS, leaps_back
from parsers.tables import LINES_COUNTED

NOTE = "steps of {'loss': ...} lines: "
_BUNCH = 3  # bound: lines that say how far apart they were logged
_HALF_DIGIT = 0.005  # unit: of an epoch that is printed with two digits


class Waiting(NamedTuple):
    where: Where
    metrics: list[tuple[str, float]]
    text: str


def with_epoch(metrics: list[tuple[str, float]], parts: dict[str, int]) -> list[tuple[str, float]]:
    """With the epoch of Trainer's last line of each: a whole number, which elsewhere is a place and no measurement."""
    return [*metrics, ("epoch", float(parts["epoch"]))] if "epoch" in parts else metrics


class Dicts:
    """A dict line waits until the line behind it is seen; ``step`` then says its step and how that is known."""

    def __init__(self) -> None:
        self.header: dict[str, int] = {}  # numbers below "***** Running training *****"
        self.waiting: Waiting | None = None
        self.count = self.interval = 0
        self.at = -1  # line of the last one
        self.alone = -1  # place of a first one that is counted, until there is a second
        self.beside = False  # a bar gave a dict line its step
        self.buffered = False  # dict lines came in bunches, far from the bar that was drawn when they were logged
        self.epochs: dict[int, float] = {}  # place of a line that was counted -> its epoch
        self.numbers: dict[int, tuple[int, float | None]] = {}  # by place of a counted line: its number; its epoch, None of an evaluation
        self.on_bar: dict[str, str] = {}  # what progress bars show, as it is printed
        self.bar = (-100, 0, 0)  # line, position and total of the training bar (evaluation has shorter ones)

    def saw_bar(self, n: int, parts: dict[str, int]) -> None:
        if "it" in parts and "total" in parts and parts["total"] >= (self.header.get("Total optimization steps") or self.bar[2]):
            self.bar = (n, parts["it"], parts["total"])

    def carried(self, said: dict[str, str], parts: dict[str, int]) -> bool:
        """Is a bar at its beginning with the numbers that one showed before? They are of before (Lightning, each epoch)."""
        if said and parts.get("it") == 0 and said.items() <= self.on_bar.items():
            return True
        self.on_bar |= said
        return False

    def step(self, waiting: Waiting, bar: dict[str, int], another: bool = False, reached: int | None = None) -> tuple[int, str]:
        """`reached`: the step of the line before, where it is of another kind."""
        values = dict(waiting.metrics)
        evaluation = any(tag.startswith("eval_") for tag in values)
        beside = (bar and bar.get("total") == self.bar[2]) or waiting.where.line - self.bar[0] <= 1
        self.buffered = self.buffered or (another and not bar and not evaluation)
        if self.buffered and (step := self._by_epoch(values)) is not None:
            return step, "computed from epoch, epochs and total of the progress bar, for the lines came in bunches"
        if not self.buffered and (beside or (evaluation and self.bar[2])):
            self.beside = True
            return self.bar[1], "taken from the progress bar"
        examples, batch, epoch = self.header.get("Num examples"), self._batch_size(), values.get("epoch", -1.0)
        if examples and batch and 0 <= epoch < 1e6:
            guess = epoch * -(-examples // batch)
            self.interval = self.interval or max(1, round(guess))
            even = round(guess / self.interval) * self.interval
            known = "computed from epoch, examples and batch size"
            return (even if abs(even - guess) <= 0.5 + guess * 0.002 else round(guess)), known
        if reached is not None and "loss" not in values:
            return reached, "of the line before that names one"  # Lightning's results of a test, behind a loop's own lines
        self.count += not evaluation
        self.epochs |= {waiting.where.place: epoch} if epoch >= 0 else {}
        self.numbers[waiting.where.place] = self.count, None if evaluation or epoch < 0 else epoch
        return self.count, LINES_COUNTED

    def counted(self, waiting: Waiting, step: int, how: str, rows: list[Row]) -> tuple[int | None, list[Row]]:
        """The step of a line, None for the only one that would be counted: that is what a program prints at its end (Lightning's results); and the
        rows so far, in which the first gets its number when there is a second. The Trainer's lines say their epoch."""
        if how != LINES_COUNTED or any(tag == "epoch" for tag, _ in waiting.metrics):
            return step, rows
        if step == 1:
            self.alone = waiting.where.place
            return None, rows
        first, self.alone = self.alone, -1
        return step, [(row[0], 1, *row[2:]) if row[0] == first else row for row in rows] if first >= 0 else rows

    def _by_epoch(self, values: dict[str, float]) -> int | None:
        """The step of a fraction of the epochs, where the log said how many there are; to the nearest that is logged."""
        epochs, every, epoch = self.header.get("Num Epochs"), self.header.get("logging_steps", 1), values.get("epoch")
        if not epochs or not self.bar[2] or epoch is None or not 0 <= epoch <= epochs:
            return None
        self.beside = True
        return min(round(epoch * self.bar[2] / epochs / every) * every, self.bar[2])

    def placed(self, rows: list[Row], notes: dict[str, None]) -> list[Row]:
        """The rows once the log is read: lines that were counted stand where their epochs say, if the bar came to its end, which is the last epoch
        that any line says. A log that a shell wrote gets what was printed in bunches, far from the bar. Epochs are rounded to two digits."""
        _, reached, total = self.bar
        if len(self.epochs) < _BUNCH or not 1 < total == reached:
            again = self._set_back()
            return [(row[0], again.get(row[0], row[1]) if row[1] is not None else None, *row[2:]) for row in rows] if again else rows
        last = max((value for _, _, tag, value, *_ in rows if tag == "epoch"), default=0.0)
        if last <= 0:
            return rows
        exact = {place: epoch * total / last for place, epoch in self.epochs.items()}
        every = _distance(sorted({*exact.values()}))
        even = {place: round(x / every) * every for place, x in exact.items()}
        near = all(abs(even[place] - x) <= 0.5 + _HALF_DIGIT * total / last for place, x in exact.items())
        steps = {place: min(even[place] if near else round(x), total) for place, x in exact.items()}
        self.beside, self.epochs = True, {}
        notes.pop(NOTE + LINES_COUNTED, None)
        notes[NOTE + "computed from epoch and total of the progress bar, for the lines came in bunches"] = None
        return [(row[0], steps.get(row[0], row[1]), *row[2:]) for row in rows]

    def _set_back(self) -> dict[int, int]:
        """Place -> number of the counted lines, where an epoch goes back to one above the first: the number goes back to that of the first line of
        the epoch. Nothing where it leaps back up again and again: processes that write by turns."""
        found: dict[int, int] = {}
        way: list[tuple[float, int]] = []  # epochs and numbers, as far as the training is
        less = 0  # how much lower the numbers are since the last fall
        for place, (number, epoch) in self.numbers.items():
            if epoch is not None:
                if way and way[0][0] < epoch < way[-1][0]:
                    while len(way) > 1 and way[-2][0] >= epoch:
                        way.pop()
                    less = number - way.pop()[1]
                way.append((epoch, number - less))
            found[place] = number - less
        return found if less and leaps_back([e for _, e in self.numbers.values() if e is not None]) < BY_TURNS else {}

    def drawn(self) -> tuple[int, int, int]:
        """Line, position and total of the training bar beside the dict lines; total 0 where none stood there."""
        return self.bar if self.beside else (0, 0, 0)

    def _batch_size(self) -> int:
        known = self.header
        device = known.get("Instantaneous batch size per device", 0) * known.get("Gradient Accumulation steps", 1)
        return next((v for k, v in known.items() if k.startswith("Total train batch")), device)


def _distance(steps: list[float]) -> int:
    """The whole number of which such rounded steps are multiples, near the usual distance of two."""
    gaps = sorted(b - a for a, b in pairwise(steps))
    usual = max(1, round(gaps[len(gaps) // 2])) if gaps else 1
    near = range(max(1, usual - usual // 8 - 1), usual + usual // 8 + 2) if usual > 1 else (1,)
    return min(near, key=lambda n: (sum(abs(round(x / n) * n - x) for x in steps), abs(n - usual)))
