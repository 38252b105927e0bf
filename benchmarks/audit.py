"""Measures `forensics audit`: against `analyze` in a loop, against ingest and analysis alone, and its memory.

    python benchmarks/audit.py [--runs 1000] [--memory 100,2000] [--bad 0.1]

The workload is small runs of 5 000 scalars each (TensorBoard event files of 1 000 steps, 5 tags; a share of them spikes),
written anew with a fixed seed. Printed are wall time and CPU time (of all processes), because other work on the machine changes the one and
hardly the other. Two loops, each in one process on one core: `analyze` as the command does it, page and case included, and ingest +
analysis alone, which writes nothing (the harder peer: the audit's throughput is set against both).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
ROOT = Path(__file__).resolve().parent.parent
TAGS = ("train/loss", "train/grad_norm", "train/lr", "train/tokens_per_sec", "eval/loss")
STEPS = 1000


def write_runs(folder: Path, count: int, bad: float) -> None:
    """`count` folders with one event file each; a share `bad` has a spike that does harm."""
    import workloads
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    for i in range(count):
        rng = random.Random(i)
        spike = rng.randrange(300, 900) if rng.random() < bad else None
        with workloads.event_file(folder / f"run{i:04d}").open("wb") as f:
            f.write(workloads.tfrecord(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString()))
            for step in range(STEPS):
                loss = 1.5 + 2 * 0.5 ** (step / 200) + 0.02 * rng.gauss(0, 1)
                if spike is not None and spike <= step < spike + 30:
                    loss += 3.0
                rate = 1e-3 * min(1, (step + 1) / 50)
                for tag, value in zip(TAGS, (loss, 1 + 0.1 * rng.random(), rate, 5e4 + 100 * rng.random(), loss + 0.05), strict=True):
                    event = Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))
                    f.write(workloads.tfrecord(event.SerializeToString()))


LOOP = """
import sys, os, pathlib
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
import forensics
from forensics import output
root, out, pages = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3] == "pages"
if pages:
    from reports import html
for run in sorted(root.iterdir()):
    case = forensics.analyze(str(run))
    if pages:
        document = case.to_json()
        output.write_all([(out / (run.name + ".html"), html.render(document)), (out / (run.name + ".case.json"), output.case_json(document))])
"""


def timed(command: list[str], cwd: Path | None = None) -> tuple[float, float, float]:
    """(wall seconds, CPU seconds of it and its children, highest memory of all its processes at once in MB)."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=cwd)
    peak = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, peak), daemon=True)
    watcher.start()
    if process.wait() != 0:
        raise SystemExit(f"{command} failed")
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    watcher.join(2)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak[0]


def _watch(process: subprocess.Popen[bytes], peak: list[float]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], sum(_rss(p) for p in _tree(process.pid)))
        time.sleep(0.2)


def _tree(pid: int) -> list[int]:
    found = [pid]
    for p in found:
        try:
            found += [int(c) for t in Path(f"/proc/{p}/task").iterdir() for c in (t / "children").read_text().split()]
        except OSError:
            continue
    return found


def _rss(pid: int) -> float:
    """Resident memory of its own, shared pages counted by share, in MB."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024
    except (OSError, ValueError):
        return 0.0


def audit(runs: Path, out: Path) -> tuple[float, float, float]:
    code = "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"
    return timed([sys.executable, "-c", code, "-q", "audit", str(runs), "--out", str(out), "--jobs", "2", "--force"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--memory", default="100,2000", help="how many runs memory is measured with; empty: not at all")
    parser.add_argument("--bad", type=float, default=0.1)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_runs(folder / "runs", options.runs, options.bad)
        for what in ("pages", "alone"):
            (folder / what).mkdir()
            wall, cpu, _ = timed([sys.executable, "-c", LOOP, str(folder / "runs"), str(folder / what), what])
            results |= {f"{what} wall": wall, f"{what} cpu": cpu}
            shutil.rmtree(folder / what)
        wall, cpu, _ = audit(folder / "runs", folder / "audit")
        results |= {"audit wall": wall, "audit cpu": cpu}
        results["throughput over analyze in a loop"] = results["pages wall"] / wall
        results["throughput over analysis alone"] = results["alone wall"] / wall
        results["cpu over ingest and analysis alone"] = cpu / results["alone cpu"]
        for count in [int(n) for n in options.memory.split(",") if n]:
            shutil.rmtree(folder)
            write_runs(folder / "runs", count, options.bad)
            results[f"memory MB at {count}"] = audit(folder / "runs", folder / "audit")[2]
    for key, value in results.items():
        print(f"{key:<40} {value:10.2f}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
