"""Reads what consoles print over several lines: tables (Stable-Baselines3, Ultralytics), blocks (Composer, OLMo).

- Stable-Baselines3, OpenAI baselines, Spinning Up: a box of two columns. ``| train/ | |`` opens a section, ``|    loss | 0.01 |`` is a row;
  ``total_timesteps`` is the step, else a step or an epoch by its name.
- Ultralytics: a line of names (``Epoch GPU_mem box_loss ...``), then ``1/100 2.61G 1.153 ... 640: 100%|###|``, redrawn
  per batch (the last one counts); validation below it (``all 128 929 0.677 ...``) belongs to the same epoch.
- OLMo-core: ``    train/CE loss=2.346`` under ``[step=600/1000,epoch=1]``, values with K, M, B or T for 10^3 to 10^12;
  Composer: ``\t Train loss/train/total: 2.3456`` under ``[batch=600/1000]:``; Coqui Trainer: ``     | > loss: 2.345  (2.456)``, a value and
  its running mean, under ``--> STEP: 24/36 -- GLOBAL_STEP: 1000025``, in evaluations with the change since the last one, ``(-0.012)``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parsers.console_format.grammars import NUM, is_measured
from parsers.console_format.line_prefix import number, whole
from parsers.console_format.rounded_steps import of_three_digits
from parsers.console_format.settings_lists import TRAINS
from parsers.console_format.tune_results import TuneResults
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_CELLS = lazy_re(r"^\s*+[|│┃║]([^|│┃║]*+)[|│┃║]([^|│┃║]*+)[|│┃║]\s*+$")
_RULE = lazy_re(r"^\s*[-=+─━═┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬╭╮╰╯┡┩╇]{10,}\s*$")
_STEPS = (
    "total_timesteps",
    *vocabulary.SURE_STEP,
    *vocabulary.EPOCH,
    *vocabulary.FRAMES,
)  # of a box, the best first: of the environment's and the algorithm's, SB3's axis
_NAMES = lazy_re(r"^\s*Epoch\s+(?:GPU_mem|gpu_mem)\s+\S")
_ROW = lazy_re(r"^\s*(\d+)/(\d+)\s+([\d.]+)[GM]\s+(.*)$")
_CLASSES = lazy_re(r"^\s*Class\s+Images\s+(?:Instances|Labels|Targets)\s")
_CLASS_NAMES = lazy_re(r"mAP@?\.?50-95|mAP@?\.?50|mAP@\.5:\.95|mAP@\.5|(?:Box|Mask|Pose)\(P|\S+")
_ALL = lazy_re(r"^\s*all\s+\d")
_MEMBER = lazy_re(
    r"^(?:\s{2,}|\t)(?:[|>*•-]\s*+)*+(?:Train |Eval )?(?P<name>[A-Za-z][^=:|]*?)(?:=|: *+)"
    rf"(?P<value>{NUM}[KMBT]?)%?\s*(?:\((?P<more>{NUM})\)\s*)?$"
)

_EVALUATES = lazy_re(r"\s*\[(?i:eval) batch=\d+/\d+\]")


class Found(NamedTuple):
    step: int | None
    metrics: list[tuple[str, float]]
    redrawn: bool = False  # a later line with the same step replaces it
    settings: tuple[tuple[str, str], ...] = ()  # the same as settings, where they may be
    time: float | None = None  # seconds since 1970, where it names one


def member(text: str, mode: str = "") -> list[tuple[str, float]]:
    """What a row of a block measures; ``mode``: the word by which the block's heading says that it speaks of evaluation."""
    m = _MEMBER.match(text)
    if m is None:
        return []
    name = m["name"].strip()
    mode = "eval" if "Eval " in text[: m.start("name")] else mode
    if mode and not re.search(r"(?i)eval|val", name):
        name = f"{mode} {name}"
    mean = [(f"{name} (avg)", number(m["more"]))] if m["more"] and m["more"][0] not in "+-" else []  # with a sign: a change
    return [(name, number(m["value"])), *mean]


def is_border(text: str) -> bool:
    """Is it the line above or below a box?"""
    return _RULE.match(text) is not None


class Block:
    """Where rows are expected that name no step: right below a heading, or below the row before. ``mode``: its word for evaluation."""

    def __init__(self) -> None:
        self.line, self.mode = -100, ""

    def opens(self, n: int, mode: str) -> None:
        self.line, self.mode = n, mode

    def rows(self, n: int, body: str, stepped: bool) -> list[tuple[str, float]] | None:
        """What line ``n`` measures; empty for Composer's word how far its evaluation is, None where the line is no row."""
        if self.line != n - 1:
            return None
        found = [] if _EVALUATES.match(body) else None if stepped else member(body, self.mode) or None
        self.line = n if found is not None else self.line
        return found


class Tables:
    """Tables that need the lines above; ``read`` returns None for lines that are none of theirs, or what they give."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.classes: list[str] = []
        self.epoch: int | None = None
        self.section = ""
        self.rows: list[tuple[str, str]] = []
        self.open = self.closed = False  # below a border; below the lower one of a box
        self.tune = TuneResults()
        self.last: int | None = None  # step of the last box
        self.every = 0  # how far it was from the one before it

    def read(self, text: str) -> Found | None:
        if (result := self.tune.read(text)) is not None:
            return Found(result.step, list(result.metrics), time=result.time)
        head = text.lstrip()[:1]
        if head and (head in "|-=+" or head > "─") and len(text) < 500:
            return self._cells(text)
        self.open = self.open and not self.closed
        if _NAMES.match(text):
            self.names = text.split()[1:]
            return Found(None, [])
        if self.names and (m := _ROW.match(text)):
            words = [m[3], *m[4].split(":")[0].split()]
            pairs = [(n, w) for n, w in zip(self.names, words, strict=False) if re.fullmatch(NUM, w)]
            self.epoch = whole(m[1])
            return Found(self.epoch, [(n, number(w)) for n, w in pairs if n.lower() not in {"size", "img_size"}], True)
        if _CLASSES.match(text):
            self.classes = ["P" if w.endswith("(P") else w for w in _CLASS_NAMES.findall(text.split("):")[0])][2:]
            return Found(None, [])
        if self.classes and _ALL.match(text):
            words = text.split()[2:]
            return Found(
                self.epoch,
                [(f"val {n}", number(w)) for n, w in zip(self.classes[1:], words[1:], strict=False) if re.fullmatch(NUM, w)],
                True,
            )
        return None

    def _cells(self, text: str) -> Found | None:
        if is_border(text):
            rows, self.rows, self.section = self.rows, [], ""
            self.open, self.closed = True, bool(rows)
            found = _box(rows) if rows else None
            return self._in_full(found, rows) if found is not None else None
        if not self.open or not (m := _CELLS.match(text)):
            self.open = self.open and not self.closed
            return None
        name, value = m[1].strip(), m[2].strip()
        self.closed = False  # texttable draws a border between any two rows
        if name.endswith("/") and not value:
            self.section = name
        elif name and value:
            self.rows.append((self.section + name, value))
        return Found(None, [])

    def _in_full(self, found: Found, rows: list[tuple[str, str]]) -> Found:
        """A box with its step in full, where that is printed with three digits and an exponent."""
        if found.step is None or found.settings:
            return found
        last, step = self.last, found.step
        if any("e+" in value and number(value) == step for _, value in rows):
            step = of_three_digits(step, last, self.every)
        self.last, self.every = step, step - last if last is not None and step > last else self.every
        metrics = [
            (name, float(step) if value == found.step and vocabulary.plain(name) in _STEPS else value) for name, value in found.metrics
        ]
        return found._replace(step=step, metrics=metrics)


def _box(rows: list[tuple[str, str]]) -> Found | None:
    """What a box measures. A single row without a word such as loss, or rows without one and without a step of which one is a setting of
    every training, are settings where training has not begun."""
    numbers = [(name, number(value)) for name, value in rows if re.fullmatch(NUM, value)]
    known = {vocabulary.plain(tag.rsplit("/", 1)[-1]): value for tag, value in numbers}
    step = next((int(known[k]) for k in _STEPS if k in known and known[k] % 1 == 0), None)
    told = len(rows) == 1 or (step is None and any(TRAINS.search(name) for name, _ in rows))
    if told and not any(is_measured(word) for row in rows for word in row):
        return Found(step if len(rows) > 1 else None, numbers, settings=tuple(rows))
    return Found(step, numbers)
