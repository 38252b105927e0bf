"""The error rate of every threshold: `python benchmarks/thresholds.py [CORPUS ...] [--only MODULE ...] [--write]`.

For each named number of forensics/detectors and forensics/spikes: how many healthy and how many faulty runs get a finding of
severity warning or worse from that detector (for forensics/spikes: from the detectors that rest on it) with the number as it
is, times 0.7 and times 1.4. Runs: samples/, the open zoos where they are there, and each CORPUS, a folder in one of the forms that
benchmarks/fit/corpora.py reads. --write puts the tables into docs/thresholds.md.
"""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

from fit import corpora  # noqa: E402
from named_numbers import Constant, constants, modules  # noqa: E402

import forensics  # noqa: E402
from forensics.errors import CannotTell, ForensicsError  # noqa: E402
from forensics.run.series import series  # noqa: E402
from forensics.spikes import classes  # noqa: E402
from parsers.tables import Run  # noqa: E402

PAGE = ROOT / "docs" / "thresholds.md"
OPEN = ROOT.parent / "shared" / "open"
ROOMS = ("detectors", "spikes")
ASKED = ("loss_spike", "divergence", "grad_spike", "level_shift")  # what rests on forensics/spikes
FACTORS = (0.7, 1.0, 1.4)
GRAVE = ("warning", "critical")
T = TypeVar("T")
MOST = 400  # runs of each kind that are read
MOST_SPIKES = 50  # of each kind on which forensics/spikes is tried: that takes most of the time


@dataclass
class Case:
    run: Run
    faulty: bool


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folders", nargs="*", type=Path, help="more runs with known verdicts")
    ap.add_argument("--only", nargs="*", default=[], help="modules by their last name")
    ap.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    a = ap.parse_args()
    begin = time.process_time()
    cases = list(read([ROOT / "samples", *(f for f in (OPEN / "zoo", OPEN / "zoo2") if f.is_dir()), *a.folders]))
    judge(cases, a, begin)


def judge(cases: list[Case], a: argparse.Namespace, begin: float) -> None:
    counts = collections.Counter(c.faulty for c in cases)
    print(f"{counts[False]} healthy, {counts[True]} faulty runs read in {time.process_time() - begin:.0f} s of CPU", flush=True)
    page = []
    for path in modules(*ROOMS):
        if a.only and path.stem not in a.only:
            continue
        rows = list(measured(path, cases))
        if rows:
            page.append(table(path, rows))
            print(page[-1], flush=True)
    print(f"{time.process_time() - begin:.0f} s of CPU")
    if a.write and not a.only:
        PAGE.write_text(heading(counts, len(a.folders)) + "\n".join(page), encoding="utf-8")


def read(folders: Sequence[Path]) -> Iterator[Case]:
    """At most MOST healthy and MOST faulty runs, always the same ones."""
    known = [t for folder in folders for t in corpora.read(folder)]
    for t in (t for kind in (False, True) for t in few([t for t in known if t.faulty == kind], MOST)):
        try:
            yield Case(opened(t.path), t.faulty)
        except ForensicsError as e:
            print(f"{t.id}: {e}")


def few(xs: list[T], most: int) -> list[T]:
    return random.Random(0).sample(xs, most) if len(xs) > most else xs


def opened(path: Path) -> Run:
    """Samples are copied first, without the file that tells what is expected; checkpoints are read before the copy goes."""
    if not (path / "expect.toml").exists():
        return forensics.read(str(path))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        shutil.copytree(path, copy, ignore=shutil.ignore_patterns("expect.toml", "README.md"))
        run = forensics.read(str(copy))
        for detector in detectors():
            grave(run, detector)
    return run


def detectors() -> list[ModuleType]:
    return [importlib.import_module(f"forensics.detectors.{p.stem}") for p in modules("detectors")]


def grave(run: Run, detector: ModuleType, alone: bool = False) -> bool:
    """Whether the detector finds something that makes a run unhealthy; `alone`: or anything, where it finds no such thing ever."""
    if any(not any(series(run, n) for n in need.split("|")) for need in detector.NEEDS):
        return False
    try:
        return any(f.severity in GRAVE or (alone and tells_only(detector)) for f in detector.detect(run))
    except CannotTell:
        return False


@cache
def tells_only(detector: ModuleType) -> bool:
    """Whether all its findings are for information: then every one counts."""
    return not any(f'"{word}"' in Path(detector.__file__ or "").read_text("utf-8") for word in GRAVE)


def measured(path: Path, cases: list[Case]) -> Iterator[tuple[Constant, str, list[str]]]:
    """(constant, value, 'healthy / faulty' at each factor)."""
    if not (found := list(constants(path))):
        return
    module = importlib.import_module(found[0].module)
    asked = [module]
    curves = annotated() if path.parent.name == "spikes" else None
    if path.parent.name == "spikes":
        cases = [c for kind in (False, True) for c in few([c for c in cases if c.faulty == kind], MOST_SPIKES)]
        asked = [importlib.import_module(f"forensics.detectors.{name}") for name in ASKED]
    usual = counted(cases, asked) + scores(curves)
    for c in found:
        value = getattr(module, c.name)
        cells = []
        for factor in FACTORS:
            new = scaled(value, factor)
            with patched(module, c.name, new):
                cells.append(
                    "same number" if factor != 1 and new == value else usual if new == value else counted(cases, asked) + scores(curves)
                )
        yield c, short(value), cells


def counted(cases: list[Case], asked: list[ModuleType]) -> str:
    """'2 of 90 / 31 of 120': healthy and faulty runs with a grave finding. A number that breaks the detector is told."""
    hits: collections.Counter[bool] = collections.Counter()
    for c in cases:
        forget(c.run)
        try:
            hits[c.faulty] += any(grave(c.run, d, len(asked) == 1) for d in asked)
        except Exception as e:  # windows of one value and the like
            return f"breaks ({type(e).__name__})"
        forget(c.run)
    return f"{hits[False]} / {hits[True]}"


@cache
def annotated() -> Any:
    """The annotated curves of benchmarks/spikes.py, where they are there."""
    sys.path[:0] = [str(HERE)]
    spikes = importlib.import_module("spikes")
    return spikes.Data(OPEN / "spikes") if (OPEN / "spikes").is_dir() else None


def scores(data: Any) -> str:
    """', .944 .937 .934': precision, recall and macro-F1 of the spikes on annotated curves."""
    if data is None:
        return ""
    healthy = {sid for sid, notes in data.annotated.items() if any(n["class"] == "healthy" for n in notes)}
    notes = {sid: n for sid, n in data.annotated.items() if sid not in healthy}
    try:
        found = {sid: told(data, sid) for sid in data.annotated}
    except Exception as e:
        return f", breaks ({type(e).__name__})"
    s = data.score.summarise(data.score.evaluate(notes, healthy, found, data.meta))
    return ", " + " ".join(f"{s[k]:.3f}".lstrip("0") for k in ("precision", "recall", "macro_f1"))


def told(data: Any, sid: str) -> list[dict[str, Any]]:
    x = data.step[sid]
    judged = classes.judge(x, data.value[sid], data.length(sid))
    ends = [x[s.at.end] if s.at.end is not None and s.at.end < len(x) else None for s in judged]
    return [{"start": x[s.at.start], "peak": x[s.at.peak], "end": end, "class": s.kind} for s, end in zip(judged, ends, strict=True)]


def forget(run: Run) -> None:
    """What was kept with the run and rests on a threshold that is changed: all but what is read from its files."""
    rests = ("forensics.detectors", "forensics.spikes", "forensics.pipeline")
    for key in [k for k in run.cache if isinstance(k, tuple) and getattr(k[0], "__module__", "").startswith(rests)]:
        del run.cache[key]


def scaled(value: Any, factor: float) -> Any:
    """A number times the factor, whole numbers rounded and at least 1; every number of a collection."""
    if isinstance(value, dict):
        return {k: scaled(v, factor) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(scaled(v, factor) for v in value)
    return max(round(value * factor), 1) if isinstance(value, int) else value * factor


@contextmanager
def patched(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """The constant replaced in its module and wherever another module imported it by name."""
    homes = [module, *(m for m in list(sys.modules.values()) if _imports(m, module.__name__, name))]
    old = getattr(module, name)
    for m in homes:
        setattr(m, name, value)
    try:
        yield
    finally:
        for m in homes:
            setattr(m, name, old)


def _imports(m: ModuleType, module: str, name: str) -> bool:
    return m.__name__.startswith("forensics.") and m.__file__ is not None and (module, name) in _imported(m.__file__)


@cache
def _imported(file: str) -> set[tuple[str, str]]:
    """(module, name) of everything that a module imports by name."""
    nodes = ast.walk(ast.parse(Path(file).read_text("utf-8")))
    return {(n.module, a.name) for n in nodes if isinstance(n, ast.ImportFrom) and n.module for a in n.names}


def short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {short(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return f"{len(value)} numbers" if len(value) > 4 else ", ".join(map(short, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(path: Path, rows: list[tuple[Constant, str, list[str]]]) -> str:
    only = path.parent.name == "detectors" and tells_only(importlib.import_module(rows[0][0].module))
    note = ["All its findings are for information: each counts.", ""] if only else []
    lines = [
        f"## {path.parent.name}/{path.stem}",
        "",
        *note,
        "| constant | value | source | 0.7x | 1x | 1.4x |",
        "|---|---|---|---|---|---|",
    ]
    lines += [f"| `{c.name}` | {value} | {cell(c.comment)} | {' | '.join(told)} |" for c, value, told in rows]
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    return text.replace("|", "&#124;")


def heading(counts: collections.Counter[bool], more: int) -> str:
    healthy, faulty = counts[False], counts[True]
    runs = "samples/, the open zoos" + (f" and {more} more corpora" if more else "")
    return f"""# Thresholds, measured

Written by `python benchmarks/thresholds.py --write` over {healthy} healthy and {faulty} faulty runs ({runs}).

A cell says how many *healthy / faulty* runs get a finding of severity warning or worse from that detector with the number times
0.7, as it is, and times 1.4 (whole numbers rounded, at least 1). The first should be 0, the second is the more the better, but no
detector is meant for every fault. Constants of `spikes/` are tried on at most {MOST_SPIKES} runs of each kind, with the detectors that rest on
them ({", ".join(ASKED)}), and on the annotated curves of the open set: precision, recall and macro-F1 of spikes. *same number*: rounding leaves it as it is. The source is the comment beside the constant.
A constant that decides only what is told (a class, a picture, a finding for information) moves nothing here.

"""


if __name__ == "__main__":
    main()
