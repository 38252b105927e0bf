"""The memory of one console log while it is read: which step, epoch, block, table and progress bar the lines are in."""

from __future__ import annotations

import collections
import re

from parsers.console_format.blocks import Tables, member
from parsers.console_format.dicts import Dicts, Waiting
from parsers.console_format.event_lines import Event, event_of, loss_scale, when
from parsers.console_format.grammars import STRONG, read_line, stands_alone
from parsers.console_format.line_prefix import Line, Where, prefix, seconds, whole
from parsers.console_format.line_shapes import Row, Shape, has_loss, shape_of
from parsers.console_format.line_steps import Steps
from parsers.console_format.other_lines import Words
from parsers.tables import Gap, Rows

MAX_SEGMENT, MAX_SHAPES = 20_000, 12
NEAR = 3  # lines behind a line with a step that may belong to it
_SUMMARY = re.compile(r"(?i)\b(?:final|best|minimum|maximum|overall|total|average over)\b|^final|_final")
_LATER = re.compile(r"(?i)val|eval|test|ppl|perplexity|reward")  # what is measured between steps
_HEAD = re.compile(r"(?:\[(?>[^\]]*?=\d)[^\]]*+\])+:?$")  # [epoch=0][batch=9/10]:
_COUNTED = re.compile(r"(?:step|iter|iteration|epoch|s)\b *+(?:: *+)?\d|\d+/\d+ ")  # what no program text begins with
_BAR_AND_MORE = re.compile(r"(.*?\d%\|[^|]*\| *[\d.kM]+/[\d.kM]+ \[[^\[\]]*+\])([A-Za-z{\[*].*)", re.DOTALL)
_TOLD = re.compile(r"(?i)overflow|detected|skipping|nan loss|non-?finite|spike")

Parts = dict[str, int]


class Reader:
    """``line(place, text)`` takes one line or one update of a bar; place is line << 20 | update within the line.

    Measurements pile up in ``metrics`` and in the rows of ``shapes``, all else in ``rows``, ``gaps`` and ``notes``.
    """

    def __init__(self, year: int, srun: bool) -> None:
        self.rows, self.gaps = Rows(), list[Gap]()
        self.notes: dict[str, None] = {}
        self.words = Words(self.rows)
        self.metrics: list[Row] = []
        self.shapes: list[Shape] = []
        self.spent: list[Shape] = []  # with rows, no longer matched
        self.met: collections.Counter[str] = collections.Counter()
        self.year, self.srun = year, srun
        self.now = Steps()
        self.started = self.total_said = self.megatron_loss = False
        self.block_line = -100
        self.tables = Tables()
        self.redrawn: tuple[object, int] = (None, 0)  # key and number of the rows that the next update may replace
        self.dicts = Dicts()
        self.alive: tuple[Where, Event, int | None] | None = None

    def size(self) -> int:
        """Rows that wait to be handed over."""
        return len(self.metrics) + sum(s.size() for s in (*self.shapes, *self.spent))

    def line(self, place: int, text: str, torn: bool = False) -> None:
        if not torn and self.dicts.waiting is None:
            for i, shape in enumerate(self.shapes):
                if (m := shape.pattern.fullmatch(text)) is not None:
                    if shape.near and ((place >> 20) - self.now.line > NEAR or self.now.step is None):
                        break
                    if i:
                        self.shapes.insert(0, self.shapes.pop(i))
                    self.take(shape, place, m.groups())
                    return
        self._slow(place, text, torn)

    def passed(self, step: int | None, n: int) -> None:
        """Lines up to n were rows of a shape that says its step itself; ``step`` is the last one's."""
        self.now.step, self.now.line, self.redrawn = step, n, (None, 0)

    def take(self, shape: Shape, place: int, words: tuple[str, ...]) -> None:
        """A line of a known shape."""
        n = place >> 20
        if shape.simple:
            self.now.step, self.now.line, self.redrawn = whole(words[shape.step_at]), n, (None, 0)
        elif shape.near:
            self.now.line, self.redrawn = n, (None, 0)
            shape.steps.append(self.now.step)
        else:
            parts = {
                f.role: v
                for f, w in zip(shape.fields, words, strict=True)
                if f.role in {"step", "it", "total", "epoch"} and (v := whole(w)) is not None
            }
            step = self.now.resolve(shape.line, parts, n)
            if shape.line.bar:
                self.dicts.saw_bar(n, parts)
                again = shape.steps and shape.steps[-1] == step and self.redrawn[0] is shape
                self.redrawn = (shape, 0)
                if again:
                    shape.rows[-1], shape.places[-1] = words, place
                    return
            shape.steps.append(step)
            if shape.missing:
                self._event(Where(place), _missing(step))
        shape.places.append(place)
        shape.rows.append(words)

    def _slow(self, place: int, text: str, torn: bool) -> None:
        n = place >> 20
        if not text.strip():
            self.words.in_header = False
            return
        if len(text) > MAX_SEGMENT:
            self.gaps.append(Gap(f"line {n}", f"{len(text):,} characters long; only its beginning was read"))
            text = text[:MAX_SEGMENT]
        if "%|" in text and (m := _BAR_AND_MORE.fullmatch(text)) is not None:  # something was printed behind the bar
            self.line(place, m[1])
            self.line(place, m[2], torn)
            return
        rank = None
        if self.srun and (m := re.match(r"\s*(\d{1,5}): ?", text)):
            rank, text = int(m[1]), text[m.end() :]
        front = prefix(text)
        body, words = text[front.body :], self.words
        where = Where(place, self._time(front), front.value("rank") if rank is None else rank)
        if words.traceback(where, text, body, self.now.step) or words.arguments(n, text) or words.program(n, text):
            return
        if words.batch(n, text, where.rank) or self._table(where, text):
            return
        text = words.without_ids(n, text, where.rank)
        line = read_line(text)
        if self.dicts.waiting and not line.bar:
            self._settle({})
        if torn:
            self._tear(line, n)
        measured = self._measure(where, line)
        if words.listing(n) or (measured and (line.bar or not _TOLD.search(text))):
            return
        event = event_of(body if len(body) > 3 else text)
        if event is not None and (not measured or event.kind in {"overflow", "nonfinite", "warning"}):
            self._event(where, event)
        if (event is None or event.kind == "start") and not measured:
            words.settings(n, text, body, self.started, self.dicts.header)
            if text.lstrip().startswith("***** Running training"):
                self.dicts.count = 0

    def _tear(self, line: Line, n: int) -> None:
        end = len(line.text.rstrip())
        for i, f in enumerate(line.fields):
            if f.end == end and f.role not in {"skip", "time", "rank"}:
                line.fields[i] = f._replace(role="skip")
                self.gaps.append(Gap(f"line {n}", "breaks off here; the last number may be cut and was left out", 1))

    def _time(self, line: Line) -> float | None:
        f = next((f for f in line.fields if f.role == "time"), None)
        if f is None:
            return None
        if line.clock in {"iso", "glog", "syslog", "md"}:
            self.notes["clock without zone, read as UTC"] = None
        if line.clock in {"glog", "syslog", "md"}:
            self.notes["clock without year: the year of the file's last change"] = None
        return seconds(line.text[f.start : f.end], line.clock, self.year)

    def _event(self, where: Where, event: Event) -> None:
        """An event, with the loss scale it may name."""
        step = event.step if event.step is not None else self.now.step
        if event.kind == "checkpoint_saved" and step is not None and step < (self.now.step or 0) // 2:
            event, step = event._replace(step=None), self.now.step  # the file is named after an epoch or a rank
        if event.kind == "overflow":
            if event.step is not None:
                self.now.step = event.step
            scale, known = loss_scale(event.text), (event.text, step)
            if scale is not None and known != self.words.last_overflow:
                self._put(where, step, [("loss_scale", scale)])
        if event.kind == "scheduler" and (said := when(event.text)) is not None:
            where = where._replace(time=seconds(said, "iso", self.year))
        if event.kind == "resume":  # where the run goes back to, not where it was
            step = event.step
            self.now.step = step if step is not None else self.now.step
        if event.kind == "alive":  # a monitor says so every minute
            self.alive = (where, event, step)
            return
        self.words.event(where, event, step)

    def _table(self, where: Where, text: str) -> bool:
        found = self.tables.read(text)
        if found is None:
            return False
        if found.metrics:
            self.started = True
            self.now.step, self.now.line = found.step, where.line
            key = ("table", found.metrics[0][0], found.step) if found.redrawn else None
            self._put(where, found.step, found.metrics, key)
        return True

    def _measure(self, where: Where, line: Line) -> bool:
        n, metrics, body = where.line, line.metrics(), line.text[line.body :]
        where = where._replace(rank=line.value("rank")) if where.rank is None else where
        parts = {role: v for role in ("step", "it", "total", "epoch") if (v := line.value(role)) is not None}
        if line.bar:
            self.dicts.saw_bar(n, parts)
            if self.dicts.waiting:
                self._settle(parts)
        stepped = bool({"step", "it"} & parts.keys())
        if line.braces and not stepped:
            return self._dict(Waiting(where, metrics))
        if self.block_line == n - 1 and re.match(r"\s*\[(?i:eval) batch=\d+/\d+\]", body):
            self.block_line = n  # Composer shows how far the evaluation is
            return True
        if n == self.block_line + 1 and not stepped and (row := member(line.text)) is not None:
            self.block_line = n
            self._put(where, self.now.step, [row])
            return True
        if not metrics or _HEAD.match(body.strip()):
            return self._heading(n, line, parts, body)
        if self.words.listing(n) and not (stepped and _COUNTED.match(body)):
            return False
        if not stepped and ("epoch" not in parts or not any(STRONG.search(t) for t, _ in metrics)):
            return self._stepless(where, line, metrics)
        step = self.now.resolve(line, parts, n)
        if body.startswith("Train Epoch:") and parts.get("total", 0) > 5000:
            self.notes["steps of 'Train Epoch: e [i/n]' lines count as these lines do, in samples"] = None
        if "epoch" in parts and stepped:
            metrics = [*metrics, ("epoch", float(parts["epoch"]))]
        self._put(where, step, metrics, (step, body[:6]) if line.bar else None)
        self._megatron(where, line, step)
        planned = parts.get("total") if any(f.role == "it" and f.tag for f in line.fields) and not line.mode else None
        if planned and "epoch" not in parts and not self.total_said:
            self.total_said = True
            self.rows.config("total_steps", planned, at=n)
        if stepped:
            self._learn(line, parts)
        self.started = True
        return True

    def _heading(self, n: int, line: Line, parts: Parts, body: str) -> bool:
        """Lines that only say where we are: ``[batch=600/1000]:``, ``Epoch 3/12``."""
        if {"step", "it"} & parts.keys() and _HEAD.match(body.strip()):
            self.now.resolve(line, parts, n)
            self.block_line = n
            return True
        if "epoch" in parts and re.match(r"(?i)\W*epoch\b", body):
            self.now.heading(parts["epoch"])
        return False

    def _stepless(self, where: Where, line: Line, metrics: list[tuple[str, float]]) -> bool:
        """Measurements without a step: words that cannot be settings, or whole rows right behind a step."""
        n, summary = where.line, _SUMMARY.search(line.text, line.body) is not None
        near = n - self.now.line <= NEAR and self.now.step is not None
        if not stands_alone(line, near, where.time is not None, self.started):
            return False
        strong = [tag for tag, _ in metrics if STRONG.search(tag)]
        inherits = near or line.mode or any(_LATER.search(t) for t in strong)
        step = self.now.step if inherits and not summary and n - self.now.line < 500 else None
        if line.context and (summary or step is None):
            metrics = [(f"{line.context} {metrics[0][0]}", metrics[0][1]), *metrics[1:]]
        if near and not strong and not line.mode:
            self.now.line = n
            self._learn(line, {})
        self._put(where, step, metrics)
        return True

    def _megatron(self, where: Where, line: Line, step: int | None) -> None:
        """Megatron leaves "lm loss" out where it was NaN or where all iterations were skipped."""
        if "elapsed time per iteration" in line.text:
            if has_loss(line):
                self.megatron_loss = True
            elif self.megatron_loss or "loss scale" in line.text:
                self._event(where, _missing(step))

    def _learn(self, line: Line, parts: Parts) -> None:
        """Keeps the shape of a line that came twice, so that its like are read by one regex."""
        key = re.sub(r"[-+.\d]+", "0", line.text)[:400]
        self.met[key] += 1
        if len(self.met) > 5000:
            self.met.clear()
        if self.met[key] != 2 or len(line.text) > 2000:
            return
        shape = shape_of(line, parts)
        if len(self.shapes) >= MAX_SHAPES:
            self.spent.append(self.shapes.pop())
        self.shapes.insert(0, shape)

    def _put(self, where: Where, step: int | None, pairs: list[tuple[str, float]], key: object = None) -> None:
        """Rows; those of the update before are replaced where it has the same key (a bar redrawn at the same step)."""
        if key is not None and self.redrawn[0] == key and self.redrawn[1] <= len(self.metrics):
            del self.metrics[len(self.metrics) - self.redrawn[1] :]
        self.redrawn = (key, len(pairs))
        place, time, rank = where
        self.metrics += [(place, step, tag, value, time, rank) for tag, value in pairs]

    def _dict(self, waiting: Waiting) -> bool:
        tags = {t for t, _ in waiting.metrics}
        if not any(STRONG.search(t) or t == "epoch" for t in tags) or self.words.listing(waiting.where.line):
            return False
        if "train_runtime" in tags:
            self._put(waiting.where, None, waiting.metrics)  # the summary of the whole run
        else:
            self.dicts.waiting = waiting
        self.started = True
        return True

    def _settle(self, bar: Parts) -> None:
        """Gives a dict line its step, now that the line behind it is known."""
        waiting = self.dicts.waiting
        if waiting is not None:
            self.dicts.waiting = None
            self.now.step, how = self.dicts.step(waiting, bar)
            self.now.line = waiting.where.line
            self.notes[f"steps of {{'loss': ...}} lines: {how}"] = None
            self._put(waiting.where, self.now.step, waiting.metrics)

    def finish(self) -> None:
        self._settle({})
        if self.alive is not None:
            self.words.event(*self.alive)
        self.words.close_all(self.now.step)
        for sentence in self.words.counted()[:20]:
            self.notes[sentence] = None


def _missing(step: int | None) -> Event:
    text = "this line has no lm loss: it was NaN, or all its iterations were skipped"
    return Event("missing_field", "warning", text, step)
