"""What a log's own lines say about its planned length: totals beside steps and epochs, bars, sentences before the loop.

A total of steps is a setting like one in a file (``total_steps``); what else the loop says of its length are events of the kind "plan"
(``epochs: 20``), for a number that only this log counts is no setting to compare launches by. A bar that is drawn from its beginning again and again counts the steps of an epoch, not of the run.

Sentences: transformers Trainer ("Total optimization steps = 7,272"), Lightning ("max_epochs=500 reached"), DeepSpeed-Chat ("Beginning of
Epoch 1/16, Total Micro Batches 460"), YOLO ("Starting training for 20 epochs"), TransUNet's heirs ("125 iterations per epoch. 12500 max
iterations"), verl ("Total training steps: 3746"), openpi ("4.09kit/200kit"), Flower ("config: num_rounds=200").
"""

from __future__ import annotations

from parsers.console_format.line_prefix import SUFFIX, Line
from parsers.lazy_regex import lazy_re
from parsers.records.vocabulary import BAR_AT, BAR_HERE, BAR_OF, BESIDE
from parsers.tables import Rows

TOTAL, EPOCHS, OF_EPOCH, MICRO, REACHED = ("total_steps", "epochs", "steps_per_epoch", "micro_batches_per_epoch", "reached")
_N = r"(?<![\d,.])(\d[\d,]*+)"
_STEPS = r"(?:steps|iterations|iters|updates)"
_OF_TRAINING = r"(?:\btrain(?:ing)?|训练|訓練|学習|학습|훈련)"
_HINT = lazy_re(r"(?i)epoch|iteration|micro|generation batches|steps|iters|kit/|Mit/|步数|步數|ステップ|스텝|num_rounds=")
_SAID = (
    (TOTAL, lazy_re(rf"(?i)\btotal (?:number of )?(?:train(?:ing)? |optimi[sz]ation |optimi[sz]er )?{_STEPS}\s*+(?:(?:is|=|:|->)\s*+)?{_N}\b(?!\s*+/|(?: {_STEPS})? (?:completed|done)\b)")),
    (REACHED, lazy_re(rf"(?i)\btotal (?:number of )?(?:\w{{3,20}} )?{_STEPS}\W{{1,3}}{_N} {_STEPS} (?:completed|done)\b")),
    (TOTAL, lazy_re(rf"(?i)= ?{_N} total (?:{_STEPS}|batches)\b")),
    (TOTAL, lazy_re(rf"(?i)\b{_N} max(?:imum)? {_STEPS}\b")),
    (TOTAL, lazy_re(rf"(?i)\btrain(?:ing)? for {_N} {_STEPS}\b")),
    (TOTAL, lazy_re(r"\bmax_steps=(\d+)` reached")),
    (TOTAL, lazy_re(r"(?<![\d.])[\d.]++[kKM]?it/(\d++(?:\.\d++)?[kKM])it\b")),
    (TOTAL, lazy_re(rf"(?:总(?:训练)?步数|總(?:訓練)?步數|総(?:学習)?ステップ数|총 ?(?:학습 |훈련 )?스텝 ?수)\s*[:：=]\s*{_N}\b")),
    (EPOCHS, lazy_re(r"\b[Cc]onfig(?:: |\()num_rounds=(\d+)\b")),
    (EPOCHS, lazy_re(rf"(?i)\btrain(?:ing)? (?:for )?{_N} epochs\b")),
    (EPOCHS, lazy_re(rf"(?i){_OF_TRAINING} ?\({_N} epochs?\)")),
    (EPOCHS, lazy_re(r"\bmax_epochs=(\d+)` reached")),
    (EPOCHS, lazy_re(rf"(?i)\bnum(?:ber of)? epochs\s*[=:]\s*{_N}\s*$")),
    (OF_EPOCH, lazy_re(rf"(?i)\b{_N} (?:{_STEPS}|batches) per epoch\b")),
    (OF_EPOCH, lazy_re(rf"(?i)\b(?:{_STEPS}|batches) per epoch\s*[=:]\s*{_N}\b")),
    (OF_EPOCH, lazy_re(rf"\bTotal Generation Batches {_N}\b")),
    (MICRO, lazy_re(rf"\bTotal Micro Batches {_N}\b")),
)  # fmt: skip
# MMEngine and MMCV print their configuration as the program text that it is
_CONFIG = lazy_re(r"\b(?:train_cfg|runner) ?= ?dict\(.{0,200}?\bmax_(?P<what>epochs|iters) ?= ?(?P<n>\d+)")


class Plans:
    """Collects the planned length while a log is read; every row is written once, and again where the number changes."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: dict[str, int] = {}
        self._told_at: dict[str, int] = {}  # the line that said so last
        self._bar: tuple[int, int, int] | None = None  # line, last position and total of the bar over the training
        self._nameless = (0, 0, 0)  # the same of the last bar without a name
        self._laps = False  # the nameless bar began anew
        self._from_0 = False  # an epoch 0 was counted
        self._epoch = 0  # the last one that was counted
        self._again = False  # the bar over the training began anew

    def forget(self) -> None:
        """A process begins: it says again how long it is to run, which the one before may have said, too."""
        self._known.clear()

    def _put(self, key: str, value: int, n: int) -> None:
        if value > 0 and self._known.get(key) != value:
            self._known[key], self._told_at[key] = value, n
            if key == TOTAL:
                self._rows.config(key, value, at=n)
            else:
                self._rows.event("plan", f"{key}: {value}", at=n)

    def sentence(self, n: int, body: str) -> None:
        """A line of words."""
        if len(body) > 2000 or not _HINT.search(body):
            return
        for key, pattern in _SAID:
            if m := pattern.search(body):
                self._put(key, _count(m[1]), n)

    def configured(self, n: int, text: str) -> None:
        """A line of program text."""
        if "max_" in text and (m := _CONFIG.search(text[:2000])) is not None:
            self._put(EPOCHS if m["what"] == "epochs" else TOTAL, int(m["n"]), n)

    def epochs(self, n: int, line: Line) -> None:
        """``Epoch 3/100``, whatever else the line says; and the length of an epoch on its bar."""
        if (length := line.value("length")) is not None:
            self._put(OF_EPOCH, length, n)
        if (value := line.value("epochs")) is not None:
            epoch = line.value("epoch")
            if epoch is not None and epoch <= 1 < self._epoch and not line.mode:  # another training begins, which is as long as it says
                self.forget()
            self._epoch = self._epoch if epoch is None or line.mode else epoch
            self._from_0 = (self._from_0 and self._known.get(EPOCHS, value) in (value, value + 1)) or epoch == 0
            self._put(EPOCHS, value + (self._from_0 and epoch == value), n)  # 0/69 ... 69/69 are seventy

    def again(self, before: int | None, step: int | None, line: Line, parts: dict[str, int], n: int) -> int | None:
        """The ``step`` of a line. Where it falls back to the first batch of the first epoch, another training begins, as long as lines like it said."""
        falls = before is not None and step is not None and step < before
        if falls and not line.mode and parts.get("epoch", 2) <= 1 and parts.get("it", 2) <= 1:
            told = {key: value for key, value in self._known.items() if self._told_at[key] != n}
            self._known = {key: value for key, value in self._known.items() if key not in told}
            for key, value in told.items():
                self._put(key, value, n)
        return step

    def total(self, n: int, line: Line, parts: dict[str, int], within: bool) -> None:
        """``step 120/500``, a bar; ``within``: this total is that of an epoch."""
        total = parts.get("total")
        if total is None or line.mode:
            return
        if within:
            self._put(OF_EPOCH, total, n)
            if self._bar is not None and self._bar[2] == total:  # Lightning renames its bar when the first epoch begins
                self._bar = None
        elif line.bar:
            self._drawn(n, line, parts.get("it", 0), total)
        elif (it := next((f for f in line.fields if f.role == "it"), None)) is not None:
            self._put(TOTAL if it.tag else BESIDE, total, n)

    def _drawn(self, n: int, line: Line, it: int, total: int) -> None:
        """A bar over training says so by its name or by what it measures; nameless ones are of anything."""
        if not (line.training and "rain" in line.text[: line.text.find("%|")]) and not any(f.role == "metric" for f in line.fields):
            if line.training:
                self._laps = self._laps or (it < self._nameless[1] and total == self._nameless[2])
                self._nameless = (n, it, total)
            return
        if self._bar is None or self._bar[2] < total:
            self._bar, self._again = (n, it, total), False
        elif self._bar[2] == total:
            self._again = self._again or it < self._bar[1] == total
            self._bar = (self._bar[0], it, total)

    def finish(self, beside_losses: tuple[int, int, int], measured: bool) -> None:
        """What only the whole log tells: whether its longest bar was drawn once; ``beside_losses``: line, position and total of the bar
        that gave transformers' dict lines their steps, total 0 where none did. A log without any measurement may be the stream of a bar."""
        n, it, total = self._nameless if measured else self._bar or self._nameless
        if it > 1 and not (measured and self._laps):
            self._put(BAR_HERE if measured else BAR_AT, it, n)
            self._put(BAR_OF, total, n)
        n, it, total = self._bar or beside_losses
        if total < 2:
            return
        if self._again or (self._bar is not None and self._known.get(EPOCHS, 0) > 1):
            self._put(OF_EPOCH, total, n)
        elif self._known.get(TOTAL, total) == total:
            self._put(TOTAL, total, n)
            self._put(REACHED, it, n)


def _count(text: str) -> int:
    """'7,272' -> 7272, '200k' -> 200000"""
    scale = SUFFIX.get(text[-1:].upper(), 1.0)
    return round(float(text.rstrip("kKM").replace(",", "")) * scale)
