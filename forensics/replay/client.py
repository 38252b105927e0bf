"""The parent's end of a worker: starts it, asks it, and ends it whatever happens.

The worker is a process group of its own: Ctrl-C reaches only us, and we end the group. What it prints (the adapter's prints,
warnings) goes to a file. An error of the adapter is a ReplayFailed with its traceback; so are a silence longer than the
timeout and a process that disappears.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forensics import safe_path
from forensics.replay.training.protected import TRACKERS

HERE = Path(__file__).resolve().parent
START = (  # `-c` puts the current folder first on the path, and an older interpreter knows no PYTHONSAFEPATH
    "import sys; sys.path[:] = [p for p in sys.path if p]; "
    "import runpy; path = sys.argv.pop(1); sys.argv[0] = path; runpy.run_path(path, run_name='__main__')"
)
MEMORY = 4 << 30  # bytes of states kept in the worker's memory; more go to disk
Step = Callable[[dict[str, Any]], None]
Order = dict[int, list[Any]] | None  # samples by step, for an adapter that gives its data set alone


class ReplayFailed(Exception):
    """Replay cannot go on: a sentence, and the traceback of the adapter where there is one."""

    def __init__(self, sentence: str, traceback: str = "", kind: str = "adapter") -> None:
        super().__init__(sentence)
        self.sentence, self.traceback, self.kind = sentence, traceback, kind


class Worker:
    """A process with the user's model. Use it in a `with` block; steps that were run are counted in `steps`."""

    def __init__(
        self, python: str, adapter: Path, *, run: object = "", timeout: float = 300.0, cuda: str | None = None, order: Order = None
    ) -> None:
        self.adapter, self.timeout, self.order = adapter, timeout, order
        self.steps, self.seconds, self._id = 0, 0.0, 0
        self.beside: list[str] = []  # files beside the adapter that it imported
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        environment = {**os.environ, **safe_path.ENVIRONMENT, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **TRACKERS}
        environment |= {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "FORENSICS_RUN": os.path.abspath(str(run)) if run else ""}
        if cuda is not None:
            environment["CUDA_VISIBLE_DEVICES"] = cuda
        exe = shutil.which(python)
        if exe is None:
            raise ReplayFailed(f"there is no interpreter {python}", kind="files")
        self._process = subprocess.Popen(
            [exe, "-c", START, str(HERE / "worker.py"), str(HERE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True, env=environment,
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process and everything it started."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(3)
                break
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()

    def printed(self) -> str:
        """The end of what the process wrote to standard error."""
        self._log.flush()
        self._log.seek(0)
        return self._log.read()[-20000:]

    def open(self, device: str, threads: int, memory: int = MEMORY) -> dict[str, Any]:
        path = str(self.adapter.resolve())
        return self.ask("open", adapter=path, device=device, threads=threads, memory=memory, order=self.order)

    def ask(self, op: str, on_step: Step | None = None, **arguments: Any) -> dict[str, Any]:
        """One command; `on_step` is called with each training step. Raises ReplayFailed."""
        self._id += 1
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"id": self._id, "op": op, **arguments}) + "\n")
            self._process.stdin.flush()
        except OSError:
            self._gone(op)
        while True:
            try:
                line = self._answers.get(timeout=self.timeout)
            except queue.Empty:
                self.close()
                why = f"the adapter said nothing for {self.timeout:g} seconds (during {op}) and was stopped"
                raise ReplayFailed(why, kind="timeout") from None
            if line is None:
                self._gone(op)
            try:
                answer = json.loads(line or "")
            except ValueError:
                continue
            if "error" in answer:
                e = answer["error"]
                raise ReplayFailed(_sentence(e, self.adapter), e["traceback"], e["kind"])
            if answer.get("id") != self._id:
                continue
            if "step" in answer:
                self.steps += 1
                if on_step:
                    on_step(answer["step"])
            elif "done" in answer:
                done: dict[str, Any] = answer["done"]
                self.seconds += done.get("seconds", 0.0)
                self.beside = done.pop("beside")
                return done

    def _gone(self, op: str) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3)
        code = self._process.poll()
        text = self.printed()
        if code == -signal.SIGKILL:
            raise ReplayFailed(f"the system killed the worker during {op}, most likely for want of memory", text, "memory")
        last = next((x for x in reversed(text.splitlines()) if x.strip()), "it said nothing")
        raise ReplayFailed(f"the worker ended during {op} (exit {code}): {last[:200]}", text, "worker")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self._process.stdout:
                self._answers.put(line)
        self._answers.put(None)


def _sentence(e: dict[str, Any], adapter: Path) -> str:
    name, what = adapter.name, e["what"]
    return {
        "memory": f"{name} ran out of memory: {what}",
        "protected": f"{name} would have changed the run: {what}",
        "files": f"{name} needs something that is not there: {what}",
        "torch": f"the interpreter has no usable torch ({what}); name one that has with --python, or pip install 'run-forensics[replay]'",
    }.get(e["kind"], f"{name} failed: {what}")


def further_cards(device: str, gpus: int) -> list[str]:
    """The GPUs beside the one in use, as CUDA_VISIBLE_DEVICES names them."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    cards = (listed.split(",") if listed else [str(i) for i in range(gpus)])[:gpus]
    number = device.partition(":")[2]
    used = int(number) if number.isdigit() else 0
    return [card for i, card in enumerate(cards) if i != used]
