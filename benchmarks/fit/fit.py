"""Learns the causes' weights from the training table: `make fit`, or `python benchmarks/fit/fit.py [--choose] [--write]`.

Prints how good the answers are for runs of families that were left out, corpus by corpus, and learns the weights from all rows.
--choose tries other strengths of shrinkage, by the likelihood that runs get from weights learned without their family. --write puts
the weights into forensics/causes/weights.csv. Reads benchmarks/fit/signs.csv (benchmarks/fit/collect.py writes it) and no run, so
anyone can do it.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from fit.model import DECIBANS, AdditiveCauses, Structure  # noqa: E402
from forensics.causes.files import NOTHING, UNKNOWN, Cause, causes  # noqa: E402
from forensics.causes.weigh import PRIOR, UNEXPLAINED  # noqa: E402

TABLE = HERE / "signs.csv"
WEIGHTS = HERE.parents[1] / "forensics" / "causes" / "weights.csv"
PAGE = HERE.parents[1] / "docs" / "causes-measured.md"
FIXED = 9  # columns before the signs
SHRINK = 0.3  # highest likelihood of left-out families among SHRINKS (`--choose`)
SHRINKS = (0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 5
SURE = 0.5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """`X`: (rows, signs and one column a cause: 1 where it leaves a critical finding unexplained); `target`: the class to answer."""

    rows: list[dict[str, str]]
    signs: list[str]
    X: Floats
    target: NDArray[np.str_]
    family: NDArray[np.str_]
    weight: Floats


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--choose", action="store_true", help="compare strengths of shrinkage")
    ap.add_argument("--write", action="store_true", help="write forensics/causes/weights.csv")
    ap.add_argument("--without", action="append", default=[], metavar="CORPUS", help="learn without a corpus, and be measured on it alone")
    a = ap.parse_args()
    table = read()
    model = AdditiveCauses(structure(table), UNKNOWN, SHRINK)
    if a.without:
        train = np.array([r["corpus"] not in a.without for r in table.rows])
        print(report(table, np.flatnonzero(~train), padded(learned(model, table, train), table.X[~train])))
        return
    for s in SHRINKS if a.choose else ():
        p = left_out(clone(model).set_params(shrink=s), table)
        print(f"shrinkage {s:g}: log-likelihood of left-out families {log_likelihood(table, p):.4f}")
    final = learned(model, table, np.ones(len(table.rows), bool))
    text = page(table, left_out(model, table), padded(final, table.X))
    print(text)
    if a.write:
        lines = weights(final, table)
        WEIGHTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
        PAGE.write_text(text, encoding="utf-8")
        print(f"{len(lines) - 1} weights: {WEIGHTS.name}; {PAGE.name}")


def read(path: Path = TABLE) -> Table:
    with path.open(newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    signs = list(rows[0])[FIXED:]
    value = {"+": 1.0, "-": -1.0, "": 0.0}
    X = np.array([[value[r[s]] for s in signs] for r in rows])
    left = np.array([[float(c in r["unexplained"].split(";")) for c in causes()] for r in rows])
    X = np.hstack([X, left])
    names = [*signs, *(f"{UNEXPLAINED}:{c}" for c in causes())]
    family = np.array([r["family"] for r in rows])
    runs_of = Counter(family)
    copies = Counter(r["run"] for r in rows)
    # a family's runs are not independent, and a run's copies are one run: the root of the number of runs counts
    weight = np.array([1 / copies[r["run"]] / np.sqrt(runs_of[f]) * np.sqrt(copies[r["run"]]) for r, f in zip(rows, family, strict=True)])
    return Table(rows, names, X, targets(rows, names, X), family, weight * len(rows) / weight.sum() / np.mean(list(copies.values())))


def structure(table: Table) -> dict[str, Structure]:
    """What each class may use, as columns of the table."""
    at = {name: i for i, name in enumerate(table.signs)}

    def of(c: Cause) -> Structure:
        against = (*c.against, *([f"{UNEXPLAINED}:{c.id}"] if c.id != NOTHING else []))
        return Structure(
            tuple(at[n] for n in c.for_ if n in at),
            tuple(at[n] for n in against if n in at),
            tuple(tuple(at[n] for n in names) for names in c.explains),
        )

    return {c.id: of(c) for c in causes().values()} | {UNKNOWN: Structure((), ())}


def targets(rows: list[dict[str, str]], names: list[str], X: Floats) -> NDArray[np.str_]:
    """The class that a row should be given: its cause where an effect of it was seen, else one that passes as well, else `unknown`."""
    seen = [{names[j] for j in np.flatnonzero(x > 0)} for x in X]
    out = []
    for r, there in zip(rows, seen, strict=True):
        known = [c for c in (r["cause"], *r["near"].split(";")) if c in causes() and c != NOTHING]
        open_to = [c for c in known if any(set(effect) <= there for effect in causes()[c].explains)]
        out.append(r["cause"] if r["cause"] == NOTHING else open_to[0] if open_to else UNKNOWN)
    return np.array(out)


def learned(model: AdditiveCauses, table: Table, rows: NDArray[np.bool_]) -> AdditiveCauses:
    fitted = clone(model)
    return fitted.fit(table.X[rows], table.target[rows], sample_weight=table.weight[rows], groups=table.family[rows])


def padded(model: AdditiveCauses, X: Floats) -> Floats:
    """(rows, all classes in order): probabilities; a class that training did not meet has none."""
    names = classes()
    out = np.zeros((len(X), len(names)))
    out[:, [names.index(c) for c in model.classes_]] = model.predict_proba(X)
    return out


def classes() -> list[str]:
    return [*causes(), UNKNOWN]


def left_out(model: AdditiveCauses, table: Table) -> Floats:
    """Probabilities of each row from weights that were learned without its family."""
    out = np.zeros((len(table.rows), len(classes())))
    for train, test in GroupKFold(FOLDS, shuffle=True, random_state=0).split(table.X, groups=table.family):
        mask = np.zeros(len(table.rows), bool)
        mask[train] = True
        out[test] = padded(learned(model, table, mask), table.X[test])
    return out


def log_likelihood(table: Table, p: Floats) -> float:
    at = [classes().index(t) for t in table.target]
    return float(np.average(np.log(np.maximum(p[np.arange(len(at)), at], 1e-4)), weights=table.weight))


def page(table: Table, left: Floats, own: Floats) -> str:
    """docs/causes-measured.md."""
    every = np.arange(len(table.rows))
    runs = [r for r in table.rows if not r["copy"]]
    families, healthy = len({r["family"] for r in runs}), sum(r["cause"] == NOTHING for r in runs)
    head = (
        f"# Causes, measured\n\nWritten by `make fit` from benchmarks/fit/signs.csv: {len(runs)} runs of {families} families with known causes ({healthy} of them healthy), and "
        f"{len(table.rows) - len(runs)} copies of them that were logged otherwise.\n\nRuns count as first where the right cause, or one that a careful reader would let pass, stands before "
        "all others, `unknown` among them, and whatever the verdict. Faults that cannot be told from what was logged are left out. Samples and zoo were seen while signs "
        "were written; the real runs and the other maker's were seen, too; of the plain loops and the frameworks half were.\n"
    )
    return (
        f"{head}\n## Families left out\n\nThe weights that judge a run were learned without any run of its family.\n\n{report(table, every, left)}\n\n{reliability(table, left)}\n\n"
        f"## The weights that ship\n\nLearned from these runs: this flatters.\n\n{report(table, every, own)}\n\n{reliability(table, own)}\n\n"
        f"## By cause, families left out\n\n{by_cause(table, left)}\n"
    )


def reliability(table: Table, p: Floats) -> str:
    """What was stated of the first cause, and how often it was right."""
    names = np.array(classes()[:-1])
    rows = [(i, int(p[i, :-1].argmax())) for i, r in enumerate(table.rows) if not r["copy"] and r["cause"] != NOTHING]
    rows = [(i, j) for i, j in rows if names[j] != NOTHING and p[i, j] > 0]
    said = np.array([p[i, j] for i, j in rows])
    was = np.array([names[j] in {table.rows[i]["cause"], *table.rows[i]["near"].split(";")} for i, j in rows], float)
    lines = ["| stated probability | runs | stated | right |", "|---|---|---|---|"]
    for b in range(10):
        at = np.minimum((said * 10).astype(int), 9) == b
        if at.any():
            lines.append(
                f"| {b / 10:.1f} to {(b + 1) / 10:.1f} | {at.sum()} | {said[at].mean():.2f} | {_share(int(was[at].sum()), int(at.sum()))} |"
            )
    return "\n".join(lines)


def by_cause(table: Table, p: Floats) -> str:
    lines = ["| cause | families | runs | an effect was seen | first |", "|---|---|---|---|---|"]
    names = classes()
    for cause in sorted(causes()):
        own = [
            i for i, r in enumerate(table.rows) if r["cause"] == cause and not r["copy"] and r["identifiable"] == "yes" and cause != NOTHING
        ]
        if own:
            seen = sum(
                any(set(e) <= {table.signs[j] for j in np.flatnonzero(table.X[i] > 0)} for e in causes()[cause].explains) for i in own
            )
            first = sum(names[int(p[i].argmax())] == cause for i in own)
            lines.append(f"| {cause} | {len({table.rows[i]['family'] for i in own})} | {len(own)} | {seen} | {first} |")
    return "\n".join(lines)


def report(table: Table, rows: NDArray[np.intp], p: Floats) -> str:
    """How good first answers are, corpus by corpus, of runs as they were logged (copies are left out)."""
    lines = [
        "| corpus | runs | right first | among three | healthy accused | confidently wrong | calibration error |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[int]] = defaultdict(list)
    for k, i in enumerate(rows):
        if not table.rows[i]["copy"]:
            groups[table.rows[i]["corpus"]].append(k)
    groups["all"] = [k for g in groups.values() for k in g]
    for corpus, members in groups.items():
        lines.append(f"| {corpus} | {len(members)} | {' | '.join(_measures([table.rows[rows[k]] for k in members], p[members]))} |")
    return "\n".join(lines)


def _measures(rows: list[dict[str, str]], p: Floats) -> list[str]:
    names = np.array(classes())
    shown = p.copy()  # that nothing is wrong is shown as a part of `unknown`
    shown[:, -1] += shown[:, list(names).index(NOTHING)]
    shown[:, list(names).index(NOTHING)] = 0
    calm = np.array([r["verdict"] != "unhealthy" for r in rows])
    shown[calm, :-1] = np.minimum(shown[calm, :-1], SURE)  # as the ranking holds them
    order = np.argsort(-shown, axis=1)
    accepted = [{r["cause"], *r["near"].split(";")} - {"", NOTHING, UNKNOWN} for r in rows]
    faulty = [k for k, r in enumerate(rows) if r["cause"] != NOTHING and accepted[k] and r["identifiable"] == "yes"]
    healthy = [k for k, r in enumerate(rows) if r["cause"] == NOTHING]
    first = sum(names[order[k, 0]] in accepted[k] for k in faulty)
    three = sum(any(names[j] in accepted[k] for j in [j for j in order[k] if names[j] != UNKNOWN][:3]) for k in faulty)
    named = [(k, max(range(len(names) - 1), key=lambda j: shown[k, j])) for k in range(len(rows)) if rows[k]["cause"] != NOTHING]
    wrong = sum(shown[k, j] > SURE and names[j] not in accepted[k] for k, j in named)
    accused = sum(shown[k, :-1].max() > SURE for k in healthy)
    said = np.array([shown[k, j] for k, j in named if shown[k, j] > 0])
    was = np.array([names[j] in accepted[k] for k, j in named if shown[k, j] > 0], float)
    return [
        _share(first, len(faulty)),
        _share(three, len(faulty)),
        _share(accused, len(healthy)),
        _share(wrong, len(named)),
        f"{calibration_error(said, was):.3f}",
    ]


def calibration_error(said: Floats, was: Floats) -> float:
    """Expected calibration error over ten equal bins of the stated probability (Guo et al. 2017)."""
    at = np.minimum((said * 10).astype(int), 9)
    return float(sum(abs(said[at == b].sum() - was[at == b].sum()) for b in range(10)) / max(len(said), 1))


def _share(hits: int, n: int) -> str:
    return f"{hits} of {n} ({hits / n:.0%})" if n else "none"


def weights(model: AdditiveCauses, table: Table) -> list[str]:
    """The weights in decibans, as lines of a CSV file; those of a tenth and less are left out."""
    at = {name: i for i, name in enumerate(table.signs)}
    lines = ["cause,sign,seen,absent"]
    for c, name in enumerate(model.classes_):
        if name == UNKNOWN:
            continue
        lines.append(f"{name},{PRIOR},{model.start_[c] * DECIBANS:.1f},")
        for sign in (*causes()[name].for_, *causes()[name].against):
            seen, absent = model.seen_[c, at[sign]] * DECIBANS, model.absent_[c, at[sign]] * DECIBANS
            if max(abs(seen), abs(absent)) >= 0.05:
                lines.append(f"{name},{sign},{seen:.1f},{absent:.1f}")
        if name != NOTHING and (weight := model.seen_[c, at[f"{UNEXPLAINED}:{name}"]] * DECIBANS) <= -0.05:
            lines.append(f"{name},{UNEXPLAINED},{weight:.1f},")
    return lines


if __name__ == "__main__":
    main()
