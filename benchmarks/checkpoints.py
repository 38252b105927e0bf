"""Statistics of checkpoints against one numpy sum over the same bytes: CPU seconds, ratios, private memory.

    python benchmarks/checkpoints.py [--gigabytes 1] [--rounds 5] [--folder DIR] [--torch]

Writes a bf16 safetensors file of 400 tensors and a torch zip of float32 weights with Adam's moments (half as large
again), then times, in rotation: the sum (the mapped file as float32), all statistics, and with --torch
what torch does. Each runs in a process of its own; its CPU time is that of the work, imports not counted. Ratios are
medians over rounds. Exits with 1 where a target of the project is missed: 4 (safetensors), 3 (torch).
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TARGETS = {("model.safetensors", "all"): 4.0, ("state.pt", "all"): 3.0}

WORK = r"""
import mmap, pathlib, resource, sys, time
import numpy as np
what, path = sys.argv[1], pathlib.Path(sys.argv[2])
if what == "sum":
    def work():
        with path.open("rb") as f:
            m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            np.frombuffer(m, np.float32, len(m) // 4).sum()
elif what == "torch":
    import torch
    def work():
        if path.suffix == ".pt":
            found = torch.load(path, mmap=True, weights_only=True)
            tensors = [*found["model"].values(), *(v for s in found["optimizer"]["state"].values() for v in s.values())]
        else:
            from safetensors import safe_open
            with safe_open(path, "pt") as f:
                tensors = [f.get_tensor(k) for k in f.keys()]
        for t in tensors:
            t.float().norm(), t.float().mean(), t.float().std(), t.abs().max(), (~torch.isfinite(t)).sum()
else:
    from forensics.checkpoints import describe
    from parsers.checkpoints import dcp, folder, keras_file, npz_file, roles, safetensors_file, torch_file
    def work():
        describe.read(path)
began = time.process_time()
work()
spent = time.process_time() - began
private = next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1]
print(spent, int(private) // 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "torch" in sys.modules)
"""


def write_safetensors(path: Path, gigabytes: float) -> None:
    rng = np.random.default_rng(0)
    count = int(gigabytes * 1e9 / 2 / 400) // 1024 * 1024
    header = {
        f"model.layers.{i}.weight": {"dtype": "BF16", "shape": [1024, count // 1024], "data_offsets": [2 * count * i, 2 * count * (i + 1)]}
        for i in range(400)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _ in range(400):
            x = rng.standard_normal(count, dtype=np.float32) * np.float32(0.02)
            f.write((x.view(np.uint32) >> 16).astype(np.uint16).tobytes())


def write_torch(path: Path, gigabytes: float) -> None:
    import torch

    count = int(gigabytes * 1e9 / 4 / 3 / 50)
    model = {f"layers.{i}.weight": torch.randn(count) * 0.02 for i in range(50)}
    state = {
        i: {"step": torch.tensor(100.0), "exp_avg": torch.randn(count) * 1e-3, "exp_avg_sq": torch.rand(count) * 1e-6} for i in range(50)
    }
    torch.save(
        {
            "model": model,
            "optimizer": {"state": state, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": list(range(50))}]},
            "step": 100,
        },
        path,
    )


def run(what: str, path: Path) -> tuple[float, int, int, str]:
    done = subprocess.run(
        [sys.executable, "-c", WORK, what, str(path)], capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent
    )
    spent, private, peak, torch = done.stdout.split()
    return float(spent), int(private), int(peak), torch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, write, size in (
            ("model.safetensors", write_safetensors, options.gigabytes),
            ("state.pt", write_torch, 1.5 * options.gigabytes),
        ):
            path = Path(folder) / name
            write(path, size)
            works = ["sum", "all"] + ["torch"] * options.torch
            spent: dict[str, list[float]] = {w: [] for w in works}
            notes = {}
            for i in range(options.rounds):
                for w in works[i % len(works) :] + works[: i % len(works)]:
                    seconds, private, peak, torch = run(w, path)
                    spent[w].append(seconds)
                    notes[w] = f"private {private} MB, peak with mapped pages {peak} MB, torch imported: {torch}"
            print(f"{name}: {path.stat().st_size / 1e9:.2f} GB, {options.rounds} rounds")
            for w in works:
                ratio = statistics.median(a / b for a, b in zip(spent[w], spent["sum"], strict=True))
                target = TARGETS.get((name, w))
                verdict = "" if target is None else f" (target {target}: {'met' if ratio <= target else 'MISSED'})"
                missed += target is not None and ratio > target
                print(f"  {w:<10} {statistics.median(spent[w]):7.3f} s CPU  {ratio:6.2f} x the sum{verdict}; {notes[w]}")
            path.unlink()
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
