"""Where memory is limited (``ulimit -v``, a batch system), the command works in a child, and an end of it gets a sentence.

Native libraries do not raise where memory runs out: polars aborts, OpenBLAS ends the process, a library that is only half
loaded leaves names undefined. So below what they need nothing is begun, above it they are told to take little, and who
watches from outside says what an abort means.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence

LEAST = 750 << 20  # bytes; of a sample of 600 steps `analyze` takes 664 MB of addresses with the settings below (2450 without)
ENOUGH = 16 << 30  # bytes; threads and arenas take addresses by the core (72 MB each, of which 128 cores have many)
_SMALL = {  # a thread of a pool takes a stack and an arena of 64 MB, a pool of its own reserves gigabytes
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "ARROW_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "_RJEM_MALLOC_CONF": "background_thread:false",
    "MALLOC_ARENA_MAX": "1",
}
_M_ARENA_MAX = -8  # malloc.h of glibc
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_BARE = {"--help", "-h", "--version", "explain"}  # load no native library
_DONE = b"."


def limit() -> int | None:
    """Bytes of address space that the process may have, where somebody set a number that matters."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    set_ = [n for n in soft if n != resource.RLIM_INFINITY]
    return min(set_) if set_ and min(set_) < ENOUGH else None


def sentence() -> str:
    """What to say where memory was not enough."""
    most = limit()
    if most is None:
        return "forensics: there is not enough memory"
    return f"forensics: memory is limited to {most >> 20} MB (`ulimit -v`, or your batch system), which is not enough here"


def is_lack(e: BaseException) -> bool:
    """Whether an error says, in one of the ways libraries have, that memory ran out."""
    text = str(e)
    limited = limit() is not None and ("start new thread" in text or "failed to map segment" in text or "ThreadPoolBuild" in text)
    return isinstance(e, MemoryError) or limited


def is_our_process() -> bool:
    """Was Python started to run this command, and nothing else? A program that calls it in its own process is not forked."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    script = os.path.basename(getattr(main, "__file__", None) or "")
    return script == "forensics" or (spec is not None and spec.name == "forensics.__main__")


def watched(args: Sequence[str]) -> None:
    """Returns in the process that has to do the work: this one, or a child of it if memory is limited."""
    most = limit()
    if most is None or _BARE & set(args):
        return
    if most < LEAST:
        _end(f"{sentence()}: the libraries alone take {LEAST >> 20} MB")
    for name, value in _SMALL.items():
        os.environ.setdefault(name, value)
    done, doing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _prepare(doing)
        return
    for forwarded in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(forwarded, lambda number, _: os.kill(child, number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    _, status = os.waitpid(child, 0)
    os.set_blocking(done, False)
    try:
        finished = os.read(done, 1) == _DONE
    except BlockingIOError:  # somebody else still has the other end
        finished = False
    code = os.waitstatus_to_exitcode(status)
    if finished:
        os._exit(code)
    if -code in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        os._exit(128 - code)
    _end(f"{sentence()}: {'the command was ended' if code < 0 else 'a library gave up'}")


def _prepare(doing: int) -> None:
    """The child: small pools; what libraries print where they fail goes nowhere, what we say stays."""
    import ctypes

    atexit.register(os.write, doing, _DONE)
    sys.excepthook = lambda *_: os._exit(1)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 1)
    if hasattr(libc, "prctl"):  # who kills the command kills its work
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(text: str) -> None:
    os.write(2, f"{text}\n".encode())
    os._exit(1)
