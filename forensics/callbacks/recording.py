"""One training being recorded: its batches and its end, and the analysis once it is over. Standard library only."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from forensics import recorder
from forensics.callbacks.analysis_process import Analysis

LOG, ENDED = "training_log.jsonl", "training_ended.log"
SIGNALS = (signal.SIGTERM, signal.SIGINT)
GRACE = 20.0  # seconds; Slurm (KillWait) and Kubernetes (terminationGracePeriodSeconds) kill 30 seconds after SIGTERM
F = TypeVar("F", bound=Callable[..., Any])


def never_raises(method: F) -> F:
    """What fails becomes one line on standard error, each kind of failure once."""

    @wraps(method)
    def guarded(self: Recording, *args: Any, **given: Any) -> Any:
        try:
            return method(self, *args, **given)
        except Exception as e:
            self.warn(f"{method.__name__.strip('_')} failed: {type(e).__name__}: {e}")
        return None

    return guarded  # type: ignore[return-value]


class Recording:
    """Of a run's folder; ``wait`` are the seconds that the analysis may take at the end.

    Writes into the folder ``batches.jsonl`` (ids that were given), ``training_log.jsonl`` (numbers that a callback was given),
    ``training_ended.log`` (how the training ended) and, on the first rank alone, ``<run>.html`` and ``<run>.case.json``.
    """

    def __init__(self, folder: str | os.PathLike[str] = ".", *, wait: float = 300.0) -> None:
        self.folder, self.wait, self.main = Path(os.path.abspath(folder)), wait, recorder.rank() in (None, 0)
        self.last: int | None = None  # step
        self.running = False
        self._ids: list[Any] = []
        self._files: dict[str, Any] = {}
        self._before: dict[int, Any] = {}  # signal -> the handler that was there
        self._signalled: int | None = None  # the last step when a signal came, -1 before the first
        self._analysis: Analysis | None = None
        self._warned: set[str] = set()

    def __enter__(self) -> Recording:
        self.begin()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.end(error)

    @never_raises
    def begin(self) -> None:
        """From here on an end of the process is an end of the training. How an earlier attempt ended is forgotten."""
        if self.running:
            return
        self.running, self.last, self._signalled, self._pid = True, None, None, os.getpid()
        self._hook = sys.excepthook
        sys.excepthook = self._uncaught
        atexit.register(self._left)
        self._catch_signals()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / recorder.of_rank(ENDED)).unlink(missing_ok=True)

    def saw(self, ids: Any) -> None:
        """Ids of samples that the step under way has; they are written with the next ``step``."""
        self._ids.append(ids)

    @never_raises
    def step(self, step: int, ids: Any = None, **values: float) -> None:
        """After each step, as the log counts it: the ids of its samples (a list, or a tensor of integers) and numbers by name, if
        they are to be recorded. At most one line is written; a tensor is copied from its device."""
        self.last = step
        if ids is None and self._ids:
            seen, self._ids = self._ids, []
            ids = [i for each in seen for i in (each.reshape(-1).tolist() if hasattr(each, "reshape") else each)]
        if ids is not None or values:
            self._write(recorder.NAME, recorder.row(step, ids, **values))

    @never_raises
    def log(self, step: int, **values: Any) -> None:
        """Numbers that were logged at a step; what is no number is left out."""
        numbers = {k: v for k, v in values.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        if self.main and numbers:
            self._write(LOG, recorder.row(step, **numbers))

    def _write(self, name: str, line: str) -> None:
        if name not in self._files:
            self._files[name] = (self.folder / recorder.of_rank(name)).open("a", encoding="utf-8", buffering=1)  # one write a line
        self._files[name].write(line)

    def end(self, error: BaseException | None = None, *, finished: bool = True) -> None:
        """Says how the training ended, and analyzes it. Only the first call counts."""
        if not self.running or os.getpid() != self._pid:
            return
        self.running = False
        self._let_go()
        self._say_end(error, finished=finished)
        self._finish_analysis()

    @never_raises
    def _say_end(self, error: BaseException | None, *, finished: bool) -> None:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            error = None
        if error is not None:
            self._say(f"training ended {self._after()} by an exception\n" + "".join(traceback.format_exception(error)).rstrip())
        elif finished and self._signalled is None:
            self._say(f"training finished {self._after()}")

    def _say(self, text: str) -> None:
        with (self.folder / recorder.of_rank(ENDED)).open("a", encoding="utf-8", errors="backslashreplace") as f:
            f.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")

    def _after(self) -> str:
        return "before its first step" if self.last is None else f"after step {self.last}"

    @never_raises
    def _finish_analysis(self) -> None:
        for f in self._files.values():
            f.close()
        self._files = {}
        if not self.main:
            return
        running, self._analysis = self._analysis, None
        if running is not None and self._signalled == (-1 if self.last is None else self.last):
            self._result(running)  # it began at the signal, and no step came after it
            return
        if running is not None:
            running.stop()
        self._result(Analysis(self.folder))

    def _result(self, analysis: Analysis) -> None:
        if trouble := analysis.trouble(self.wait):
            self.warn(f"{trouble}; `forensics analyze {self.folder}` tries again")

    @never_raises
    def _catch_signals(self) -> None:
        self._before = {}
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._on_signal)  # ValueError outside the main thread

    def _on_signal(self, number: int, frame: Any) -> None:
        """Takes note, and hands over to who had the signal before, who decides whether the process ends."""
        before = self._before.get(number)
        if self.running and os.getpid() == self._pid:
            self._at_signal(number, ends=not callable(before), raises=before is signal.default_int_handler)
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    @never_raises
    def _at_signal(self, number: int, *, ends: bool, raises: bool) -> None:
        self._say(f"training got {signal.Signals(number).name} {self._after()}")
        self._signalled = -1 if self.last is None else self.last
        if self.main and not raises:  # a KeyboardInterrupt comes by `end`
            self._analysis = self._analysis or Analysis(self.folder)
            if ends and (trouble := self._analysis.trouble(min(self.wait, GRACE), stop=False)):
                self.warn(trouble)

    @never_raises
    def _let_go(self) -> None:
        """Hands signals and the hook back, unless somebody has put a handler over ours: then ours only passes on."""
        atexit.unregister(self._left)
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook
        for number, before in self._before.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL if before is None else before)

    def _uncaught(self, kind: Any, error: BaseException, trace: Any) -> None:
        self._hook(kind, error, trace)
        self.end(error)

    def _left(self) -> None:
        """The process ends, and nobody said how the training did."""
        self.end(finished=False)

    def warn(self, text: str) -> None:
        line = " ".join(text.split())[:400]
        if line not in self._warned and len(self._warned) < 20:
            self._warned.add(line)
            try:
                print(f"forensics: {line}", file=sys.stderr, flush=True)
            except (OSError, ValueError):  # nobody listens
                return


def record(folder: str | os.PathLike[str] = ".", *, wait: float = 300.0) -> Recording:
    """A recording for a ``with`` block around the training loop: ``with record(folder) as run: ... run.step(step, ids=ids)``."""
    return Recording(folder, wait=wait)
