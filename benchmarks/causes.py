"""Causes ranked on runs with known causes: `python benchmarks/causes.py [DIR ...] [--fit] [--write]`.

DIR holds ``runs/<id>/`` and ``truth/<id>.json`` (``verdict``, ``cause``, ``causes``, ``acceptable``, ``identifiable``), or
samples with an ``expect.toml`` each; default: the open zoo where it is there, else samples/. Prints how often the right
cause comes first and among the first three, what became of healthy runs, how far stated probabilities hold
(reliability table, expected calibration error with bootstrap interval), and the same for every family: a cause with its
variant, which is the unit that is resampled and left out. --fit chooses the temperature of ``forensics.ranking`` by
log-likelihood with families left out in turn, and prints it. --write puts the tables into docs/causes-measured.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import forensics  # noqa: E402
from forensics import ranking  # noqa: E402

ZOO, SAMPLES = HERE.parents[1] / "shared" / "open" / "zoo", HERE.parent / "samples"
PAGE = HERE.parent / "docs" / "causes-measured.md"
CAVEAT = (
    "Some of these runs were looked at while rules were written, so they flatter: expect less on other runs. An interval of\n"
    "the calibration error draws families with replacement; a near-equivalent cause and `unknown` in the first place count as wrong there."
)
DRAWS, BINS, CONFIDENT = 2000, 10, 0.5
TEMPERATURES = np.round(np.arange(0.5, 3.01, 0.05), 2)


@dataclass(frozen=True)
class Truth:
    id: str
    path: Path
    faulty: bool
    family: str  # cause and variant of its generator
    right: frozenset[str]
    near: frozenset[str]  # right ones and near-equivalents
    identifiable: bool


@dataclass(frozen=True)
class Outcome:
    truth: Truth
    verdict: str
    ranked: tuple[tuple[str, float, float], ...]  # (cause, probability, decibans), best first

    @property
    def called_faulty(self) -> bool:
        return self.verdict == "unhealthy"

    @property
    def first(self) -> tuple[str, float]:
        return self.ranked[0][:2]

    def within(self, n: int) -> bool:
        return self.called_faulty and any(c in self.truth.right for c, _, _ in self.ranked[:n])


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folders", nargs="*", type=Path, help="default: ../shared/open/zoo, else samples/")
    ap.add_argument("--fit", action="store_true", help="choose the temperature, families left out in turn")
    ap.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    a = ap.parse_args()
    folders = a.folders or [ZOO if ZOO.is_dir() else SAMPLES]
    outcomes = [judge(t) for folder in folders for t in truths(folder)]
    if not outcomes:
        raise SystemExit(f"no truth/*.json and no */expect.toml below {folders[0]}")
    page = report(outcomes)
    print(page)
    if a.fit:
        print(fitted(outcomes))
    if a.write:
        heading = f"# Causes, measured\n\nWritten by `python benchmarks/causes.py --write` over {len(outcomes)} runs with known causes.\n\n{CAVEAT}\n\n"
        PAGE.write_text(heading + page, encoding="utf-8")


def truths(folder: Path) -> Iterator[Truth]:
    """The runs below a folder with what is known of them."""
    for file in sorted(folder.glob("truth/*.json")):
        t = json.loads(file.read_text(encoding="utf-8"))
        right = frozenset(t.get("causes") or []) | {t["cause"]}
        yield Truth(
            t["id"],
            folder / "runs" / t["id"],
            t["verdict"] != "healthy",
            f"{t['cause']}/{_variant(t)}",
            right,
            right | frozenset(t.get("acceptable") or []),
            t.get("identifiable", True),
        )
    for file in sorted(folder.glob("*/expect.toml")):
        e = tomllib.loads(file.read_text(encoding="utf-8"))
        right = frozenset([e["top"]] if e["top"] else ["healthy"])
        faulty = e["verdict"] != "healthy"
        yield Truth(
            file.parent.name,
            file.parent,
            faulty,
            f"{e['top'] or 'healthy'}/{file.parent.name}",
            right,
            right | frozenset(e.get("acceptable", [])),
            True,
        )


def _variant(t: dict[str, object]) -> str:
    """What the generator did and to what: the words of its specification where it gives one, else the task."""
    if t.get("variant"):
        return str(t["variant"])
    spec = t.get("spec")
    planted = spec.get("fault") if isinstance(spec, dict) else None
    return str(t.get("task") or t.get("framework") or "") + ("-" + "-".join(sorted(planted)) if planted else "")


def judge(t: Truth) -> Outcome:
    """What the product says of a run. Samples are copied first, without the file that tells what is expected."""
    with tempfile.TemporaryDirectory() as folder:
        path = t.path
        if (path / "expect.toml").exists():
            path = Path(folder) / "run"
            shutil.copytree(t.path, path, ignore=shutil.ignore_patterns("expect.toml", "README.md"))
        case = forensics.analyze(str(path))
    return Outcome(t, case.verdict, tuple((h.id, h.probability, h.score) for h in case.hypotheses))


def points(outcomes: list[Outcome]) -> list[tuple[str, float, bool]]:
    """(family, stated probability, whether right) of the first cause of every run called unhealthy.

    Strict: a near-equivalent is not right, and `unknown` in the first place is a miss with its probability.
    """
    return [(o.truth.family, o.first[1], o.first[0] in o.truth.right) for o in outcomes if o.called_faulty]


def calibration_error(said: np.ndarray, was: np.ndarray) -> float:
    """Expected calibration error over ten equal bins of the stated probability (Guo et al. 2017)."""
    if not len(said):
        return math.nan
    at = np.minimum((said * BINS).astype(int), BINS - 1)
    gaps = [abs(said[at == b].sum() - was[at == b].sum()) for b in range(BINS)]
    return float(sum(gaps) / len(said))


def bootstrap(found: list[tuple[str, float, bool]]) -> tuple[float, float]:
    """95 % interval of the calibration error, families drawn with replacement: runs of one family are not independent."""
    families = collections.defaultdict(list)
    for family, p, hit in found:
        families[family].append((p, hit))
    groups = [np.array(v, float) for v in families.values()]
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(DRAWS):
        drawn = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        errors.append(calibration_error(drawn[:, 0], drawn[:, 1]))
    return float(np.percentile(errors, 2.5)), float(np.percentile(errors, 97.5))


def wilson(hits: int, n: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    z, p = 1.96, hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def report(outcomes: list[Outcome]) -> str:
    """All tables as Markdown."""
    faulty = [o for o in outcomes if o.truth.faulty and o.truth.identifiable]
    healthy = [o for o in outcomes if not o.truth.faulty]
    found = points(outcomes)
    said, was = np.array([p for _, p, _ in found]), np.array([h for _, _, h in found], float)
    low, high = bootstrap(found) if found else (math.nan, math.nan)
    wrong = [o for o in outcomes if o.first[0] not in ("unknown", *o.truth.near) and o.first[1] > CONFIDENT]
    clean = max((p for o in healthy for c, p, _ in o.ranked if c != "unknown"), default=0.0)
    rows = [
        ("right cause first", _share(sum(o.within(1) for o in faulty), len(faulty))),
        ("among the first three", _share(sum(o.within(3) for o in faulty), len(faulty))),
        ("faulty called healthy or inconclusive", _share(sum(not o.called_faulty for o in faulty), len(faulty))),
        ("healthy called unhealthy", _share(sum(o.called_faulty for o in healthy), len(healthy))),
        ("a wrong cause above 0.5", f"{len(wrong)} of {len(outcomes)} runs"),
        ("highest probability of a cause on a healthy run", f"{clean:.2f}"),
        ("expected calibration error of the first cause", f"{calibration_error(said, was):.3f} [{low:.3f}, {high:.3f}]"),
    ]
    lines = ["| measure | value (95 % interval) |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows), ""]
    lines += ["| stated probability | runs | stated | right (95 % interval) |", "|---|---|---|---|"]
    at = np.minimum((said * BINS).astype(int), BINS - 1) if len(said) else np.array([], int)
    for b in sorted(set(at.tolist())):
        n, hits = int((at == b).sum()), int(was[at == b].sum())
        lines.append(f"| {b / BINS:.1f} to {(b + 1) / BINS:.1f} | {n} | {said[at == b].mean():.2f} | {_share(hits, n)} |")
    lines += ["", "| family (cause and variant) | runs | first | first three |", "|---|---|---|---|"]
    families = collections.defaultdict(list)
    for o in [*faulty, *healthy]:
        families[o.truth.family].append(o)
    for family, group in sorted(families.items()):
        if group[0].truth.faulty:
            counts = [str(sum(o.within(n) for o in group)) for n in (1, 3)]
        else:
            counts = [f"{sum(not o.called_faulty for o in group)} not accused", ""]
        lines.append(f"| {family} | {len(group)} | {counts[0]} | {counts[1]} |")
    if wrong:
        lines += ["", "| confidently wrong | truth | said |", "|---|---|---|"]
        lines += [f"| {o.truth.id} | {o.truth.family} | {o.first[0]} ({o.first[1]:.2f}) |" for o in wrong]
    return "\n".join(lines) + "\n"


def _share(hits: int, n: int) -> str:
    if not n:
        return "none"
    low, high = wilson(hits, n)
    return f"{hits} of {n}, {hits / n:.1%} [{low:.0%}, {high:.0%}]"


def fitted(outcomes: list[Outcome]) -> str:
    """The temperature of most likelihood, and what error it leaves where the judged family had no part in choosing it."""
    used = [o for o in outcomes if o.called_faulty and o.truth.faulty and o.truth.identifiable]
    families = sorted({o.truth.family for o in used})
    # (temperatures, runs): log of the probability that a temperature gives to the right causes
    table = np.array([[_log_likelihood(o, t) for o in used] for t in TEMPERATURES])
    best = float(TEMPERATURES[int(table.sum(1).argmax())])
    held_out = []
    for family in families:
        out = np.array([o.truth.family == family for o in used])
        t = float(TEMPERATURES[int(table[:, ~out].sum(1).argmax())])
        held_out += [(family, *_first(o, t)) for o in used if o.truth.family == family]
    said, was = np.array([p for _, p, _ in held_out]), np.array([h for _, _, h in held_out], float)
    low, high = bootstrap(held_out)
    return (
        f"temperature {best:g} (now {ranking.TEMPERATURE:g}), from {len(used)} faulty runs of {len(families)} families\n"
        f"calibration error with families left out in turn: {calibration_error(said, was):.3f} [{low:.3f}, {high:.3f}]"
    )


def _probabilities(o: Outcome, temperature: float) -> list[tuple[str, float]]:
    odds = [(cause, 10 ** (score / 10 / temperature)) for cause, _, score in o.ranked]
    total = sum(x for _, x in odds)
    return [(cause, x / total) for cause, x in odds]


def _log_likelihood(o: Outcome, temperature: float) -> float:
    """Of a right cause, or of `unknown` where none was weighed: to be unsure is then the right answer."""
    ps = _probabilities(o, temperature)
    mine = sum(p for c, p in ps if c in o.truth.right) or sum(p for c, p in ps if c == "unknown")
    return math.log(max(mine, 1e-6))


def _first(o: Outcome, temperature: float) -> tuple[float, bool]:
    cause, p = max(_probabilities(o, temperature), key=lambda x: x[1])
    return p, cause in o.truth.right


if __name__ == "__main__":
    main()
