"""Lines that tell of an ending: of which kind, which of several to quote, and whose rank it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from forensics.run import endings
from forensics.run.endings import Event
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

DISK = lazy_re(
    r"No space left on device|Disk quota exceeded|\bErrno (?:28|122)\b|\bENOSPC\b|\bEDQUOT\b|unexpected pos \d+ vs"
    r"|basic_ios::clear: iostream error|ios_base::badbit set: iostream|PytorchStreamWriter failed writing file .{1,200}file write failed",  # torch's of a short write
    re.I,
)
MEMORY = lazy_re(r"out[ _]of[ _](?:memory|me\+)|oom.?kill|can(?:no|')t allocate memory", re.I)
HARDWARE = lazy_re(r"\bXid\b|fallen off the bus|uncorrectable|\bECC error|node[ _]fail", re.I)
# No fault of a device is what CUDA says of the program or its installation (the CUDA runtime's list of errors): an assert in a kernel, which is
# the program's own check of its values; code compiled for another device or driver; a device that is not there
CUDA = lazy_re(
    r"\bCUDA (?:error|kernel errors?)(?!.{0,60}(?:device-side assert|unsupported toolchain|no kernel image|invalid device|driver version|initialization error))",
    re.I,
)
# statuses of NVIDIA's libraries, which come of memory that ran out, of a wrong build and of a device alike
INSIDE = lazy_re(r"\bCU(?:BLAS|DNN)_STATUS_")
INTERRUPT = lazy_re(r"Keyboard[ -]?interrupt|\bSIGINT\b|Ctrl-?C", re.I)
OUTSIDE = lazy_re(r"time ?limit|(?-i:\bTIMEOUT\b)|\bDEADLINE\b|preempt|cancelled|requeue|\bjob no longer exists", re.I)
CONSEQUENCE = lazy_re(r"exit(?:ed with exit)? ?code|step aborted|exitcode\s*: -?\d+ \(pid|: Signal 15 \(SIGTERM\) received", re.I)
EXIT_CODE = lazy_re(r"exit ?code\W{1,4}-?[1-9]|exited with exit code [1-9]", re.I)
IN_TABLE, TABLE_ROWS = (
    lazy_re(r"^\W*(?:traceback|exitcode)\s*: ", re.I),
    4,
)  # torchelastic's report: rank, exitcode, error_file, traceback
ERROR_LINE = lazy_re(
    r"\b\w*(?:Error|Exception)\b(?:: |$)|assertion|terminate called|\bdied\b|exited? with (?:code|status)|^(?:\S+: )?error: |: No module named |\blua(?:jit)?: \S+\.lua:\d+: |: command not found\s*$|^python[\d.]*: can.t open file ",
    re.I,
)
NOT_BEGUN = lazy_re(r"(?:(?:Syntax|Indentation|Tab)Error)+\b")  # several processes may write over each other
JOB = lazy_re(r"(?i)\bjob[ =]?(?:id)?[ =:]?(\d{4,})")  # a scheduler names the job; its logs are mostly called after it
BY_SIGNAL = lazy_re(r"is killed by signal: \w")  # torch's DataLoader, of one of its workers
GONE = lazy_re(r"\b(?:ActorDied|ActorUnavailable|WorkerCrashed|NodeDied)Error\b")  # Ray, of a process that is no more, whatever took it
# what Python raises where the process at the other end of a socket or pipe is no more, whatever took it
PEER_GONE = lazy_re(r"(?:ConnectionReset|ConnectionAborted|BrokenPipe)Error\b")
NAMELESS = ("peer gone", "error line", "signal code", "unnamed", "exit code")  # lines that say that it failed, and hardly of what
SIGNAL_CODE = lazy_re(r"exit ?code\W{1,4}(?:-[1-9]|1(?:29|[34]\d)\b)", re.I)
LAUNCHER = lazy_re(r"\bSignalException\b|got signal: \d+")  # torch.distributed.elastic, which was itself told to stop
ABORT = lazy_re(r"SIGABRT|\bsignal:? 6\b|exitcode\s*+:\s*+-6\b|\bAborted\b", re.I)  # what a process does to itself
CRASHING_SIGNAL = lazy_re(
    r"SIG(?:SEGV|BUS|ABRT|ILL|FPE|KILL)|segmentation fault|bus error|abort|killed(?! by signal: (?:Terminated|Interrupt|Hangup))|core dumped|exit ?code\W{1,4}(?:-(?:4|6|7|8|9|11)|13[24679])\b",
    re.I,
)
OWN_SIGNAL = lazy_re(
    r"SIG(?:SEGV|BUS|ABRT|ILL|FPE)\b|segmentation fault|bus error|illegal instruction|floating point exception|\bsignal:? ?(?:4|6|7|8|11)\b|exit ?code\W{1,4}(?:-(?:4|6|7|8|11)|13[24569])\b",
    re.I,
)  # what a program brings on itself: signal(7)
# of a value that is no number: a guard, or tensorboardX of what it is given to log; not a death
GOES_ON = lazy_re(r"\bskip(?:s|ping|ped)\b|\bignor(?:ing|ed)\b|found in input tensor", re.I)
RANK = lazy_re(r"\b(?:local_)?rank\s*[:=]?\s*(\d+)\b", re.I)
UNNAMED = "traceback without its last line"  # stacks that a watchdog printed, or a text that was cut: no exception is named
ORDER = (
    "out of memory",
    "disk",
    "hardware",
    "interrupt",
    "exception",
    "scheduler",
    "signal",
    "hang",
    "peer gone",
    "error line",
    "signal code",
    "unnamed",
    "exit code",
)  # causes before consequences, names before the nameless


def kind(e: Event) -> str | None:
    """The kind of ending of which an event speaks, or None where it tells none."""
    text, of = str(e["text"]), e["kind"]
    if e["level"] != "error" and not LAUNCHER.search(text):
        return None
    if of == "nonfinite" and GOES_ON.search(text):
        return None
    if CONSEQUENCE.search(text) and of != "oom":
        return None if not EXIT_CODE.search(text) else "signal code" if SIGNAL_CODE.search(text) else "exit code"
    tests: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("out of memory", lambda: of == "oom" or (of in ("scheduler", "traceback") and MEMORY.search(text))),
        ("disk", lambda: of in ("traceback", "warning", "oom") and DISK.search(text)),
        ("hardware", lambda: of == "hardware" or (of == "scheduler" and HARDWARE.search(text))),
        ("interrupt", lambda: of in ("signal", "traceback") and INTERRUPT.search(text)),
        ("signal", lambda: of in ("traceback", "warning") and BY_SIGNAL.search(text)),
        ("error line", lambda: of in ("traceback", "warning") and GONE.search(text)),
        ("peer gone", lambda: of == "traceback" and PEER_GONE.match(text)),
        ("exception", lambda: of in ("traceback", "nonfinite")),
        ("scheduler", lambda: of == "scheduler" and OUTSIDE.search(text)),
        ("signal", lambda: of == "signal"),
        ("hang", lambda: of in ("nccl", "hang")),
        ("error line", lambda: of == "warning" and ERROR_LINE.search(text)),
    )
    found = next((name for name, holds in tests if holds()), None)
    return "unnamed" if found == "exception" and text.startswith(UNNAMED) else found


def of_last_launch(fatal: list[tuple[str, Event]]) -> list[tuple[str, Event]]:
    """Without those of launches before it in the same file: what stands above the first word on the last job where a scheduler ended several, and above
    an error of syntax without a stack, by which Python says that it could not begin the program."""
    since: dict[str, int] = {}
    jobs: dict[str, str] = {}
    for kind, e in fatal:
        text, source, at = str(e["text"]), str(e["source"]), e["at"] or 0
        if kind == "error line" and NOT_BEGUN.match(text):
            since[source] = at
        elif kind == "scheduler" and (job := JOB.search(text)) is not None and jobs.setdefault(source, job[1]) != job[1]:
            since[source], jobs[source] = at, job[1]
    return [(kind, e) for kind, e in fatal if (e["at"] or 0) >= since.get(str(e["source"]), 0)]


def means(kind: str, e: Event) -> str:
    """The kind of ending that a kind of line stands for: a code above 128, or below 0, is a signal's."""
    if kind == "signal code":
        return "signal"
    return "exception" if kind in NAMELESS else kind


def telling(kind: str, events: list[Event]) -> Event:
    """The event to quote: the last of a chain of exceptions in the file that failed first, else the first of its kind."""
    timed = [e for e in events if e["time"] is not None]
    first = min(timed, key=lambda e: float(e["time"])) if timed and len(timed) == len(events) else events[0]
    if kind == "exception":
        return [e for e in events if e["source"] == first["source"]][-1]
    if kind == "signal":
        return next((e for e in events if CRASHING_SIGNAL.search(str(e["text"]))), first)
    return first


def rank(run: Run, e: Event) -> int | None:
    """The rank that a line was written by, or names; in the launcher's table of failures another row names it."""
    text = str(e["text"])
    named = RANK.search(text) or (RANK.search(_row_above(run, e)) if IN_TABLE.search(text) else None)
    return e["rank"] if e["rank"] is not None else int(named[1]) if named else None


def _row_above(run: Run, e: Event) -> str:
    """The row of the launcher's table of failures that names the rank."""
    rows = [x for x in endings.events(run, "warning") if x["source"] == e["source"] and 0 < (e["at"] or 0) - (x["at"] or 0) <= TABLE_ROWS]
    return str(rows[-1]["text"]) if rows else ""


def words(e: Event) -> str:
    """The line itself, without the frame that a traceback's event ends with; where no exception is named, the frame is all there is."""
    text = str(e["text"]).strip()
    if text.startswith(UNNAMED):
        return re.sub(r"  \[([^\[\]]*)\]$", r", in \1", text)[:300]
    lines = re.sub(r"  \[[^\[\]]*\]$", "", text).splitlines()
    return lines[-1][:300] if lines else ""


def of_device(kind: str, says: str) -> bool:
    """Whether a line speaks of the device, of CUDA or of NVIDIA's libraries, and names no device that failed."""
    return not HARDWARE.search(says) and (kind == "hardware" or bool(CUDA.search(says) or INSIDE.search(says)))
