"""The measurements of one console log while it is read: which step, epoch, block and progress bar the lines are in."""

from __future__ import annotations

from collections.abc import Callable

from parsers.console_format.blocks import Block
from parsers.console_format.counters import numbered
from parsers.console_format.dicts import NOTE, Dicts, Waiting, with_epoch
from parsers.console_format.event_lines import MAX_TEXT, Event, missing_loss
from parsers.console_format.grammars import STRONG, epoch_beside, is_measured, only_place, sets_dict, sets_length, stands_alone, tells_epoch
from parsers.console_format.in_hand import InHand
from parsers.console_format.line_prefix import Line, Where, whole
from parsers.console_format.line_shapes import Shape, has_loss, lacks_loss, of_megatron
from parsers.console_format.line_steps import Steps, within_epochs
from parsers.console_format.phases import EPOCH_ABOVE, EPOCH_RATE, HEAD, Headings, is_value, of_pass, of_phase
from parsers.console_format.plan_lines import Plans
from parsers.console_format.redraws import counts_batches
from parsers.lazy_regex import lazy_re
from parsers.tables import Rows

NEAR = 3  # lines behind a line with a step that may belong to it
_SUMMARY = lazy_re(r"(?i)\b(?:final|(?<!new )best|minimum|maximum|overall|total|average over)\b|^final|_final")
_LATER = lazy_re(r"(?i)val|eval|test|ppl|perplexity|reward")  # what is measured between steps
_PLACE, _MOST_WORDS = {"step", "it", "total", "epoch"}, 4  # words of a heading over what an evaluation gave: more is a sentence
_COUNTED = lazy_re(
    r"[\[(]?(?:(?i:(?:train(?:ing)? )?(?:step|iter|iteration|epoch))|s)\b *+(?:[:=] *+)?\[?\d|\d+/\d+ |\{'(?:eval_)?loss': "
)  # what no program text begins with


class Measured(InHand):
    """Takes the lines that measure. ``listing`` says whether a line is in a program's text, ``told`` takes events."""

    def __init__(self, rows: Rows, listing: Callable[[int], bool], told: Callable[[Where, Event], None]) -> None:
        super().__init__()
        self.rows, self._listing, self._told = rows, listing, told
        self.notes: dict[str, None] = {}
        self.now, self.plans = Steps(), Plans(rows)
        self.started = self.before = self.megatron_loss = False  # before: a launch above this one measured something
        self.block, self.headings, self.dicts = Block(), Headings(), Dicts()
        self.below: tuple[int | None, set[str]] = (None, set())  # a step that stands alone, and what was measured below it

    def near(self, n: int) -> bool:
        """Does line n stand right behind one with a step?"""
        return 0 <= n - self.now.line <= NEAR and self.now.step is not None

    def known(self, place: int, text: str) -> bool:
        """Takes a line of a known shape."""
        near = self.near(place >> 20) and not self.headings.phase(place >> 20)
        if self.dicts.waiting is not None or (found := self.shapes.match(text, near)) is None:
            return False
        self._take(found[0], place, found[1])
        return True

    def alike(self, lines: list[str], first: int, n: int) -> int:
        """Takes lines from the ``first`` on, of which line n is the 0th, while they are like the one before and say their
        step themselves; -> how many."""
        shape = self.shapes.known[0] if self.shapes.known else None
        if shape is None or not shape.simple or self.dicts.waiting is not None:
            return 0
        match, before = shape.pattern.fullmatch, len(shape.rows)
        for text in lines[first : first + 1000]:
            if (m := match(text)) is None:
                break
            shape.rows.append(m.groups())
        taken = len(shape.rows) - before
        if taken:
            shape.places.extend(range((n + first) << 20, (n + first + taken) << 20, 1 << 20))
            for row in shape.rows[-min(taken, 2) :]:
                self._reached(shape, n + first + taken - 1, row)
        return taken

    def _take(self, shape: Shape, place: int, words: tuple[str, ...]) -> None:
        n = place >> 20
        if shape.simple:
            self._reached(shape, n, words)
        elif shape.near:
            self.now.line, self.redrawn = n, (None, 0)
            shape.steps.append(self.now.step)
        else:
            parts = {f.role: v for f, w in zip(shape.fields, words, strict=True) if f.role in _PLACE and (v := whole(w)) is not None}
            step = self._resolve(Where(place), shape.line, parts)
            if shape.line.bar:
                self.plans.total(n, shape.line, parts, self.now.way == "composed")
                if shape.line.training:
                    self.dicts.saw_bar(n, parts)
                if self.dicts.carried({f.tag: w for f, w in zip(shape.fields, words, strict=True) if f.role == "metric"}, parts):
                    return
                again = shape.steps and shape.steps[-1] == step and self.redrawn[0] is shape
                self.redrawn = (shape, 0)
                if not self.now.aside and counts_batches(shape.line, parts):
                    self.drawn(place, step, tuple(w for f, w in zip(shape.fields, words, strict=True) if f.role == "metric"))
                elif again:
                    shape.rows[-1], shape.places[-1] = words, place
                    return
            shape.steps.append(step)
            if shape.missing:
                self._told(Where(place), missing_loss(step))
        shape.places.append(place)
        shape.rows.append(words)

    def _reached(self, shape: Shape, n: int, words: tuple[str, ...]) -> None:
        self.redrawn = (None, 0)
        self.now.reach(whole(words[shape.step_at]), n)
        if not shape.line.mode:
            self.headings.trains()

    def take(self, where: Where, line: Line, torn: bool = False) -> bool:
        n, metrics, body = where.line, line.metrics(), line.text[line.body :]
        where = where._replace(rank=line.value("rank")) if where.rank is None else where
        parts = line.parts()
        self.plans.epochs(n, line)
        if line.bar and self._bar(n, line, parts):
            return True
        stepped = bool({"step", "it"} & parts.keys())
        if line.braces and not stepped and not epoch_beside(line):
            return self._dict(Waiting(where, with_epoch(metrics, parts), body))
        if (rows := self.block.rows(n, line.text, stepped)) is not None:
            self.put(where, self.now.step, rows)
            self.started = self.started or bool(rows)
            return True
        if not metrics or HEAD.match(body.strip()) or EPOCH_RATE.match(body):
            spoken = self._heading(n, line, parts, body)
            if metrics and EPOCH_RATE.match(body):
                self.put(where, self.now.step, metrics)
            return spoken
        if (self._listing(n) and not (stepped and _COUNTED.match(body))) or (not self.started and sets_length(line)):
            return False
        if not stepped and ("epoch" not in parts or not tells_epoch(line, self.now.loose)):
            return self._stepless(where, line, metrics)
        if body.startswith("Train Epoch:") and parts.get("total", 0) > 5000:
            self.notes["steps of 'Train Epoch: e [i/n]' lines count as these lines do, in samples"] = None
        step = self.report(where, line)
        if not torn and lacks_loss(line, self.megatron_loss):
            self._told(where, missing_loss(step))
        self.megatron_loss = self.megatron_loss or (not torn and of_megatron(line) and has_loss(line))
        if stepped and not line.counted:
            self.shapes.learn(line, parts, self.now.asks_heading(line, parts))
        return True

    def report(self, where: Where, line: Line) -> int | None:
        """Takes a line that says its place, or a row of a table; -> its step."""
        parts = line.parts()
        self.plans.epochs(where.line, line)
        step = self._resolve(where, line, parts)
        if self.now.aside and (mode := self.block.mode or "eval" * self.now.beside):
            line.fields = [f._replace(tag=f"{mode} {f.tag}") if f.role == "metric" else f for f in line.fields]
        elif not self.now.aside:
            self.plans.total(where.line, line, parts, self.now.way == "composed")
        metrics = line.metrics()
        if "epoch" in parts and ({"step", "it"} & parts.keys() or (self.now.bars.before and not line.mode)):
            metrics.append(("epoch", float(parts["epoch"])))
        if of_batches := line.bar and not self.now.aside and bool(line.metrics()) and counts_batches(line, parts):
            self.drawn(where.place, step, tuple(line.text[f.start : f.end] for f in line.fields if f.role == "metric"))
        self.put(where, step, metrics, (step, line.text[line.body :][:6]) if line.bar and not of_batches else None)
        self.started = True
        return step

    def _resolve(self, where: Where, line: Line, parts: dict[str, int]) -> int | None:
        """The step of a line, and the epoch that its heading names."""
        before = self.now.step
        step = self.plans.again(before, self.now.resolve(line, parts, where.line), line, parts, where.line)
        self.metrics = self.shapes.moved(*self.now.moves(where.place), self.metrics)
        if not line.mode and (step != before or line.has("metric")):  # "global_step = 5468" among what an evaluation gave
            self.headings.trains()
        if (epoch := self.now.headed_epoch(parts)) is not None:
            self.metrics.append((where.place, step, "epoch", float(epoch), where.time, where.rank))
        return step

    def _bar(self, n: int, line: Line, parts: dict[str, int]) -> bool:
        """What a bar means for the lines around it; true where it only shows what was said before."""
        if line.training:
            self.dicts.saw_bar(n, parts)
        if self.dicts.waiting:
            self.settle(parts)
        return self.dicts.carried({f.tag: line.text[f.start : f.end] for f in line.fields if f.role == "metric"}, parts)

    def _heading(self, n: int, line: Line, parts: dict[str, int], body: str) -> bool:
        """Lines that only say where we are: ``[batch=600/1000]:``, ``Epoch 3/12``, ``STEP: 24/36 -- GLOBAL_STEP: 1000025``."""
        through = self.now.through or (self.now.headed and "total" in parts) or not within_epochs(line)  # "iterations: 20000" alone is set
        if {"step", "it"} & parts.keys() and not line.bar and (HEAD.match(body.strip()) or (through and only_place(line))):
            if not (of_batches := self.now.through and within_epochs(line)):  # of an evaluation: the run's own steps have another word
                self._resolve(Where(n << 20), line, parts)
                self.plans.total(n, line, parts, self.now.way == "composed")
                self.below = (self.now.step, set())
            self.block.opens(n, self.block.mode if of_batches else "")
            return True
        if line.mode and self.now.step is not None and not line.fields and len(body.split()) <= _MOST_WORDS:
            self.block.opens(n, line.mode)
        if line.bar:
            self.plans.total(n, line, parts, "epoch" in parts or self.now.headed)
        if "epoch" in parts and EPOCH_ABOVE.match(body):
            self.now.heading(parts["epoch"], n, body)
        return self.headings.read(n, line, body, self.now.epoch, self.started)

    def _stepless(self, where: Where, line: Line, metrics: list[tuple[str, float]]) -> bool:
        """Measurements without a step: words that cannot be settings, or whole rows right behind a step."""
        n, begins = where.line, next(f.start for f in line.fields if f.role == "metric")  # a word behind the first value is of another one
        summary = _SUMMARY.search(line.text, line.body, begins) is not None
        near, phase, above, told = self.near(n), self.headings.phase(n), self.headings.count(n), self.headings.tell(n, line)
        told = told or (near and numbered(line, self.now.epoch))
        more = near and self.below[0] == self.now.step and bool(self.below[1]) and is_value(line)  # of the block that goes on
        if not told and not more and not stands_alone(line, near, where.time is not None, self.started or self.now.covers()):
            return False
        if above:
            self.now.counts(*above, n)
            self.metrics = self.headings.below_the_first(self.metrics)
        strong = [tag for tag, _ in metrics if STRONG.search(tag)]
        inherits = near or above or line.mode or phase or self.now.covers() or any(_LATER.search(t) for t in strong)
        step = self.now.step if inherits and (above or not summary) and 0 <= n - self.now.line < 500 else None
        self.now.loose = self.now.loose or (step is None and self.now.step is None and bool(strong))
        if line.context and (summary or told or step is None):
            metrics = [(f"{line.context} {metrics[0][0]}", metrics[0][1]), *metrics[1:]]
        if near and not line.mode and not told and (not (strong or more) or (not summary and self._goes_on(strong))):
            self.now.line = n
            if not strong:
                self.shapes.learn(line, {})
        self.put(where, step, of_phase(line.mode or phase, metrics), of_pass(line, step))
        self.now.ways |= {self.now.way} if step is not None else set()
        return True

    def _goes_on(self, tags: list[str]) -> bool:
        """Is a line one more of a block below a line that says its step alone, where each names something new?"""
        (step, named), self.below = self.below, (self.below[0], self.below[1] | {*tags})
        return step == self.now.step and named.isdisjoint(tags)

    def _dict(self, waiting: Waiting) -> bool:
        tags = {t for t, _ in waiting.metrics}
        told = _COUNTED.match(waiting.text) is not None or not self._listing(waiting.where.line)
        if not told or sets_dict(waiting.text) or not any(is_measured(t) or t == "epoch" for t in tags):
            return False
        if "train_runtime" in tags:
            self.put(waiting.where, None, waiting.metrics)  # the summary of the whole training: what follows is another one
            self._told(waiting.where, Event("train_end", "info", waiting.text[:MAX_TEXT]))
            self.dicts.count = 0
        else:
            self.dicts.waiting = waiting
        self.started = True
        return True

    def settle(self, bar: dict[str, int], another: bool = False) -> None:
        """Gives a dict line its step, now that the line behind it is known: a bar, ``another`` of its kind, or something else."""
        if (waiting := self.dicts.waiting) is not None:
            self.dicts.waiting = None
            told, how = self.dicts.step(waiting, bar, another, self.now.step if self.now.line != self.dicts.at else None)
            self.now.line = self.dicts.at = waiting.where.line
            step, self.metrics = self.dicts.counted(waiting, told, how, self.metrics)
            if step is not None:
                self.now.step, self.notes[f"{NOTE}{how}"] = step, None
            self.put(waiting.where, step, waiting.metrics)
