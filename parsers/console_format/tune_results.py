"""Results as Ray Tune prints them: ``Result for PPO_env_96499_00000:`` above the nested YAML of one iteration of a trial.

The tags are those of Tune's own files, nested keys with strokes between them (``info/learner/default_policy/learner_stats/total_loss``); the step is
``training_iteration``, as in the table of trials above. Format: ray/tune/experiment/trial.py and progress_reporter.py up to Ray 2.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from parsers.console_format.grammars import NUM
from parsers.console_format.line_prefix import number, whole
from parsers.lazy_regex import lazy_re

_HEAD = lazy_re(r"Result for (\S{1,200}):\s*$")
_KEY = lazy_re(rf"( {{2,40}})([\w./@-][\w ./@-]{{0,200}}?):(?: ({NUM}))?\s*$")
_STEP = "training_iteration"
_NO_MEASURES = {"pid", "timestamp", "date", "done", "should_checkpoint", "config"}  # of the process, or a setting; and what lies below it


class Result(NamedTuple):
    """An iteration of the trial; ``time`` in seconds since 1970."""

    step: int | None = None
    metrics: Sequence[tuple[str, float]] = ()
    time: float | None = None


class TuneResults:
    """``read`` gives the result with the line that says its iteration, an empty one for its other lines, and None for lines of something else.

    A log of several trials is that of several runs: the first is read, and ``notes`` tells of the others."""

    def __init__(self) -> None:
        self._trial, self._others = "", set[str]()
        self._open = self._mine = False
        self._keys: list[tuple[int, str]] = []
        self._found: list[tuple[str, float]] = []
        self._time: float | None = None

    def read(self, text: str) -> Result | None:
        if (m := _HEAD.match(text)) is not None:
            self._trial = self._trial or m[1]
            self._open, self._mine, self._keys, self._found, self._time = True, m[1] == self._trial, [], [], None
            self._others |= set() if self._mine else {m[1]}
            return Result()
        if not self._open or text.startswith("("):  # a worker says something meanwhile
            return None
        self._open = text.startswith("  ")
        return self._line(text) if self._open else None

    def notes(self) -> list[str]:
        n = len(self._others)
        return [f"results of trial {self._trial}; those of {n} other trial{'s' if n > 1 else ''} in this log are left out"] if n else []

    def _line(self, text: str) -> Result:
        m = _KEY.match(text)
        if m is None or not self._mine:
            return Result()
        depth = len(m[1])
        self._keys = [*(k for k in self._keys if k[0] < depth), (depth, m[2])]
        if m[3] is None or self._keys[0][1] in _NO_MEASURES:
            self._time = number(m[3]) if m[3] and m[2] == "timestamp" else self._time
            return Result()
        if m[2] == _STEP and len(self._keys) == 1:
            return Result(whole(m[3]), self._found, self._time)
        self._found.append(("/".join(key for _, key in self._keys), number(m[3])))
        return Result()
