"""How many promises we, tbparse and EventAccumulator keep on the damaged event files of tests/hostile.

``python benchmarks/hostile.py`` prints the table of docs/promises.md. Each reader gets each file in a child of its own
with a minute of CPU and 6 GiB of address space, and is held to what any reader could do: it ends without an exception
(1), every intact record is there and nothing else (2), and it says in some way that something was lost (3: a gap, a
warning, a log line; counted only where something was). Markup, secrets and outputs are not asked of the peers.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import os
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

Points = list[tuple[int, float]]
Reader = Callable[[Path, str], tuple[Points, bool]]  # -> points of a tag, was a loss told of


def ours(folder: Path, tag: str) -> tuple[Points, bool]:
    import parsers

    runs = parsers.read_all(folder)
    rows = [r for run in runs for r in run.tables["metrics"].to_pylist() if r["tag"] == tag]
    return [(r["step"], r["value"]) for r in rows], any(run.gaps for run in runs)


def tbparse(folder: Path, tag: str) -> tuple[Points, bool]:
    from tbparse import SummaryReader

    frame = SummaryReader(str(folder)).scalars
    frame = frame[frame["tag"] == tag] if len(frame) else frame
    return ([] if not len(frame) else list(zip(frame["step"].tolist(), frame["value"].tolist(), strict=True))), False


def accumulator(folder: Path, tag: str) -> tuple[Points, bool]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}, purge_orphaned_data=False)
    found.Reload()
    if tag in found.Tags()["scalars"]:
        return [(e.step, e.value) for e in found.Scalars(tag)], False
    return [], False


READERS: dict[str, Reader] = {"forensics": ours, "tbparse": tbparse, "EventAccumulator": accumulator}


def kept(case: object, read: Reader) -> list[bool]:
    """Of one case and reader, in a child: the promises that are asked, each kept or not."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(source)
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        os.write(sink, json.dumps(_kept(case, read)).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else [False] * _asked(case)


def _asked(case: object) -> int:
    return 2 + bool(case.lost)  # type: ignore[attr-defined]


def _kept(case: object, read: Reader) -> list[bool]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        run = Path(folder) / "run"
        run.mkdir()
        case.build(run)  # type: ignore[attr-defined]
        said = io.StringIO()
        for name in (None, "tensorboard"):
            logging.getLogger(name).addHandler(logging.StreamHandler(said))
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                parts = {tag: read(run, tag) for tag in case.kept}  # type: ignore[attr-defined]
        except BaseException:
            return [False] * _asked(case)
        whole = all(_same(parts[tag][0], wanted) for tag, wanted in case.kept.items())  # type: ignore[attr-defined]
        told = (
            bool(said.getvalue().strip()) or any(issubclass(w.category, UserWarning) for w in warned) or any(t for _, t in parts.values())
        )
        return [True, whole] + ([told] if case.lost else [])  # type: ignore[attr-defined]


def _same(found: Points, wanted: Points) -> bool:
    def key(p: tuple[int | None, float]) -> tuple[int, str]:
        return (p[0] or 0, "nan" if math.isnan(p[1]) else repr(float(p[1])))

    return sorted(map(key, found)) == sorted(map(key, wanted))


def main() -> None:
    from hostile import event_files

    damaged = [c for c in event_files.cases() if c.kept and c.grow is None and "200k" not in c.name and "sparse" not in c.name]
    names = ["ends without an exception", "every intact record, nothing else", "says that something was lost"]
    counts = {reader: [0, 0, 0] for reader in READERS}
    whole = dict.fromkeys(READERS, 0)
    for case in damaged:
        for name, read in READERS.items():
            held = kept(case, read)
            whole[name] += all(held)
            counts[name] = [n + (held[i] if i < len(held) else 0) for i, n in enumerate(counts[name])]
            if not all(held):
                print(name, case.name, held, file=sys.stderr)
    of = [len(damaged), len(damaged), sum(bool(c.lost) for c in damaged)]
    print("| promise | cases | " + " | ".join(READERS) + " |\n|---|---:|" + "---:|" * len(READERS))
    for i, promise in enumerate(names):
        print(f"| {promise} | {of[i]} | " + " | ".join(str(counts[r][i]) for r in READERS) + " |")
    print(f"| all that are asked | {len(damaged)} | " + " | ".join(str(whole[r]) for r in READERS) + " |")


if __name__ == "__main__":
    main()
