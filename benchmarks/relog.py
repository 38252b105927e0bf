"""The same run logged otherwise, and what the product says then: `python benchmarks/relog.py [DIR] [--only T] [--limit N] [--write]`.

DIR is a folder of runs with known causes (fit/corpora.py says in which forms); default: samples/. Every run is written again by each
transformation (`relogging.changes` lists them: another format, other tags, fewer rows, shorter numbers, something that was never logged
...), original and copy are analyzed, and verdict and first cause should not change: the training is the same. ``again`` writes the same
in the same format, so it shows what the writing itself costs. --write puts the tables into docs/invariance.md.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fit import corpora  # noqa: E402
from intervals import wilson  # noqa: E402
from relogging import copies, original  # noqa: E402
from relogging.changes import TRANSFORMATIONS  # noqa: E402
from relogging.original import NotSound, Original, Stream  # noqa: E402
from relogging.page import page  # noqa: E402

import forensics  # noqa: E402
from forensics import pipeline  # noqa: E402
from forensics.errors import ForensicsError  # noqa: E402
from forensics.run.series import series  # noqa: E402
from parsers.tables import Run  # noqa: E402

SAMPLES, PAGE = HERE.parent / "samples", HERE.parent / "docs" / "invariance.md"
EQUAL = 0.01  # of probability: causes so near to the first are first among equals
ROSE = 0.02  # of probability: what a first cause may gain where something was left out
CHECKED = ("loss.train", "loss.eval", "lr", "grad.norm")


@dataclass(frozen=True)
class Answer:
    verdict: str
    ranked: tuple[tuple[str, float], ...]  # (cause, probability), best first

    @property
    def first(self) -> set[str]:
        """The first cause and its equals."""
        return {c for c, p in self.ranked if p >= self.ranked[0][1] - EQUAL}

    def __str__(self) -> str:
        return f"{self.verdict}, {self.ranked[0][0]} {self.ranked[0][1]:.2f}"


@dataclass(frozen=True)
class Outcome:
    run: str
    transformation: str
    before: Answer
    after: Answer
    misread: str  # what was not read as it was written

    @property
    def same_verdict(self) -> bool:
        return self.before.verdict == self.after.verdict

    @property
    def same_cause(self) -> bool:
        return self.before.ranked[0][0] in self.after.first or self.after.ranked[0][0] in self.before.first

    @property
    def rose(self) -> bool:
        """The first cause is surer than it was; to be surer that no cause is known is no fault."""
        (cause, p), (_, was) = self.after.ranked[0], self.before.ranked[0]
        return cause != "unknown" and p > was + ROSE

    @property
    def broken(self) -> bool:
        unhealthy = self.before.verdict == "unhealthy"
        return (
            not self.same_verdict
            or (unhealthy and not self.same_cause)
            or (self.transformation.startswith("no_") and unhealthy and self.rose)
        )


def relogged(path: str | Path, out: str | Path, transformation: str, step: int | None = None) -> Path | None:
    """Writes the run at ``path`` into the new folder ``out`` as the transformation has it; None where that is not sound for this run.

    ``step``: where its event ends, for ``cut_after``. The original is never touched.
    """
    try:
        copies.write(original.read(path), Path(out), transformation, step)
    except NotSound:
        return None
    return Path(out)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("runs", nargs="?", type=Path, default=SAMPLES, help="runs with known causes; default: samples/")
    ap.add_argument("--only", choices=TRANSFORMATIONS, action="append")
    ap.add_argument("--limit", type=int, help="so many runs, spread over the folder")
    ap.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    a = ap.parse_args()
    known = {t.id: t for t in corpora.read(a.runs) if t.path.is_dir()}
    if not known:
        raise SystemExit(f"no run with a known truth in {a.runs}")
    chosen = sorted(known)
    if a.limit and a.limit < len(chosen):
        chosen = [chosen[i * len(chosen) // a.limit] for i in range(a.limit)]
    outcomes, skipped = [], collections.Counter[tuple[str, str]]()
    for name in chosen:
        for found in measured(known[name].path, known[name].last, tuple(a.only or TRANSFORMATIONS)):
            if isinstance(found, Outcome):
                outcomes.append(found)
            else:
                skipped[found] += 1
        print(f"{name}: {len(outcomes)} copies so far", file=sys.stderr)
    text = report(outcomes, skipped)
    print(text)
    if a.write:
        PAGE.write_text(page(text, len(chosen)), encoding="utf-8")


def measured(path: Path, step: int | None, wanted: tuple[str, ...]) -> Iterator[Outcome | tuple[str, str]]:
    """What became of each transformation of a run: an outcome, or (transformation, why it is not sound here)."""
    with tempfile.TemporaryDirectory() as temporary:
        try:
            source = original.read(path)
            before = answer(original.plain_copy(path, Path(temporary) / "original" / "run"))[0]
        except (NotSound, ForensicsError) as e:
            yield from ((t, str(e)) for t in wanted)
            return
        for t in wanted:
            out = Path(temporary) / t / "run"
            try:
                streams = copies.write(source, out, t, step)
            except NotSound as e:
                yield t, str(e)
                continue
            try:
                after, run = answer(out)
            except ForensicsError as e:
                yield Outcome(path.name, t, before, Answer(f"nothing could be read: {e}", (("unknown", 1.0),)), "")
                continue
            yield Outcome(path.name, t, before, after, misread(source, streams, run))


def answer(path: Path) -> tuple[Answer, Run]:
    """As `forensics.analyze` answers, and the run that it chose."""
    run = forensics.read(str(path))
    told = pipeline.judge(run)
    return Answer(told.verdict, tuple((h.id, h.probability) for h in told.hypotheses)), run


def misread(source: Original, streams: list[Stream], run: Run) -> str:
    """Where the usual metrics are not read at the steps at which the copy has them: '' or 'loss.train at 60 steps, not 120'."""
    if len(source.runs) > 1:
        return ""
    found = []
    for name in CHECKED:
        written = [len({r.step for r in s.rows if t in r.values} - {None}) for s in streams for t in s.tags() if s.names[t] == name]
        curve = series(run, name)
        read = len(np.unique(curve.step)) if curve is not None else 0
        if written and read < max(written):
            found.append(f"{name} read at {read} steps of {max(written)}")
    return "; ".join(found)


def _share(hits: list[bool]) -> str:
    if not hits:
        return "none"
    low, high = wilson(sum(hits), len(hits))
    return f"{sum(hits)} of {len(hits)}, {sum(hits) / len(hits):.0%} [{low:.0%}, {high:.0%}]"


def report(outcomes: list[Outcome], skipped: collections.Counter[tuple[str, str]]) -> str:
    """All tables as Markdown."""
    lines = [
        "| transformation | runs | verdict the same | first cause the same | surer than before | misread |",
        "|---|---|---|---|---|---|",
    ]
    for t in TRANSFORMATIONS:
        mine = [o for o in outcomes if o.transformation == t]
        if mine:
            ill = [o for o in mine if o.before.verdict == "unhealthy"]
            rose = _share([o.rose for o in ill]) if t.startswith("no_") else ""
            lines.append(
                f"| {t} | {len(mine)} | {_share([o.same_verdict for o in mine])} | {_share([o.same_cause for o in ill])} | {rose} | {sum(bool(o.misread) for o in mine)} |"
            )
    broken = [o for o in outcomes if o.broken]
    lines += ["", "| broken by | run | original | copy | not read as written |", "|---|---|---|---|---|"] if broken else []
    lines += [f"| {o.transformation} | {o.run} | {o.before} | {o.after} | {o.misread} |" for o in broken]
    lines += ["", "| not done | why | runs |", "|---|---|---|"] if skipped else []
    lines += [f"| {t} | {why} | {n} |" for (t, why), n in sorted(skipped.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
