"""The memory of one console log while it is read: its measurements, tables, tracebacks, settings and events."""

from __future__ import annotations

from parsers.console_format import line_texts, openings, printed_history
from parsers.console_format.blocks import Tables
from parsers.console_format.columns import Columns
from parsers.console_format.counters import Counters
from parsers.console_format.event_lines import MAX_TEXT, WAITS, Event, event_of, loss_scale, quotes_another, skipped, when
from parsers.console_format.line_numbers import read_line
from parsers.console_format.line_prefix import CLOCKS, Line, Where, prefix, seconds
from parsers.console_format.lines_alike import LinesAlike
from parsers.console_format.measured import Measured
from parsers.console_format.other_lines import Words
from parsers.console_format.phases import EPOCH_ABOVE
from parsers.console_format.printed_summary import Summary
from parsers.console_format.retold_lines import RetoldLines
from parsers.console_format.rounded_steps import in_full
from parsers.console_format.split_columns import SplitColumns
from parsers.lazy_regex import lazy_re
from parsers.other_languages import in_english
from parsers.runs.process_lines import LAUNCH
from parsers.tables import Gap, Rows

MAX_SEGMENT = 20_000  # characters
# unit: Python prints a double by 17 digits at most; behind the 16th nothing is lost that is ever seen
_IN_FULL = lazy_re(r"-?0?\.?0*+(?:\d\.?){16,24}(?:e[-+]\d\d)?")
_BESIDE = frozenset({"overflow", "nonfinite", "warning", "finished", "loop_end", "summary", "resume"})  # said in lines that measure, too
LABEL = lazy_re(r"\s*(\d{1,5}):(?: |$)")  # srun -l: the task that wrote the line; a blank follows, and no minutes of a clock
# ray's: a count of lines, none of the run's
_OFTEN = lazy_re(r"(?:\x1b\[\d+m)?\[repeated \d+x across cluster\](?: \(Ray deduplicates logs .*)?")
_TOLD = lazy_re(
    r"(?i)overflow|detected|skipping|nan loss|non-?finite|spike|stopping_early|early.?stop|end of training|training (?:is |was )?(?:complete|finished|done)|peak memory|total.time|^\W*+best (?:epoch|iter|round)|\bresum\w{0,3}\W.{0,60}(?:checkpoint|ckpt|\.pth?\b)"
)
# What glog writes in front of information: TensorFlow's allocator asks for less where it "failed to allocate" (cuda_driver.cc)
_INFORMS = lazy_re(r"(?:^|\s)I(?:\d{4} [\d:.]+ +\d+)? +[\w./-]+\.(?:cc|cpp|cu):\d+\]")


class Reader:
    """``line(place, text)`` takes one line or one update of a bar; place is line << 20 | update within the line.
    Measurements pile up in ``measured``, all else in ``rows`` and ``gaps``."""

    def __init__(self, srun: bool) -> None:
        self.rows, self.gaps = Rows(), list[Gap]()
        self.words = Words(self.rows)
        self.measured = Measured(self.rows, self.words.program.listing, self._event)
        self.srun, self.zoneless = srun, False
        self.tables, self.columns, self.counters, self.splits = Tables(), Columns(), Counters(), SplitColumns()
        self.retold, self.summary, self.opening, self.alike = RetoldLines(), Summary(), openings.Opening(), LinesAlike()
        self.alive: tuple[Where, Event, int | None] | None = None
        self.latest = (0, "")  # number and text of the last line that is not empty

    def line(self, place: int, text: str, torn: bool = False) -> None:
        text = line_texts.plain(text)
        if not torn and self.measured.known(place, text):
            return
        if not text.strip():
            self.words.in_header = False
            return
        if len(text) > MAX_SEGMENT:
            self.gaps.append(Gap(f"line {place >> 20}", f"{len(text):,} characters long; only its beginning was read"))
            text = text[:MAX_SEGMENT]
        if parts := line_texts.two(text) or in_full(text, self.measured.now.step, self.measured.now.every):
            for part in parts:
                self.line(place, part, torn and part is parts[-1])
            return
        text, label = _OFTEN.sub("", text) if "x across cluster]" in text else text, LABEL.match(text) if self.srun else None
        text = text[label.end() :] if label else text
        front = prefix(text)
        where = Where(place, self._time(front), int(label[1]) if label else front.value("rank"))
        body = text[front.body :]
        if pairs := self.opening.header_again(where, body, self.measured.started):
            self.words.configured([(key, value, where.line) for key, value in pairs])
            self._begin_again()
            return
        before = self.measured.size()
        self._take(where, front, body, torn)
        if self.opening.again(where, body, self.measured, before):
            self._begin_again()

    def _begin_again(self) -> None:
        self._event(*self.opening.told())
        openings.forget(self.measured)

    def _take(self, where: Where, front: Line, body: str, torn: bool) -> None:
        place, text = where.place, front.text
        if not self.measured.started:
            if self._history(where, body) or self.words.printed_dict(place >> 20, body):
                return
            self.words.listed(place >> 20, text, body)
        elif self.words.printed_again(place >> 20, body):
            return
        if not self._other(where, front, torn):
            self._said(where, self.words.without_ids(place >> 20, text, where.rank), body, torn)

    def _other(self, where: Where, front: Line, torn: bool) -> bool:
        """Lines that are part of something larger: tracebacks, argument dumps, program text, batches, tables."""
        n, words, text, body = where.line, self.words, front.text, front.text[front.body :]
        if words.traceback(where, text, body, self.measured.now.step) or words.arguments(n, text):
            return True
        if words.stated(n, body, self.measured.started and not self.retold.begun(self.measured.now.line)):
            self.alike.feed(self.measured, where, read_line(text))
            return True
        if words.program.quotes(n, text, where.time is not None):
            self.measured.plans.configured(n, text)
            return True
        return words.batch(n, text, where.rank) or self._split_row(where, body) or self._row(where, front, torn) or self._table(where, text)

    def _said(self, where: Where, text: str, body: str, torn: bool) -> None:
        """A line that speaks for itself: a measurement, an event, a setting."""
        n, measured, line = where.line, self.measured, read_line(in_english(text, self.measured.notes))
        if measured.dicts.waiting and not line.bar:
            measured.settle({}, line.braces and any(tag == "loss" for tag, _ in line.metrics()))
        if torn:
            self._tear(line, n)
        near = measured.near(n) and measured.now.way != "epoch"
        quotes = quotes_another(text, body)
        said = [] if quotes else self.counters.read(where, line, near, measured.now.step is not None, measured.now.headed)
        taken = [measured.take(*x, torn) for x in said]
        reports = taken[-1] if taken else not quotes  # one that waits to be understood
        measured.plans.sentence(n, body)
        heads = measured.headings.line == n
        if self.words.program.listing(n) or (reports and not heads and (line.bar or not _TOLD.search(text))):
            return
        event = event_of(body if len(body) > 3 else text)
        if event is not None and event.level == "error" and _INFORMS.search(text[: len(text) - len(body)]):
            event = event._replace(level="warning")
        if event is not None and (not reports or event.kind in _BESIDE or (heads and event.kind == "evaluation")):
            self._event(where, self._placed(event, line))
        if not reports:
            self.words.configured(self.retold.feed(n, body, measured.started or measured.before, measured.now.line))
            if not quotes:
                self.alike.feed(measured, where, line)
        if (event is None or event.kind == "start") and not reports and not (measured.now.sure and EPOCH_ABOVE.match(body)):
            self.words.settings(n, text, body, measured.started, measured.dicts.header)
            if text.lstrip().startswith("***** Running training"):
                measured.dicts.count = 0

    def _history(self, where: Where, body: str) -> bool:
        """A printed history of the whole training, or its last values; where its epochs were logged before, they say nothing new."""
        curves = printed_history.history(body)
        for tag, values in curves.items():
            for i, value in enumerate(values, 1):
                self.measured.put(where._replace(time=None), i, [(tag, value)])
        if curves:
            self.measured.started = True
            self.measured.notes[printed_history.NOTE] = None
        return bool(curves) or self.summary.read(body, self.measured)

    def _tear(self, line: Line, n: int) -> None:
        """Leaves the number out that ends the text: it may have lost digits, unless it has all that a double is printed with."""
        end = len(line.text.rstrip())
        for i, f in enumerate(line.fields):
            if f.end == end and f.role not in {"skip", "time", "rank"} and not _IN_FULL.fullmatch(line.text, f.start, f.end):
                line.fields[i] = f._replace(role="skip")
                self.gaps.append(Gap(f"line {n}", "breaks off here; the last number may be cut and was left out", 1))

    def _time(self, line: Line) -> float | None:
        f = next((f for f in line.fields if f.role == "time"), None)
        if f is None:
            return None
        self.zoneless |= line.clock == "iso" or line.clock in CLOCKS
        return seconds(line.text[f.start : f.end], line.clock)

    def _placed(self, event: Event, line: Line) -> Event:
        """With the step by which its line begins (``it 20 non-finite gradient``). A number behind where the log is counts within an epoch."""
        own, now = line.value("step"), self.measured.now.step
        of_step = event.kind in {"overflow", "nonfinite", "warning"} and event.step is None
        return event._replace(step=own) if of_step and own is not None and own >= (now or 0) else event

    def _event(self, where: Where, event: Event) -> None:
        """An event, with the loss scale it may name."""
        now = self.measured.now
        step = event.step if event.step is not None else now.step
        if event.kind == "checkpoint_saved" and step is not None and step < (now.step or 0) // 2:
            event, step = event._replace(step=None), now.step  # the file is named after an epoch or a rank
        if event.kind == "overflow":
            if event.step is not None:
                now.step = event.step
            scale, known = loss_scale(event.text), (event.text, step)
            if scale is not None and known != self.words.last_overflow:
                self.measured.put(where, step, [("loss_scale", scale)])
        if (count := skipped(event.text)) is not None:
            self.measured.put(where, step, [("skipped", count)])
        if event.kind == "scheduler" and (said := when(event.text)) is not None:
            where, self.zoneless = where._replace(time=seconds(said, "iso")), True
        if event.kind in LAUNCH or event.kind == "resume" or event.level == "error":
            self.words.configured(self.retold.launch(where.line, now.line, begins=event.level != "error"))
        if event.kind in LAUNCH:
            self.measured.plans.forget()
            self.measured.shapes.forget()
        if event.kind == "resume":  # where the run goes back to, not where it was
            step = event.step
            now.step = step if step is not None else now.step
        if event.kind == "alive":  # a monitor says so every minute
            self.alive = (where, event, step)
            return
        self.words.event(where, event, step)

    def _row(self, where: Where, front: Line, torn: bool) -> bool:
        """A row of a table with a line of names above; -> False for that line of names, which may be something else."""
        rows = self.columns.row(where, front)
        for place, line in rows or []:
            if torn:
                self._tear(line, where.line)
            self.measured.report(place, line)
        if rows is None:
            self.columns.names(where.line, front, self.measured.headings)
        return rows is not None

    def _split_row(self, where: Where, body: str) -> bool:
        """A row of a table with a column for each data set; of the epoch or step that is named above it."""
        found = self.splits.read(body)
        if found:
            now, self.measured.started = self.measured.now, True
            now.line, now.ways = where.line, now.ways | {now.way}
            self.measured.put(where, now.step, found)
        return found is not None

    def _table(self, where: Where, text: str) -> bool:
        found = self.tables.read(text)
        if found is None:
            return False
        if found.settings and not self.measured.started:
            self.words.boxed(where.line, found.settings)
        elif found.metrics:
            self.measured.started = True
            self.measured.now.tabled(found.step, where.line, of_epoch=found.redrawn)
            key = ("table", found.metrics[0][0], found.step) if found.redrawn else None
            self.measured.put(where._replace(time=found.time or where.time), found.step, found.metrics, key)
        return True

    def finish(self, *, whole: bool = False) -> None:  # of a whole log the last line counts though nothing was measured
        for where, line in self.counters.rest():
            if not self.measured.take(where, line):
                self.alike.feed(self.measured, where, line)
        self.alike.finish(self.measured)
        self.measured.settle({})
        self.measured.metrics = self.measured.dicts.placed(self.measured.metrics, self.measured.notes)
        self.measured.plans.finish(self.measured.dicts.drawn(), self.measured.before or self.measured.started)
        if self.alive is not None:
            self.words.event(*self.alive)
        self.words.close_all(self.measured.now.step)
        n, text = self.latest
        tells = bool(self.measured.before or self.measured.started or self.words.alike or WAITS.search(text))
        if tells or (whole and text.strip()):
            last = Event("last_line" if tells else "last_words", "info", text[:MAX_TEXT].strip())
            self.words.event(Where(n << 20), last, self.measured.now.step)
        notes = [self.measured.now.axis(), *self.words.counted()[:20], *self.tables.tune.notes()]
        self.measured.notes |= dict.fromkeys(filter(None, notes))
