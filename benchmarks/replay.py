"""Replays runs with planted faults and scores what comes out: `python benchmarks/replay.py [--root DIR] [--write] [NAME...]`.

Plants the runs first where DIR does not hold them (a few minutes on two cores). Prints one line a run and the score; --write
puts both into docs/replay.md between its marks.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from forensics import at_path
from forensics.replays import into_case
from forensics.replays.client import Worker
from forensics.replays.session import Options

HERE = Path(__file__).resolve().parent
PLANTING = HERE / "replayable" / "plants.py"
DOCS = HERE.parent / "docs" / "replay.md"
ACCUSES = ("data", "state x data")


def one(root: Path, truth: dict[str, Any], device: str) -> dict[str, Any]:
    folder = root / "runs" / truth["id"]
    begun = time.perf_counter()
    options = Options(folder / "train.py", sys.executable, device, threads=1, **truth["replay"])
    case, result = into_case.replayed(at_path.read(str(folder)), options, None)
    named = {c["step"]: sorted(c["samples"]) for c in case.culprits}
    planted = {c["step"]: sorted(c["samples"]) for c in truth["culprits"]}
    told = result.document
    looked = told.get("samples", [])
    return {
        "id": truth["id"], "planted": truth["verdict"], "verdict": told["verdict"], "why": told.get("why", told.get("trouble", "")),
        "right": told["verdict"] == truth["verdict"], "culprits": len(planted), "steps_exact": set(named) == set(planted),
        "samples_exact": sum(named.get(s) == rows for s, rows in planted.items()), "accused": len(set(named) - set(planted)),
        "spent": told["steps_replayed"], "bound": told.get("bound"), "window": told.get("window"),
        "planted_samples": sum(map(len, planted.values())), "sample_steps": max((s["steps"] for s in looked), default=None), "batch": looked[0]["of"] if looked else None,
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def line(r: dict[str, Any]) -> str:
    mark = "" if r["right"] and r["steps_exact"] and r["samples_exact"] == r["culprits"] else " **miss**"
    found = f"{r['samples_exact']} of {r['culprits']}" if r["culprits"] else ""
    return f"| {r['id']}{mark} | {r['planted']} | {r['verdict']} | {'yes' if r['steps_exact'] else 'no'} | {found} | {r['spent']} | {r['bound'] or ''} | {r['seconds']:.0f} |"


def score(rows: list[dict[str, Any]]) -> list[str]:
    blamed = [r for r in rows if r["planted"] in ACCUSES]
    planted = sum(r["culprits"] for r in blamed)
    single = [r for r in blamed if r["culprits"] == 1 and r["bound"]]
    others = [r for r in rows if r["planted"] not in ACCUSES]
    alone = [r for r in single if r["planted_samples"] == 1 and r["sample_steps"] is not None]
    within = sum(r["sample_steps"] <= 2 * math.log2(r["batch"]) + 8 for r in alone)
    return [
        "| measure | now | target |", "|---|---|---|",
        f"| right verdict | {sum(r['right'] for r in rows)} of {len(rows)} | >= 90 % |",
        f"| exact culprit steps, `data` and `state x data` | {sum(r['steps_exact'] for r in blamed)} of {len(blamed)} | all |",
        f"| exact sample set of a culprit batch | {sum(r['samples_exact'] for r in blamed)} of {planted} | >= 90 % |",
        f"| batches accused under other verdicts | {sum(r['accused'] for r in others)} in {len(others)} runs | 0 |",
        f"| one culprit: steps replayed within window + 3 window log2 window | {sum(r['spent'] <= r['bound'] for r in single)} of {len(single)} | all |",
        f"| one sample: steps to find it in its batch within 2 log2 B + 8 | {within} of {len(alone)} | all |",
    ]  # fmt: skip


def overhead(root: Path, name: str, steps: int = 60, times: int = 12) -> tuple[float, float]:
    """CPU seconds a step of the bare loop and in the worker, medians of alternating repetitions on one thread."""
    folder = root / "runs" / name
    code = (
        "import importlib.util, sys, time, torch\n"
        "torch.set_num_threads(1); torch.use_deterministic_algorithms(True, warn_only=True)\n"
        "s = importlib.util.spec_from_file_location('train', sys.argv[1]); t = importlib.util.module_from_spec(s); s.loader.exec_module(t)\n"
        "m, o, c = t.build()\n"
        "for line in sys.stdin:\n"
        f"    b = time.process_time(); [t.train_step(m, o, c, t.batch(i)) for i in range({steps})]; print(time.process_time() - b, flush=True)\n"
    )
    bare: list[float] = []
    inside: list[float] = []
    loop = subprocess.Popen(
        [sys.executable, "-c", code, str(folder / "train.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with loop, Worker(sys.executable, folder / "train.py") as worker:
        worker.open("cpu", 1)
        for _ in range(times):
            assert loop.stdin is not None and loop.stdout is not None
            loop.stdin.write("go\n")
            loop.stdin.flush()
            bare.append(float(loop.stdout.readline()) / steps)
            inside.append(worker.ask("run", state="built", plan=[{"batch": i} for i in range(steps)])["cpu"] / steps)
        loop.stdin.close()
    return statistics.median(bare), statistics.median(inside)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--root", type=Path, default=Path(tempfile.gettempdir()) / "forensics-replayable")
    options.add_argument("--device", default="cpu")
    options.add_argument("--write", action="store_true")
    args = options.parse_args()
    if not (args.root / "truth").is_dir():
        subprocess.run([sys.executable, str(PLANTING), str(args.root)], check=True)
    truths = [json.loads(p.read_text()) for p in sorted((args.root / "truth").glob("*.json"))]
    truths = [t for t in truths if not args.names or t["id"] in args.names]
    head = [
        "| run | planted | verdict | culprit steps exact | sample sets exact | steps | bound | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(head), flush=True)
    rows = []
    for t in truths:
        rows.append(one(args.root, t, args.device))
        print(line(rows[-1]), flush=True)
    lines = score(rows)
    if not args.names:
        name = next(r["id"] for r in rows if "text" in r["id"])
        bare, inside = overhead(args.root, name)
        lines.append(
            f"| worker over the bare loop, CPU time a step ({1000 * bare:.1f} ms) | {100 * (inside / bare - 1):+.1f} % | <= 10 % |"
        )
    print("\n" + "\n".join(lines))
    if args.write:
        text = DOCS.read_text("utf-8")
        block = "\n".join([*lines, "", *head, *map(line, sorted(rows, key=lambda r: (r["planted"], r["id"])))])
        DOCS.write_text(re.sub(r"(<!-- scores -->\n).*?(\n<!-- end -->)", lambda m: f"{m[1]}{block}{m[2]}", text, flags=re.S), "utf-8")


if __name__ == "__main__":
    main()
