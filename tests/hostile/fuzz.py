"""Fuzzes one parser: ``python tests/hostile/fuzz.py PARSER [--seconds N] [--runs N] [--seed N] [--atheris]``.

PARSER is the name of a module of parsers/ that reads a format. A finding is any exception but OSError, or more than ten
seconds of CPU on an input of some kilobytes; the input is written to the current folder. Inputs are mutations of the
small files in ``seeds/PARSER``. Without ``--atheris`` the mutations are our own and blind, the same for the same seed, so
that the tests can run some; with it libFuzzer picks those that reach new code, and keeps them in ``--keep FOLDER``.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
SUFFIX = {"tensorboard": "events.out.tfevents.1.h", "wandb_offline": "run-x.wandb", "csv_log": "x.csv", "jsonl": "x.jsonl", "json_log": "history.json",
          "trainer_state": "trainer_state.json", "config_file": "config.yaml", "console": "train.log", "parquet_log": "x.parquet", "mlflow_sqlite": "mlflow.db",
          "checkpoint_files": "model.safetensors", "mlflow_files": "metrics/loss", "wandb_folder": "wandb-summary.json"}  # fmt: skip
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


def target(name: str, folder: Path) -> Callable[[bytes], None]:
    """What is done with each input: claimed, parsed to the end, every batch validated."""
    import parsers
    from parsers.tables import HEAD_BYTES

    parser: ModuleType = next(m for m in parsers.modules() if parsers.name_of(m) == name)
    path = folder / SUFFIX.get(name, "x.bin")
    path.parent.mkdir(parents=True, exist_ok=True)

    def once(data: bytes) -> None:
        path.write_bytes(data)
        try:
            parsers.claimants(path, data[:HEAD_BYTES])
            for item in parser.parse(path):
                if hasattr(item, "num_rows"):
                    item.validate(full=True)
        except OSError:
            pass

    return once


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
            once = target(name, Path(folder))
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


def guided(name: str, seconds: int, keep: str | None) -> None:
    """libFuzzer through atheris; does not return. It writes what crashes to the current folder."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["parsers"]):
        import parsers

        parsers.modules()
    folder = tempfile.mkdtemp(dir=_memory())
    known = Path(keep or tempfile.mkdtemp())
    known.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-max_len=65536", "-timeout=60", "-rss_limit_mb=4096", "-print_final_stats=1", "-detect_leaks=0"]
    once = target(name, Path(folder))

    def each(data: bytes) -> None:
        once(data)

    arguments: list[Any] = [sys.argv[0], *options, str(known), str(HERE / "seeds" / name)]
    atheris.Setup(arguments, each)
    atheris.Fuzz()


def main() -> int:
    sys.path.insert(0, str(HERE.parents[1]))
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("parser")
    words.add_argument("--seconds", type=int, default=60)
    words.add_argument("--runs", type=int, default=1 << 60)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--atheris", action="store_true")
    words.add_argument("--keep")
    given = words.parse_args()
    if given.atheris:
        guided(given.parser, given.seconds, given.keep)
    done, found = run(given.parser, seconds=given.seconds, runs=given.runs, seed=given.seed)
    print(f"{given.parser}: {done} executions, {len(found)} findings")
    for i, (what, data) in enumerate(found):
        Path(f"finding-{given.parser}-{i}").write_bytes(data)
        print(f"  {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
