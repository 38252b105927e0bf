"""Speed of reading, as ratios to the peers: CPU time and peak memory, all readers interleaved in one run.

    python benchmarks/ingest.py [--quick] [--only WORD] [--rounds N] [--folder KEEP] [--markdown docs/speed.md]

Each reading is a process of its own. CPU time is user and system of that process and of those it starts, from after the
imports to when all numbers are in memory, and in the rows of whole processes from the interpreter's start; the order turns
from round to round. A ratio is of two readings of one round; the table shows the median of the rounds, and the least and
the most. Before any ratio is printed, all readers of a workload must agree on how many numbers there are and on their sum.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
QUICK = 0.05  # of the full size


@dataclass(frozen=True)
class Target:
    """``ours`` must take at most ``limit`` of what ``peer`` takes: in CPU time, (``whole``) with the start of Python and all imports,
    or (``memory``) at its peak."""

    workload: str
    peer: str
    limit: float
    ours: str = "ours"
    memory: bool = False
    whole: bool = False
    rounds: int = 100  # at most: some peers take minutes


TARGETS = [
    Target("scalars 1M", "data_server", 1 / 3),
    Target("scalars 1M", "tbparse", 1 / 40, rounds=1),
    Target("scalars 1M", "event_accumulator", 1 / 40, rounds=1),
    Target("scalars 5M", "data_server", 1 / 3),
    Target("scalars 5M", "tbparse", 1 / 40, rounds=1),
    Target("scalars 5M", "data_server", 1 / 3, whole=True),
    Target("scalars 5M", "data_server", 1 / 2, memory=True),
    Target("scalars 5M", "tbparse", 1 / 2, memory=True, rounds=1),
    Target("shuffled 1M", "data_server", math.inf),  # for comparison: no rhythm
    Target("tensors 1M", "data_server", 1 / 4),
    Target("tensors 1M", "data_server", 1 / 4, whole=True),
    Target("tensors 1M", "tbparse_tensors", 1 / 60, rounds=1),
    Target("mixed", "data_server", 1),
    Target("mixed", "tbparse", 1 / 80, rounds=1),
    Target("300 runs", "data_server", 1 / 1.6),
    Target("300 runs", "event_accumulator", 1 / 35, rounds=1),
    Target("wandb", "wandb_rows", 1 / 4),
    Target("wandb", "wandb_rows", 1 / 4, whole=True),
    Target("wandb", "wandb_leet", 1 / 12, rounds=1),
    Target("trainer_state", "json_loads", 1.6),
    Target("trainer_state NaN", "json_loads", 1.6),
    Target("trainer_state NaN, torn", "json_loads", 1.6),
    Target("jsonl", "json_lines", 0.65),
    Target("jsonl", "arrow_json", math.inf),  # for comparison; it refuses a torn line
    Target("jsonl NaN, torn", "json_lines", 0.65),
    Target("megatron", "regex_lines", 1.5, ours="ours_megatron"),
    Target("scalars 1M", "ours", 3, ours="ours_analyze"),
]
DAMAGED = ("flipped 1M", "scalars 1M", 2.0)  # one of ours against the other


@dataclass(frozen=True)
class Measured:
    reader: str
    count: int
    total: float
    cpu: float  # seconds, of the reading
    whole: float  # seconds, of the process
    peak: float  # MB


def measure(reader: str, path: Path) -> Measured:
    """One reading in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--read", reader, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=HERE.parent,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
    )
    return Measured(reader, **json.loads(done.stdout.splitlines()[-1]))


def _read(reader: str, path: Path) -> None:
    """What the child process does."""
    sys.path.insert(0, str(HERE.parent))
    import peers

    read = getattr(peers, reader)()
    before = _cpu()
    count, total = read(path)
    cpu = _cpu() - before
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"count": count, "total": total, "cpu": cpu, "whole": _cpu(), "peak": peak / 1024}))


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def generate(workload: str, folder: Path, scale: float) -> tuple[int, float] | None:
    """The workload's folder is filled once; -> count and sum that its readers must find."""
    truth = folder / f"{workload} {scale}.json"
    if not truth.exists():
        command = [sys.executable, str(HERE / "workloads.py"), workload, str(folder / f"{workload} {scale}"), str(scale)]
        truth.write_text(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    found = json.loads(truth.read_text())
    return None if found is None else (found[0], found[1])


def agree(workload: str, truth: tuple[int, float], found: Measured) -> None:
    """Raises SystemExit where a reader found other numbers than were written."""
    same = math.isnan(found.total) or math.isclose(found.total, truth[1], rel_tol=1e-6)
    if (found.count != truth[0] and not math.isnan(found.total)) or not same:
        raise SystemExit(f"{workload}: {found.reader} found {found.count} numbers, sum {found.total}; written were {truth}")


def run(workloads: list[str], folder: Path, scale: float, rounds: int, slow: bool = True) -> Iterator[dict[str, Any]]:
    """-> a row of the table for each target of these workloads."""
    plain: dict[str, list[Measured]] = {}
    for workload in workloads:
        targets = [t for t in TARGETS if t.workload == workload and (slow or t.rounds > 1)]
        truth = generate(workload, folder, scale)
        path = folder / f"{workload} {scale}"
        readers = list(dict.fromkeys([n for t in targets for n in (t.ours, t.peer)] or ["ours"]))
        most = {r: max((t.rounds for t in targets if r in (t.ours, t.peer)), default=rounds) for r in readers}
        found: list[dict[str, Measured]] = []
        for i in range(rounds):
            turn = readers[i % len(readers) :] + readers[: i % len(readers)]
            found.append({r: measure(r, path) for r in turn if i < most[r]})
            for m in found[-1].values():
                if truth is not None:
                    agree(workload, truth, m)
        plain[workload] = [f["ours"] for f in found if "ours" in f]
        for t in targets:
            pairs = [(f[t.ours], f[t.peer]) for f in found if t.peer in f and t.ours in f]
            yield _row(t, pairs)
        if workload == DAMAGED[0] and DAMAGED[1] in plain:
            pairs = list(zip(plain[DAMAGED[0]], plain[DAMAGED[1]], strict=False))
            yield _row(Target(workload, "ours, undamaged", DAMAGED[2]), pairs)


def _row(target: Target, pairs: list[tuple[Measured, Measured]]) -> dict[str, Any]:
    ours, peer = ([m.peak if target.memory else m.whole if target.whole else m.cpu for m in side] for side in zip(*pairs, strict=True))
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    return {"target": target, "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
            "ours": statistics.median(ours), "peer": statistics.median(peer), "rounds": len(ratios)}  # fmt: skip


HEADER = ("workload", "ours", "against", "", "", "ratio", "least to most", "target", "")


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A ratio below one is written as how many times less we take."""
    t: Target = row["target"]
    unit = "MB" if t.memory else "s"
    digits = 0 if t.memory else 2
    verb = {"ours_analyze": "analyze and report"}.get(t.ours, "memory" if t.memory else "whole process" if t.whole else "read")
    return (t.workload, verb, t.peer.replace("_", " "), f"{row['ours']:.{digits}f} {unit}", f"{row['peer']:.{digits}f} {unit}",
            times(row["ratio"]), f"{times(row['least'])} to {times(row['most'])}" if row["rounds"] > 1 else "once",
            *(("", "") if t.limit == math.inf else (times(t.limit), "held" if row["ratio"] <= t.limit else "missed")))  # fmt: skip


def times(ratio: float) -> str:
    return f"1/{1 / ratio:.1f}" if ratio < 0.5 else f"{ratio:.2f}"


def table(rows: list[tuple[str, ...]]) -> str:
    wide = [max(len(row[i]) for row in [HEADER, *rows]) for i in range(len(HEADER))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, wide, strict=True)) + " |" for row in [HEADER, *rows]]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in wide) + "|")
    return "\n".join(lines)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} shared cores ({platform.machine()}), {memory:.0f} GiB, Python {platform.python_version()}"


def page(rows: list[tuple[str, ...]], rounds: int, scale: float) -> str:
    from importlib.metadata import version

    packages = ("numpy", "polars", "pyarrow", "orjson", "tensorboard", "tensorboard-data-server", "tbparse", "wandb")
    versions = ", ".join(f"{p} {version(p)}" for p in packages)
    size = "" if scale == 1 else f" Workloads are {scale:g} of their full size."
    return f"""# Speed

Written by `make bench` (`python benchmarks/ingest.py --markdown docs/speed.md`) on {datetime.date.today():%Y-%m-%d}.
Machine: {machine()}, page cache warm, other work running. {versions}.

CPU time (user and system, children included), from after the imports until every number is in memory; for us that is a
materialized Arrow table, both checksums of every record verified, names, attempts and copies worked out; `whole process` counts
the start of Python and all imports on both sides. Median of
{rounds} rounds in which all readers of a workload took turns, each in its own process; slow peers ran once. `1/3.0` means
that we take a third. All readers of a row found the same number of values and the same sum.{size}

{table(rows)}

* `data server` is TensorBoard's native one (Rust): load, then read all scalars out over its gRPC. It does not verify the
  checksums of payloads.
* `wandb rows` is the `DataStore` loop of wandb 0.29, re-stated in 30 lines (wandb 0.31 has none), with protobuf and json.
  `wandb leet` is `wandb leet inspect --json` and `json.loads` of what it prints.
* `json loads`, `json lines` and `regex lines` are bare loops: they build no table. Of a torn file `json loads` is given
  the whole entries.
* `shuffled 1M` is `scalars 1M` with the tags of each step in another order. A loop that logs the same tags at every step, as nearly all do, is
  read as a table; these records are not.
* `mixed` has {20_000:,} histograms, of which we compute quantiles; the data server keeps a sample of them as they are.
"""


def main() -> None:
    if sys.argv[1:2] == ["--read"]:
        return _read(sys.argv[2], Path(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"workloads of {QUICK:g} of their size, one round")
    parser.add_argument("--only", metavar="WORD", default="", help="workloads whose name holds the word")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fast-peers", action="store_true", help="leave out the peers that take minutes")
    parser.add_argument("--folder", type=Path, help="keep the workloads here, and use those that are there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as a page")
    options = parser.parse_args()
    from workloads import WORKLOADS

    scale, rounds = (QUICK, 1) if options.quick else (1.0, options.rounds)
    chosen = [w for w in WORKLOADS if options.only in w]
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for row in run(chosen, folder, scale, rounds, slow=not options.fast_peers):
            rows.append(cells(row))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print(table(rows))
    if options.markdown:
        options.markdown.write_text(page(rows, rounds, scale))
    return None


if __name__ == "__main__":
    main()
