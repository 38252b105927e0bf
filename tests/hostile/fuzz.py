"""Fuzzes one parser: ``python tests/hostile/fuzz.py PARSER [--seconds N] [--runs N] [--seed N] [--atheris]``.

PARSER is a target of targets.py: a module of parsers/ that reads a format, or another reader. A finding is any exception but
those that are answers, or more than ten seconds of CPU on an input of some kilobytes; the input is written to the current
folder. Inputs are mutations of the small files in ``seeds/PARSER``. Without ``--atheris`` the mutations are our own and blind, the same for the same seed, so
that the tests can run some; with it libFuzzer picks those that reach new code, and keeps them in ``--keep FOLDER``
(``--smallest FOLDER`` instead copies into FOLDER the fewest of them that reach the same code).
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from hostile import targets  # noqa: E402  (where this file is run by itself, it has to be found first)

_SPLICES = (b"\0" * 16, b"\xff" * 8, b"\x80" * 10, b"{", b"}", b"[[[[", b'"', b"\\", b"\n", b"\r", b",,,,", b": ", b"- ", b"nan", b"1e999", b"-9223372036854775808",
            b"9" * 30, b"\xef\xbb\xbf", b"\xff\xfe", b"&a *a", b"!!python/name:os.system", b"Namespace(", b"{'loss': ", b"step 5 loss 1", b"%|", b"\x1b[0m")  # fmt: skip


def mutated(data: bytes, others: list[bytes], rng: random.Random, most: int = 1 << 16) -> bytes:
    """One to six changes: bits, bytes, blocks moved, doubled, cut out or taken from another seed, odd pieces put in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        n = len(out)
        at, size = rng.randrange(n + 1), rng.choice((1, 2, 4, 8, 16, 64, 256, 1024))
        kind = rng.randrange(9)
        if kind == 0 and n:
            out[min(at, n - 1)] ^= 1 << rng.randrange(8)
        elif kind == 1 and n:
            out[min(at, n - 1)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = out[at : at + size] * rng.choice((1, 2, 50))
        elif kind == 4:
            out[at:at] = rng.choice(_SPLICES) * rng.choice((1, 1, 3, 200))
        elif kind == 5:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            out[at : at + rng.choice((0, size))] = other[start : start + size]
        elif kind == 6:
            out[at : at + size] = rng.randbytes(min(size, n - at))
        elif kind == 7:
            del out[at:]
        else:
            to = rng.randrange(n + 1)
            block = bytes(out[at : at + size])
            out[to : to + len(block)] = block
    return bytes(out[:most])


def seeds(name: str) -> list[bytes]:
    return [p.read_bytes() for p in sorted((HERE / "seeds" / name).glob("*"))]


def run(name: str, *, seconds: float = 1e9, runs: int = 1 << 60, seed: int = 0) -> tuple[int, list[tuple[str, bytes]]]:
    """Blind mutations -> executions, and findings (what, input), each kind once."""
    rng, known = random.Random(seed), seeds(name)
    found: dict[str, bytes] = {}
    began, done = time.monotonic(), 0

    def late(*_: object) -> None:
        raise TimeoutError("more than ten seconds of CPU")

    previous = signal.signal(signal.SIGVTALRM, late)
    try:
        with tempfile.TemporaryDirectory(dir=_memory()) as folder:
            once = targets.target(name, Path(folder))
            while done < runs and time.monotonic() - began < seconds:
                data = mutated(rng.choice(known), known, rng)
                signal.setitimer(signal.ITIMER_VIRTUAL, 10)
                try:
                    once(data)
                except Exception as e:
                    found.setdefault(_kind(e), data)
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                done += 1
    finally:
        signal.signal(signal.SIGVTALRM, previous)
    return done, list(found.items())


def _kind(error: BaseException) -> str:
    """The exception and where it came from: two of the same are one finding."""
    frame = error.__traceback__
    where = ""
    while frame is not None:
        where = f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return f"{type(error).__name__} at {where}: {str(error)[:100]}"


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def guided(name: str, seconds: int, keep: str | None, smallest: str | None = None) -> None:
    """libFuzzer through atheris; does not return. It writes what crashes to the current folder."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["parsers", "forensics"]):
        import parsers
        import parsers.checkpoints

        for package in (parsers, parsers.checkpoints):
            for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                importlib.import_module(module.name)
        once = targets.target(name, Path(tempfile.mkdtemp(dir=_memory())))
    known = Path(keep or tempfile.mkdtemp())
    known.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        "-max_len=65536",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
        "-detect_leaks=0",
    ]
    folders = [str(known), str(HERE / "seeds" / name)]
    if smallest:
        Path(smallest).mkdir(parents=True, exist_ok=True)
        options, folders = ["-merge=1", "-timeout=60"], [smallest, *folders]

    def each(data: bytes) -> None:
        once(data)

    arguments: list[Any] = [sys.argv[0], *options, *folders]
    atheris.Setup(arguments, each)
    atheris.Fuzz()


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("parser")
    words.add_argument("--seconds", type=int, default=60)
    words.add_argument("--runs", type=int, default=1 << 60)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--atheris", action="store_true")
    words.add_argument("--keep")
    words.add_argument("--smallest")
    given = words.parse_args()
    if given.atheris:
        guided(given.parser, given.seconds, given.keep, given.smallest)
    done, found = run(given.parser, seconds=given.seconds, runs=given.runs, seed=given.seed)
    print(f"{given.parser}: {done} executions, {len(found)} findings")
    for i, (what, data) in enumerate(found):
        Path(f"finding-{given.parser}-{i}").write_bytes(data)
        print(f"  {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
