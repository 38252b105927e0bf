"""Learns the causes' weights from the training table: `make fit`, or `python benchmarks/fit/fit.py [--choose] [--without CORPUS] [--write]`.

Learns the weights from the runs in benchmarks/fit/signs.csv that are called unhealthy, which benchmarks/fit/collect.py writes, and prints how good answers are on
families left out and with the weights themselves. --choose tries strengths of shrinkage, by the likelihood that runs get from weights
learned without their family. --write puts the weights into forensics/causes/weights.csv and the measures into
docs/causes-measured.md. No run is read, so anyone can do it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from fit import measure, source_prior  # noqa: E402
from fit.model import DECIBANS, AdditiveCauses  # noqa: E402
from fit.table import Table, classes, read, structure  # noqa: E402
from forensics.causes.files import NOTHING, UNKNOWN, causes  # noqa: E402
from forensics.causes.weigh import PRIOR, UNEXPLAINED  # noqa: E402

WEIGHTS = HERE.parents[1] / "forensics" / "causes" / "weights.csv"
PAGE = HERE.parents[1] / "docs" / "causes-measured.md"
SHRINK = 0.3  # highest likelihood of left-out families among SHRINKS (`--choose`)
SHRINKS = (0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 5
# decibans for every cause against `unknown`: a cause is right more often than it is the one that was meant, for truths let others pass. measured on
# families left out: right first 66 to 68 %, calibration error 0.146 to 0.112, confidently wrong 4.3 to 5.3 %; at 5 it is 6.1 %
LIFT = 2.0
LEAST = 0.05  # decibans: what prints as 0.0

Floats = NDArray[np.float64]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--choose", action="store_true", help="compare strengths of shrinkage")
    ap.add_argument("--without", action="append", default=[], metavar="CORPUS", help="learn without a corpus, and be measured on it alone")
    ap.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name} and {PAGE.name}")
    a = ap.parse_args()
    table = read()
    model = AdditiveCauses(structure(table), UNKNOWN, SHRINK)
    if a.without:
        out = np.array([r["corpus"] in a.without for r in table.rows])
        print(measure.by_corpus(table, probabilities(learned(model, table, ~out), table.X), np.flatnonzero(out)))
        return
    for s in SHRINKS if a.choose else ():
        p = left_out(clone(model).set_params(shrink=s), table)
        print(f"shrinkage {s:g}: log-likelihood of left-out families {log_likelihood(table, p):.4f}")
    final = learned(model, table)
    text = measure.page(table, left_out(model, table), probabilities(final, table.X))
    print(text)
    if a.write:
        lines = weights(final, table)
        WEIGHTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
        PAGE.write_text(text, encoding="utf-8")
        print(f"{len(lines) - 1} weights: {WEIGHTS.name}; {PAGE.name}")


def learned(model: AdditiveCauses, table: Table, rows: NDArray[np.bool_] | None = None) -> AdditiveCauses:
    """A copy of the model, lifted by LIFT and fitted to the runs called unhealthy among some rows of the table, or among all."""
    some = table.sick if rows is None else table.sick & rows
    fitted: AdditiveCauses = clone(model)
    fitted.fit(table.X[some], table.target[some], sample_weight=table.weight[some], groups=table.family[some])
    fitted.start_[~np.isin(fitted.classes_, [UNKNOWN, NOTHING])] += LIFT / DECIBANS
    return fitted


def probabilities(model: AdditiveCauses, X: Floats) -> Floats:
    """(rows, all classes in order); a class that training did not meet has none."""
    out = np.zeros((len(X), len(classes())))
    out[:, [classes().index(c) for c in model.classes_]] = model.predict_proba(X)
    return out


def left_out(model: AdditiveCauses, table: Table) -> Floats:
    """Probabilities of each row from weights that were learned without its family."""
    out = np.zeros((len(table.rows), len(classes())))
    for train, test in GroupKFold(FOLDS, shuffle=True, random_state=0).split(table.X, groups=table.family):
        mask = np.zeros(len(table.rows), bool)
        mask[train] = True
        out[test] = probabilities(learned(model, table, mask), table.X[test])
    return out


def log_likelihood(table: Table, p: Floats) -> float:
    """Of the runs called unhealthy, each as it weighs in the fit."""
    at = [classes().index(t) for t in table.target]
    return float(np.average(np.log(np.maximum(p[np.arange(len(at)), at], 1e-4)), weights=table.weight * table.sick))


def weights(model: AdditiveCauses, table: Table) -> list[str]:
    """The weights in decibans, as lines of a CSV file; those that print as zero are left out."""
    at = {name: i for i, name in enumerate(table.columns)}
    lines = ["cause,sign,seen,absent"]
    for c, name in enumerate(model.classes_):
        if name == UNKNOWN:
            continue
        lines.append(f"{name},{PRIOR},{model.start_[c] * DECIBANS:.1f},")
        columns = {sign: at[sign] for sign in causes()[name].signs if sign in at}
        if name != NOTHING:
            columns[UNEXPLAINED] = at[f"{UNEXPLAINED}:{name}"]
        for sign, j in columns.items():
            seen, absent = model.seen_[c, j] * DECIBANS, model.absent_[c, j] * DECIBANS
            if max(abs(seen), abs(absent)) >= LEAST:
                lines.append(f"{name},{sign},{seen:.1f},{absent:.1f}")
        told = {table.columns[j] for j in np.flatnonzero(np.any(table.X[table.sick] != 0, axis=0))}
        lines += [f"{name},{sign},{source_prior.of(sign)}" for sign in causes()[name].for_ if sign not in told and source_prior.of(sign)]
    return lines


if __name__ == "__main__":
    main()
