"""Measures what the command itself does in `forensics audit` of very many runs: everything but the analysis of each.

    python benchmarks/audit_scale.py [--runs 100000] [--families 20,5000] [--real 300]

The records are simulated (benchmarks/simulated_records.py) and stand in the audit's folder, so that it goes on as after `--resume`. Printed are the CPU
seconds of each stage, and the peak memory of the process; each count of families has a process of its own. Of `--real` runs on the disk: the CPU
time of a whole audit as a multiple of reading the bytes, and what a run costs in an audit in which nothing has changed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
MOST_SECONDS, MOST_MB = 180.0, 1024.0  # what 100 000 runs may take


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(owner: Any, name: str, label: str) -> None:
    """Prints what a function took whenever it is called."""
    plain: Callable[..., Any] = getattr(owner, name)

    def clocked(*args: Any, **options: Any) -> Any:
        began = time.process_time()
        found = plain(*args, **options)
        print(f"  {label:<20}{time.process_time() - began:8.2f} s {peak():8.0f} MB", flush=True)
        return found

    setattr(owner, name, clocked)


def simulate(count: int, families: int, folder: Path) -> list[Any]:
    """Records in an audit's folder, as they arrive from workers; -> the places."""
    from simulated_records import simulated

    from forensics.audits import kept

    held, places = kept.Kept(str(folder), folder), []
    for place, record in simulated(count, families):
        held.add(kept.line(place, [record]))
        places.append(place)
    held.flush()
    return places


def driver(folder: Path, count: int, families: int) -> None:
    """An audit whose runs are analyzed already. Restarts are looked for, and not read again: there is nothing on the disk."""
    from forensics import audits
    from forensics.audits import collect, discover, kept, pages
    from forensics.guards import over_runs
    from forensics.many_runs import copies_and_forks, outcomes, seed_groups, shared_batches, shared_causes
    from reports import audit_page

    places = simulate(count, families, folder)
    discover.survey = lambda *_: discover.Survey(places)  # type: ignore[assignment]
    timed(kept, "Kept", "index of records")
    timed(collect, "restarts", "restarts")
    looked = collect.restarts
    collect.restarts = lambda *args: looked(*args) and []  # type: ignore[assignment]
    timed(collect, "load", "load")
    for module in (copies_and_forks, seed_groups, shared_batches, shared_causes):
        timed(module, "find", module.__name__.rpartition(".")[2].replace("_", " "))
    timed(outcomes, "tables", "outcomes")
    timed(over_runs, "table", "guards")
    timed(pages, "worth_opening", "worth opening")
    timed(audits, "_write", "writing")
    timed(audit_page, "render", "page")
    timed(audit_page, "markdown", "summary")
    drawn = audits.Outputs(str, audit_page.render, audit_page.markdown)
    began = time.process_time()
    audits.audit(["/runs"], str(folder), drawn, audits.Options(resume=True, pages=0))
    spent = time.process_time() - began
    fits = spent < MOST_SECONDS * count / 100_000 and peak() < MOST_MB
    print(f"  {'all':<20}{spent:8.2f} s {peak():8.0f} MB   {'within' if fits else 'BEYOND'} the target")


def real(count: int) -> None:
    """A whole audit beside reading the bytes, and one in which nothing has changed."""
    import audit

    def spent(*options: str) -> float:
        code = "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"
        return audit.timed([sys.executable, "-c", code, "-q", "audit", "runs", "--out", "o", "--jobs", "2", *options], folder)[1]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audit.write_runs(folder / "runs", count, 0.1)
        files = [p for p in (folder / "runs").rglob("*") if p.is_file()]
        began = time.process_time()
        size = sum(len(p.read_bytes()) for p in files)
        reading = time.process_time() - began
        whole, fresh = spent(), spent("--resume")
        for p in files[: count // 2]:
            p.unlink()
        half = spent("--resume")
    print(f"{count} runs on the disk, {size / 1e6:.0f} MB:")
    print(f"  the audit takes {whole:.1f} s, {whole / max(reading, 1e-3):.0f} times what reading the bytes takes ({reading:.3f} s)")
    print(f"  nothing changed: {fresh:.2f} s in all, {2000 * (fresh - half) / count:.2f} ms a run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--families", default="20,5000")
    parser.add_argument("--real", type=int, default=300)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as name:
            driver(Path(name), options.runs, options.one)
        return
    for families in map(int, options.families.split(",")):
        print(f"{options.runs} simulated runs of {families} families:", flush=True)
        subprocess.run([sys.executable, __file__, "--runs", str(options.runs), "--one", str(families)], check=True)
    if options.real:
        real(options.real)


if __name__ == "__main__":
    main()
