"""Works out the step of a line from what it names: global step, step, iteration within an epoch, or epoch alone.

Whether epochs count from 0 or 1 shows when an epoch 0 is seen. ``Epoch 2 | step 100/500`` is within its epoch
(Lightning, PyTorch tutorials) or over the whole run (nanochat): it shows when the epoch rises and the step does not.
"""

from __future__ import annotations

from parsers.console_format.lapping_bars import Bars, laps
from parsers.console_format.line_prefix import Line
from parsers.records.vocabulary import BATCH_NUMBER, COMPOSED_STEPS, EPOCH_STEPS, STEP, THROUGH_THE_RUN

RUN_COUNT = 2  # epochs that went on counting: one may be a longer epoch than the one before it; bound: two in a row by chance hardly


class Steps:
    """Where the log is: ``step`` and the ``line`` that said so."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.line = -100
        self.every = 0  # how far the last step was from the one before it
        self.loose = False  # a loss came before any step
        self.epoch: int | None = None
        self.headed = False  # "Epoch 3/12" stands alone above its lines
        self.sure = False  # that such a line heads what is below it: "epoch: 10" alone is a setting
        self.rose = False  # no line has counted yet since that epoch rose
        self.aside = False  # the last line counts to another total than the steps of an epoch: an evaluation
        self.full: int | None = None  # the last epoch whose steps were all counted
        self.beside = False  # such an evaluation began when the epoch was full, and is shorter
        self.told = False  # the epoch of that heading stands among the measurements
        self.through = False  # a line named the step by a word that counts through the run
        self.base = 1
        self.within, self.last = True, -1
        self.supposed = (-1, -1, 0)  # place, epoch, and steps before it, of the first lines that were taken to count within their epoch
        self.wrong = (-1, 0)  # since which place they proved to count through the run, and by how much they have to move
        self.finer = False  # steps finer than epochs were seen
        self.way = ""  # how the last step was found: named, composed of epoch and iteration, epoch
        self.ways: set[str] = set()
        self.length = 0  # steps of an epoch, where lines tell it
        self.begun = (0, 0, 0)  # epoch and step from which on epochs have the length of their first line, and that length
        self.ran = (-1, 0)  # the last epoch whose batches were counted, and the step at its end
        self.laps: dict[int, int] = {}  # epoch -> steps before it, where lines count within their epoch
        self.lap = (-1, -1)  # epoch and count of the last such line
        self.onward = 0  # epochs that went on counting where the one before them stopped
        self.bars = Bars()
        self.under: int | None = None  # the last epoch that a line named below its steps
        self.bar = (-1, 0, 0)  # epoch, count and total of the last bar that counts within its epoch

    def forget(self) -> None:
        """Another launch begins to write: how long its epochs are is its own. Epochs that were laid end to end stay: it may go on in one of them."""
        self.length, self.begun, self.bar, self.full, self.last = 0, (0, 0, 0), (-1, 0, 0), None, -1
        self.bars, self.under = Bars(), None
        self.headed = self.rose = self.aside = self.beside = self.told = False

    def heading(self, epoch: int, n: int, body: str) -> None:
        """``Epoch 3/12`` stands alone in line ``n``: where nothing counts finer, it is the step of what is below it."""
        self.rose = self.epoch is not None and epoch > self.epoch
        self.sure = self.sure or self.rose or not {":", "="} & {*body}
        self.headed, self.epoch, self.told = True, epoch, False
        self.base = 0 if epoch == 0 else self.base
        if not self.finer:
            self.step, self.line, self.way = epoch, n, "epoch"

    def covers(self) -> bool:
        """Does an epoch stand alone above, and nothing counts finer, so that all below it is of it? Not where losses stand above their epoch."""
        return self.headed and self.sure and self.way == "epoch" and not self.finer and not self.loose

    def resolve(self, line: Line, parts: dict[str, int], n: int) -> int | None:
        """The step of a line that names one in any way, now also the step of the log."""
        epoch, it, total = parts.get("epoch"), parts.get("it"), parts.get("total")
        word = next((f.tag for f in line.fields if f.role == "it"), "")
        first = next((f.role for f in line.fields if f.role in {"it", "epoch"}), "it")
        self.base = 0 if epoch == 0 else self.base
        below = it is not None and epoch is None and not line.bar and self.headed and (total is not None or not word)
        behind = line.bar and self._drawn_behind(epoch, total)
        self.aside = behind or (below and self.length not in (0, total) and total is not None and self.ran[0] in (-1, self.epoch))
        if self.aside:
            self.beside = behind or (total is not None and self.full == self.epoch and total < self.length)
            return self.step
        if below:
            epoch = self.epoch  # keras, paddle: "Epoch 3/12" above
        if self.headed and epoch is None and (line.counted or _counts_in_front(line)):
            epoch = self.epoch
        step: int | None
        if laps(line, parts) and epoch is None and it is not None and total is not None and not (line.bar and line.mode):
            step, self.way = self._lapping(it, total, 1 if line.bar else it) if not line.mode else self.step, "lap"
            if self.aside:
                return step
        elif line.bar and epoch is not None and self._overruns(epoch, parts):
            it = self.bar[1]
            step, self.way = self._composed(epoch, it, self.bar[2], bool(line.mode)), "composed"
        elif "step" in parts:
            self.through = self.through or not within_epochs(line)
            through = epoch is None or not within_epochs(line)
            step, self.way = (
                (parts["step"], "named") if through else (self._laid(epoch or 0, parts["step"], held_out=bool(line.mode)), "lap")
            )
        elif it is not None and epoch is not None and total and (first == "epoch" or below or word.lower() in BATCH_NUMBER):
            self._proves(it, bool(word) and ((self.epoch is not None and epoch > self.epoch and not self.headed) or (below and self.rose)))
            step, self.way = (self._composed(epoch, it, total, bool(line.mode)), "composed") if self.within or not word else (it, "named")
            self._supposes(epoch, step - it, n)
            self.bar = self.bar if line.mode else (epoch, it, total) if line.bar else (-1, 0, 0)
            self.length = total if (not word or (below and self.within)) and not line.bar else self.length
        elif it is not None:
            step, self.way = (it, "named") if epoch is None or word else (self._laid(epoch, it, self.length), "lap")
        else:  # only an epoch: on the axis of the steps where there is one
            step, self.way = (self.step, "") if self.step is not None and self.finer else (epoch, "epoch")
            if epoch is not None and not line.mode:
                moved, self.under = 0 if self.headed else self.bars.summed_up(epoch, self.base), epoch
                step = step + moved if step is not None else step
        self.ways.add(self.way)
        self.full = self.epoch if below and it == total else self.full
        self.last = it if it is not None else self.last
        self.finer = self.finer or it is not None or "step" in parts
        self.epoch = epoch if epoch is not None else self.epoch
        self.reach(step, n)
        return step

    def _proves(self, it: int, in_a_later_epoch: bool) -> None:
        """A count that goes on in a later epoch counts through the run, and so did those of the epoch before, of which nothing showed it."""
        if not in_a_later_epoch:
            return
        self.within, self.rose = it <= self.last if self.last >= 0 else self.within, False
        if not self.within:
            self.wrong = self.supposed[0], -self.supposed[2]

    def _supposes(self, epoch: int, before: int, n: int) -> None:
        """Keeps what was made of the lines of the first epoch: its steps ``before`` them."""
        if self.way == "composed" and self.supposed[1] != epoch:
            self.supposed = (-1, epoch, 0) if self.supposed[1] >= 0 else (n << 20, epoch, before)

    def moves(self, place: int) -> tuple[int, int]:
        """Since which place, and by how much, rows have to move now that more is known of how lines count."""
        (since, by), self.wrong = self.wrong, (-1, 0)
        if since >= 0:
            self.supposed = (-1, 0, 0)
            return since, by
        return self.bars.moves(place)

    def reach(self, step: int | None, n: int) -> None:
        """Line ``n`` says that the log is at this step."""
        apart = (step or 0) - (self.step or 0)
        self.every = apart if apart > 0 else self.every
        self.step, self.line = step, n

    def tabled(self, step: int | None, n: int, of_epoch: bool) -> None:
        """A table at line ``n`` says the step; ``of_epoch``: its rows are redrawn until their epoch is over, and count epochs."""
        self.step, self.line = step, n
        self.ways |= {"epoch"} if of_epoch and step is not None else set()

    def _composed(self, epoch: int, it: int, total: int, held_out: bool) -> int:
        """The step of iteration ``it`` of ``total``. Epochs that go on with another number of batches (another batch size after a resume) go on in
        steps, too; those that fall back are as they were. A batch of an evaluation stands where training stands (``held_out``)."""
        since, step, length = self.begun
        over = max(0, self.bar[1] - self.bar[2]) if self.bar[0] < epoch else 0  # steps of the epoch before that its total leaves out
        last, end = self.ran
        rises = epoch > last >= 0
        if held_out and last == epoch and total < length and self.step is not None:
            return self.step  # its batches are counted by themselves, and training stands where it stood
        if held_out and not length:
            return (epoch - self.base) * total + it
        if not length and rises and end != (last + 1 - self.base) * total:  # another launch goes on, with another number of batches
            self.begun = since, step, length = epoch, end + (epoch - last - 1) * total, total
        elif epoch < since or not length or (0 <= epoch < last and not held_out):
            self.begun = since, step, length = self.base, 0, total
        elif ((rises and total != length) or over) and not held_out:
            self.begun = since, step, length = epoch, step + (epoch - since) * length + over, total
        if not held_out:
            self.ran = epoch, step + (epoch - since + 1) * total
        return step + (epoch - since) * total + it

    def _lapping(self, it: int, total: int, first: int) -> int | None:
        """The step of a count that names no epoch: that of the heading, or one more than the last line below named. A shorter one stands ``aside``."""
        epoch = (self.epoch or 0) if self.headed else (self.base - 1 if self.under is None else self.under) + 1
        step = self.bars.lay(epoch, self.base, it, total, first)
        self.aside = step is None
        self.beside = self.aside and self.bars.at[1] >= self.bars.total - 1
        return self.step if step is None else step

    def _drawn_behind(self, epoch: int | None, total: int | None) -> bool:
        """Is a shorter bar of an epoch drawn behind the one that came to its end? It evaluates."""
        of, it, length = self.bar
        return epoch == of and it >= length > (total or length)

    def _overruns(self, epoch: int, parts: dict[str, int]) -> bool:
        """Does a bar go on behind its total, as ``15it`` after ``14/14`` of this epoch? tqdm says the total no more then."""
        of, it, total = self.bar
        goes_on = of == epoch and "total" not in parts and parts.get("step", 0) >= it >= total > 0
        self.bar = (epoch, parts["step"], total) if goes_on else self.bar
        return goes_on

    def counts(self, word: str, value: int, n: int) -> None:
        """``batch: 120`` or ``Generation 5`` stands alone above line ``n``, which measures: a batch counts within its epoch, a step may."""
        within = (word in BATCH_NUMBER or word in STEP) and self.epoch is not None
        self.step, self.way = (self._laid(self.epoch or 0, value), "lap") if within else (value, "named")
        self.finer, self.line = True, n
        self.ways.add(self.way)

    def _laid(self, epoch: int, count: int, length: int = 0, held_out: bool = False) -> int:
        """The step of a line that names an epoch and a count: within it if the ``length`` of an epoch is known or it falls when the
        epoch rises, else over the run. Where two epochs went on counting, a later fall is a resume. A batch of an evaluation stands where
        training stands (``held_out``)."""
        if held_out and epoch in self.laps:
            return self.laps[epoch] + self.lap[1]
        if length:
            return (epoch - self.base) * length + count
        last_epoch, last = self.lap
        if epoch not in self.laps:
            before = self.laps.get(last_epoch, 0)
            again = before + last + (count == 0)  # 0, 1, ... in each epoch
            falls = epoch > last_epoch >= 0 and count <= last and self.onward < RUN_COUNT
            self.laps[epoch] = again if falls else before if epoch > last_epoch else 0
            self.onward += epoch > last_epoch >= 0 and last < count <= last + 2 * self.every  # at the pace of its lines
        self.lap = (epoch, count)
        return self.laps[epoch] + count

    def asks_heading(self, line: Line, parts: dict[str, int]) -> bool:
        """May the step of such a line hang on the epoch that a heading named?"""
        return self.headed and ("total" in parts or _counts_in_front(line))

    def headed_epoch(self, parts: dict[str, int]) -> int | None:
        """The epoch that only the heading names, once for each heading, where it made the step of the line just resolved."""
        if self.told or not self.headed or "epoch" in parts or self.way not in ("composed", "lap"):
            return None
        self.told = True
        return self.epoch

    def axis(self) -> str:
        """What the steps count where that is not what lines name; nothing where they name it."""
        lap = "composed" if any(self.laps.values()) or self.bars.fell() or self.length else "named"
        found = {lap if way == "lap" else way for way in self.ways - {""}}
        if "composed" in found and "named" not in found:
            return COMPOSED_STEPS
        return EPOCH_STEPS if found == {"epoch"} else ""


def _counts_in_front(line: Line) -> bool:
    """Does a line begin with a step that may start again with every epoch? Prose that names one behind other words counts nothing."""
    first = next((f.role for f in line.fields if f.role not in ("time", "rank")), "")
    return first == "step" and not line.bar and within_epochs(line)


def within_epochs(line: Line) -> bool:
    """May the step that a line names start again with every epoch? Words such as global_step say that it does not."""
    word = next((f.tag for f in line.fields if f.role in ("step", "it")), "").lower().replace(" ", "_")
    return word.rpartition("/")[2] not in THROUGH_THE_RUN and word not in THROUGH_THE_RUN
