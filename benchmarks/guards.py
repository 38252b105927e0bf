"""Lead time and false alarms of the live guards on runs with known causes: `python benchmarks/guards.py NAME=DIR... [--write]`.

DIR is a folder of runs with truths (fit/corpora.py says in which forms); `samples` is always among them. On runs that are healthy by
their truth every alarm is a false one. On faulty runs the harm is the one that the analysis found. --write puts the numbers into
guards.csv, from which docs/make.py makes docs/guards.md.
"""

from __future__ import annotations

import argparse
import collections
import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fit import corpora  # noqa: E402

from forensics import at_path, pipeline  # noqa: E402
from forensics.errors import ForensicsError  # noqa: E402
from forensics.guards.backtest import Backtest, backtests, harms  # noqa: E402
from forensics.guards.guard_table import GUARDS  # noqa: E402

DATA = HERE / "guards.csv"
COLUMNS = (
    "corpus",
    "guard",
    "healthy_runs",
    "with_alarm",
    "alarms",
    "values",
    "harmed_runs",
    "caught",
    "before",
    "lead_low",
    "lead",
    "lead_high",
)
ALL = "all"
BEST = "best of the run"  # in hindsight, on the runs with a harm that a guard is there for


def measured(truth: corpora.Truth) -> list[tuple[str, Backtest, bool]]:
    """(guard, its backtest, whether the run has a harm that the guard is there for) of a run."""
    try:
        run = at_path.read(str(truth.path))
    except ForensicsError:
        return []
    findings = pipeline.examined(run)[0] if truth.faulty else ()
    kinds = {f.kind for f in harms(findings)}
    rules = {rule.name: rule for rule in GUARDS}
    rows = [(row.guard, row, bool(kinds & set(rules[row.guard].catches))) for row in backtests(run, findings)]
    return [*rows, (BEST, rows[0][1], True)] if any(harm for _, _, harm in rows) else rows


def counted(found: Iterable[tuple[bool, Backtest, bool]]) -> dict[str, Any]:
    """The columns of one guard, from (faulty, backtest, harmed) of each run. Leads are in logged values."""
    healthy = [b for faulty, b, _ in found if not faulty]
    harmed = [b for faulty, b, harm in found if faulty and harm]
    leads = [b.lead / b.every for b in harmed if b.lead is not None]
    low, middle, high = np.quantile(leads, (0.25, 0.5, 0.75)).round(1).tolist() if leads else ("", "", "")
    return {
        "healthy_runs": len(healthy), "with_alarm": sum(b.false_alarms > 0 for b in healthy), "alarms": sum(b.false_alarms for b in healthy),
        "values": sum(b.healthy_values for b in healthy), "harmed_runs": len(harmed), "caught": len(leads), "before": sum(x > 0 for x in leads),
        "lead_low": low, "lead": middle, "lead_high": high,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="NAME=DIR")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    from joblib import Parallel, delayed

    folders = [("samples", "=", str(HERE.parent / "samples")), *(c.partition("=") for c in asked.corpora)]
    truths = [t for name, _, folder in folders for t in corpora.read(Path(folder), name)]
    kept: dict[tuple[str, str], list[tuple[bool, Backtest, bool]]] = collections.defaultdict(list)
    for truth, rows in zip(truths, Parallel(n_jobs=asked.jobs)(delayed(measured)(t) for t in truths), strict=True):
        for guard, row, harm in rows:
            kept[truth.corpus, guard].append((truth.faulty, row, harm))
            kept[ALL, guard].append((truth.faulty, row, harm))
    names = [ALL, *(name for name, _, _ in folders)]
    guards = [*(g.name for g in GUARDS), BEST]
    table = [{"corpus": c, "guard": g} | counted(kept[c, g]) for c in names for g in guards if kept[c, g]]
    for row in table:
        print("  ".join(str(row[c]) for c in COLUMNS))
    if asked.write:
        with DATA.open("w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
