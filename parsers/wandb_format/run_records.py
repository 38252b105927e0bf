"""The records of a ``.wandb`` file that come once or seldom: run, config, environment, output, alert, exit, summary.

Field numbers: ``wandb_internal.proto`` of wandb 0.31 (RunRecord, ConfigRecord, EnvironmentRecord, OutputRecord, ...).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from parsers.console_format import event_lines, tracebacks
from parsers.console_format.line_prefix import Where
from parsers.lazy_regex import lazy_re
from parsers.records.json_values import flat
from parsers.tables import Gap, Note, Rows
from parsers.wandb_format import key_values
from parsers.wandb_format.key_values import Message, message
from parsers.wandb_format.steps import Dropped

_OUTPUT, _CONFIG, _ALERT, _OUTPUT_RAW, _RUN = 4, 5, 10, 13, 17
_EXIT, _HEADER, _PREEMPTING, _ENVIRONMENT = 18, 21, 23, 26
_RUN_TEXTS = {1: "run_id", 2: "entity", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes",
              12: "sweep_id", 13: "host"}  # fmt: skip
_ENVIRONMENT_TEXTS = {1: "os", 2: "python", 4: "docker", 6: "program", 11: "root", 12: "host", 13: "username",
                      14: "executable", 18: "gpu_type", 25: "cuda_version"}  # fmt: skip
_ENVIRONMENT_COUNTS = {16: "cpu_count", 17: "cpu_count_logical", 19: "gpu_count"}
_ANSI = lazy_re(r"\x1b\[[0-9;?]*[A-Za-z]")
_MAX_EVENTS = 2000
_LEVELS = {"INFO": "info", "WARN": "warning", "ERROR": "error"}


@dataclass
class Meta:
    """What the single records of a file said so far. ``console``: whether output lines are looked at."""

    console: bool
    _config: dict[str, Any] = field(default_factory=dict)
    _summary: dict[str, tuple[Any, int]] = field(default_factory=dict)
    _started: float | None = None
    _exited: bool = False
    _version: str = ""
    _line: dict[int, str] = field(default_factory=dict)  # by stream: text after the last line's end
    _traceback: dict[int, tracebacks.Traceback] = field(default_factory=dict)
    _dropped: Dropped = field(default_factory=Dropped)
    _events: int = 0

    def read(self, number: int, record: Message, at: int, rows: Rows) -> None:
        """Takes the record of type ``number`` that begins at byte ``at``."""
        if number in (_OUTPUT, _OUTPUT_RAW):
            self._output(record, at, rows)
        elif number == _RUN:
            self._run(record, at, rows)
        elif number == _CONFIG:
            self._update(record, at, rows)
        elif number == _ENVIRONMENT:
            self._environment(record, at, rows)
        elif number == _EXIT:
            self._exit(record, at, rows)
        elif number == _ALERT:
            title, text, level = (_text(record, k) for k in (1, 2, 3))
            rows.event("alert", f"{title}: {text}"[:2000], level=_LEVELS.get(level, "info"), at=at)
        elif number == _PREEMPTING:
            rows.event("scheduler", "the run was marked as preempting", level="warning", at=at)
        elif number == _HEADER:
            self._version = _text(_inner(record, 1), 1).partition("+")[0]

    def summary(self, item: Message, at: int) -> None:
        """Takes an update of the run's summary."""
        self._summary[key_values.name_of(item)] = (key_values.value_of(item), at)

    def end(self, rows: Rows, logged: set[str], seen: Counter[str]) -> Iterator[Gap | Note]:
        """What can be said once the file is over. ``logged``: the names in the history."""
        for stream in sorted(self._line):
            self._finish_line(stream, self._line[stream], None, None, rows)
            self._finish_traceback(stream, rows)
        for name, (value, at) in self._summary.items():
            if not name.startswith("_") and name not in logged:
                key_values.add(rows, name, value, Counter(), at=at)
        if self._dropped.rows:
            self._dropped.events(rows)
            first = self._dropped.stretches[0][4]
            yield Gap(f"byte {first}", f"W&B dropped at least {self._dropped.rows} rows for going back in step", None)
        if self._version:
            yield Note(f"written by wandb {self._version}")
        if self._events > _MAX_EVENTS:
            yield Note(f"{self._events - _MAX_EVENTS} more lines of output look like events")
        if not self._exited:
            yield Note("no exit record: the process was killed or is still running")

    def _run(self, record: Message, at: int, rows: Rows) -> None:
        for number, name in _RUN_TEXTS.items():
            if text := _text(record, number):
                rows.config(f"wandb.{name}", text, at=at)
        if tags := [_decode(t) for t in record.get(10, [])]:
            rows.config("wandb.tags", tags, at=at)
        _git(_inner(record, 21), at, rows)
        telemetry = _inner(record, 19)
        self._version = self._version or _text(telemetry, 5)
        if python := _text(telemetry, 4):
            rows.config("wandb.python", python, at=at)
        self._started = _time(record, 17)
        if self._started is not None:
            rows.config("wandb.start_time", self._started, at=at)
            rows.event("start", f"W&B run {_text(record, 8) or _text(record, 1)} started", time=self._started, at=at)
        resumed, step = _number(record, 18), _number(record, 14)
        if resumed or step:
            text = f"the W&B run was resumed at step {step}"
            rows.event("resume", text, step=step or None, time=self._started, at=at)
        self._update(_inner(record, 4), at, rows)

    def _update(self, record: Message, at: int, rows: Rows) -> None:
        """Config items; frameworks send the whole config again with every change, so only changes become rows."""
        for raw in record.get(1, []):
            item = message(raw) if isinstance(raw, bytes) else {}
            name = key_values.name_of(item)
            if name == "_wandb" or name.startswith("_wandb."):
                continue
            for key, value in flat(name, key_values.value_of(item)):
                if key not in self._config or self._config[key] != value:
                    self._config[key] = value
                    rows.config(key, value, at=at)

    def _environment(self, record: Message, at: int, rows: Rows) -> None:
        for number, name in _ENVIRONMENT_TEXTS.items():
            if text := _text(record, number):
                rows.config(f"wandb.{name}", text, at=at)
        for number, name in _ENVIRONMENT_COUNTS.items():
            if number in record:
                rows.config(f"wandb.{name}", _number(record, number), at=at)
        if args := [_decode(a) for a in record.get(5, [])]:
            rows.config("wandb.args", " ".join(args), at=at)  # as one text, so that `--token x` is known as a secret
        for raw in record.get(27, []):
            entry = message(raw) if isinstance(raw, bytes) else {}
            rows.config(f"wandb.slurm.{_text(entry, 1)}", _text(entry, 2), at=at)
        _git(_inner(record, 9), at, rows)

    def _exit(self, record: Message, at: int, rows: Rows) -> None:
        self._exited = True
        code, runtime = _number(record, 1), _number(record, 2)
        time = self._started + runtime if self._started is not None and runtime else None
        rows.event("exit", f"exit code {code}", level="error" if code else "info", time=time, at=at)

    def _output(self, record: Message, at: int, rows: Rows) -> None:
        stream = _number(record, 1)
        time = _time(record, 2)
        *whole, rest = (self._line.get(stream, "") + _text(record, 3)).split("\n")
        for line in whole:
            self._finish_line(stream, line, time, at, rows)
        self._line[stream] = rest[-65536:]

    def _finish_line(self, stream: int, line: str, time: float | None, at: int | None, rows: Rows) -> None:
        line = _ANSI.sub("", line.rsplit("\r", 1)[-1])
        if stream in self._traceback:
            if self._traceback[stream].feed(line):
                return
            self._finish_traceback(stream, rows)
        if tracebacks.TRACEBACK.search(line):
            self._traceback[stream] = tracebacks.Traceback(Where(at or 0, time))
        elif not self._dropped.feed(line, at or 0) and (event := event_lines.event_of(line)):
            self._event(event, time, at, rows)

    def _finish_traceback(self, stream: int, rows: Rows) -> None:
        traceback = self._traceback.pop(stream, None)
        if traceback is not None and (event := traceback.event()) is not None:
            self._event(event, traceback.where.time, traceback.where.place, rows)

    def _event(self, event: event_lines.Event, time: float | None, at: int | None, rows: Rows) -> None:
        self._events += 1
        if self._events <= _MAX_EVENTS:
            rows.event(event.kind, event.text, level=event.level, step=event.step, time=time, at=at)


def _git(record: Message, at: int, rows: Rows) -> None:
    for number, name in ((1, "remote"), (2, "commit")):
        if text := _text(record, number):
            rows.config(f"wandb.git.{name}", text, at=at)


def _inner(record: Message, number: int) -> Message:
    raw = record.get(number, [b""])[-1]
    return message(raw) if isinstance(raw, bytes) else {}


def _text(record: Message, number: int) -> str:
    return _decode(record.get(number, [b""])[-1])


def _decode(raw: Any) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""


def _time(record: Message, number: int) -> float | None:
    if number not in record:
        return None
    stamp = _inner(record, number)
    return _number(stamp, 1) + _number(stamp, 2) / 1e9


def _number(record: Message, number: int) -> int:
    """An int64 field; 0 where it is missing or no number."""
    value = record.get(number, [0])[-1]
    if not isinstance(value, int):
        return 0
    return value - (1 << 64) if value >> 63 else value
