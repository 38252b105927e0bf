"""The parent's end of a worker: starts it, asks it, and ends it whatever happens.

A worker is one process, or one for each rank: each is told every command, and their answers become one (`all_ranks`). A process is a group
of its own: Ctrl-C reaches only us, and we end the group. What it prints (the adapter's prints, warnings) goes to a file. An error of the
adapter is a ReplayFailed with its traceback; so are a silence longer than the timeout and a process that disappears.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from forensics import cold_start, safe_path
from forensics.replays import all_ranks
from forensics.replays.training.protected import TRACKERS

HERE = Path(__file__).resolve().parent
START = (  # `-c` puts the current folder first on the path, and an older interpreter knows no PYTHONSAFEPATH
    "import sys; sys.path[:] = [p for p in sys.path if p]; "
    "import runpy; path = sys.argv.pop(1); sys.argv[0] = path; runpy.run_path(path, run_name='__main__')"
)
MEMORY = 4 << 30  # bytes of states kept in the worker's memory; more go to disk
GRACE = 10.0  # seconds in which ranks that fail alike have all said so
Step = Callable[[dict[str, Any]], None]
Order = dict[int, list[Any]] | None  # samples by step, for an adapter that gives its data set alone


class ReplayFailed(Exception):
    """Replay cannot go on: a sentence, and the traceback of the adapter where there is one."""

    def __init__(self, sentence: str, traceback: str = "", kind: str = "adapter") -> None:
        super().__init__(sentence)
        self.sentence, self.traceback, self.kind = sentence, traceback, kind


class Worker:
    """The user's model, in a process for each rank. Use it in a `with` block; steps that were run are counted in `steps`."""

    def __init__(
        self,
        python: str,
        adapter: Path,
        *,
        run: object = "",
        timeout: float = 300.0,
        order: Order = None,
        processes: Sequence[dict[str, str]] = ({},),
    ) -> None:
        """``processes``: for each of them what its environment has beside ours."""
        self.adapter, self.timeout, self.order = adapter, timeout, order
        self.steps, self.seconds, self._id = 0, 0.0, 0
        self.beside: list[str] = []  # files beside the adapter that it imported
        environment = {
            **cold_start.environment(),
            **safe_path.ENVIRONMENT,
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **TRACKERS,
        }
        environment |= {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "FORENSICS_RUN": os.path.abspath(str(run)) if run else ""}
        exe = shutil.which(python)
        if exe is None:
            raise ReplayFailed(f"there is no interpreter {python}", kind="files")
        self._answers: queue.Queue[tuple[int, str | None]] = queue.Queue()
        self._logs: list[IO[str]] = []
        self._processes: list[subprocess.Popen[str]] = []
        for more in processes:
            self._start(exe, {**environment, **more})

    def _start(self, exe: str, environment: dict[str, str]) -> None:
        """One more process, whose answers are listened to."""
        self._logs.append(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))  # noqa: SIM115
        self._processes.append(subprocess.Popen(
            [exe, "-c", START, str(HERE / "worker.py"), str(HERE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._logs[-1], start_new_session=True, env=environment,
            text=True, encoding="utf-8", errors="replace",
        ))  # fmt: skip
        threading.Thread(target=self._listen, args=(len(self._processes) - 1,), daemon=True).start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes and everything they started."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                for process in self._processes:
                    process.wait(3)
                break
        for process in self._processes:
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()

    def printed(self, rank: int = 0) -> str:
        """The end of what a process wrote to standard error."""
        log = self._logs[rank]
        log.flush()
        log.seek(0)
        return log.read()[-20000:]

    def open(self, device: str, threads: int, memory: int = MEMORY) -> dict[str, Any]:
        path = str(self.adapter.resolve())
        return self.ask("open", adapter=path, device=device, threads=threads, memory=memory, order=self.order)

    def ask(self, op: str, on_step: Step | None = None, **arguments: Any) -> dict[str, Any]:
        """One command to all ranks; `on_step` is called with each training step. Raises ReplayFailed."""
        self._id += 1
        for rank, process in enumerate(self._processes):
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps({"id": self._id, "op": op, **arguments}) + "\n")
                process.stdin.flush()
            except OSError:
                self._gone(op, rank)
        steps: dict[int, dict[int, dict[str, Any]]] = {}  # of each position what the ranks said, until all have
        done: dict[int, dict[str, Any]] = {}
        while len(done) < len(self._processes):
            rank, answer = self._answer(op, self.timeout)
            if "error" in answer:
                self._raise(op, rank, answer["error"], len(done))
            if "step" in answer:
                told = steps.setdefault(answer["step"]["i"], {})
                told[rank] = answer["step"]
                if len(told) == len(self._processes):
                    self.steps += 1
                    whole = all_ranks.step([told[r] for r in sorted(steps.pop(answer["step"]["i"]))])
                    if on_step:
                        on_step(whole)
            elif "done" in answer:
                done[rank] = answer["done"]
        found = all_ranks.done(op, [done[r] for r in sorted(done)])
        self.seconds += found.get("seconds", 0.0)
        self.beside = found.pop("beside")
        return found

    def _answer(self, op: str, timeout: float) -> tuple[int, dict[str, Any]]:
        """The next answer to the present command, and whose it is. Raises ReplayFailed."""
        while True:
            try:
                rank, line = self._answers.get(timeout=timeout)
            except queue.Empty:
                self.close()
                why = f"the adapter said nothing for {timeout:g} seconds (during {op}) and was stopped"
                raise ReplayFailed(why, kind="timeout") from None
            if line is None:
                self._gone(op, rank)
            with contextlib.suppress(ValueError):
                answer = json.loads(line or "")
                if "error" in answer or answer.get("id") == self._id:
                    return rank, answer

    def _raise(self, op: str, rank: int, e: dict[str, Any], done: int) -> NoReturn:
        """What a rank says went wrong. Where others do not say the same, they wait for it in vain: all are ended."""
        others = len(self._processes) - 1
        try:
            while others - done > 0:
                others -= bool({"error", "done"} & set(self._answer(op, GRACE)[1]))
        except ReplayFailed:
            self.close()
            e = {**e, "kind": "worker" if e["kind"] == "adapter" else e["kind"]}
        where = f" on rank {rank}" if len(self._processes) > 1 else ""
        raise ReplayFailed(_sentence(e, self.adapter, where), e["traceback"], e["kind"])

    def _gone(self, op: str, rank: int) -> NoReturn:
        process = self._processes[rank]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(3)
        code, text = process.poll(), self.printed(rank)
        who = f"rank {rank} of the worker" if len(self._processes) > 1 else "the worker"
        if code == -signal.SIGKILL:
            raise ReplayFailed(f"the system killed {who} during {op}, most likely for want of memory", text, "memory")
        last = next((x for x in reversed(text.splitlines()) if x.strip()), "it said nothing")
        raise ReplayFailed(f"{who} ended during {op} (exit {code}): {last[:200]}", text, "worker")

    def _listen(self, rank: int) -> None:
        out = self._processes[rank].stdout
        assert out is not None
        with contextlib.suppress(ValueError, OSError):
            for line in out:
                self._answers.put((rank, line))
        self._answers.put((rank, None))


def _sentence(e: dict[str, Any], adapter: Path, where: str) -> str:
    name, what = f"{adapter.name}{where}", e["what"]
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
