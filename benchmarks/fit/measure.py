"""How good learned weights are on the runs of the training table: the tables of docs/causes-measured.md."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from intervals import wilson
from numpy.typing import NDArray

from fit.table import Table, accepted, classes, effect_seen
from forensics.causes.files import NOTHING, UNKNOWN, causes
from forensics.ranking import EVEN

CONFIDENT = 0.5
BINS = 10

Floats = NDArray[np.float64]


def page(table: Table, left: Floats, own: Floats) -> str:
    """docs/causes-measured.md, from the probabilities (rows, classes) of families left out and of the weights that ship."""
    runs = [r for r in table.rows if not r["copy"]]
    families, healthy = len({r["family"] for r in runs}), sum(r["cause"] == NOTHING for r in runs)
    return (
        f"# Causes, measured\n\nWritten by `make fit` from benchmarks/fit/signs.csv: {len(runs)} runs of {families} families with known causes "
        f"({healthy} of them healthy), and {len(table.rows) - len(runs)} copies of them that were logged otherwise.\n\n"
        "*Right first*: the right cause, or one that a careful reader would let pass, stands before all others, `unknown` among them, and the run is not called healthy. Faults "
        "that cannot be told from what was logged are left out. *Healthy accused*: called unhealthy, or a cause stands above 50 %. *Confidently wrong*: of all faulty runs, "
        "those with a wrong cause above 50 %. In brackets are 95 % Wilson intervals. Samples, zoo, real runs and the other maker's were seen while signs and detectors were "
        "written, and so were half of the families of plain loops and frameworks.\n\n"
        f"## Families left out\n\nThe weights that judge a run were learned without any run of its family, from runs called unhealthy.\n\n{by_corpus(table, left)}\n\n{reliability(table, left)}\n\n"
        f"## The weights that ship\n\nLearned from these runs: this flatters.\n\n{by_corpus(table, own)}\n\n{reliability(table, own)}\n\n"
        f"## By cause, families left out\n\n{by_cause(table, left)}\n"
    )


def by_corpus(table: Table, p: Floats, rows: NDArray[np.intp] | None = None) -> str:
    """The measures corpus by corpus, of runs as they were logged (copies are left out)."""
    shown = as_shown(table, p)
    lines = [
        "| corpus | runs | right first | among three | healthy accused | confidently wrong | calibration error |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[int]] = defaultdict(list)
    for i in range(len(table.rows)) if rows is None else rows.tolist():
        if not table.rows[i]["copy"]:
            groups[table.rows[i]["corpus"]].append(i)
    groups["all"] = [i for group in groups.values() for i in group]
    lines += [f"| {corpus} | {len(group)} | {' | '.join(_measures(table, group, shown))} |" for corpus, group in groups.items()]
    return "\n".join(lines)


def as_shown(table: Table, p: Floats) -> Floats:
    """Probabilities as the page shows them: that nothing is wrong is a part of `unknown`, and a run that is not unhealthy holds causes below even odds."""
    shown = p.copy()
    nothing, unknown = classes().index(NOTHING), classes().index(UNKNOWN)
    shown[:, unknown] += shown[:, nothing]
    shown[:, nothing] = 0
    calm = ~table.sick
    others = np.arange(shown.shape[1]) != unknown
    shown[np.ix_(calm, others)] = np.minimum(shown[np.ix_(calm, others)], EVEN)
    return shown


def _measures(table: Table, group: list[int], shown: Floats) -> list[str]:
    names = classes()
    unknown = names.index(UNKNOWN)
    faulty = [i for i in group if table.rows[i]["cause"] != NOTHING]
    told = [i for i in faulty if accepted(table.rows[i]) and table.rows[i]["identifiable"] == "yes"]
    healthy = [i for i in group if table.rows[i]["cause"] == NOTHING]
    first = three = 0
    for i in told:
        order = [int(j) for j in np.argsort(-shown[i]) if shown[i, j] > 0]
        right = [names[j] in accepted(table.rows[i]) and table.rows[i]["verdict"] != "healthy" for j in order]
        first += right[0]
        three += any(r for j, r in zip(order, right, strict=True) if j in [k for k in order if k != unknown][:3])
    accused = sum(table.rows[i]["verdict"] == "unhealthy" or np.delete(shown[i], unknown).max() > CONFIDENT for i in healthy)
    said, was = stated(table, faulty, shown)
    wrong = int(((said > CONFIDENT) & (was == 0)).sum())
    return [
        share(first, len(told)),
        share(three, len(told)),
        share(accused, len(healthy)),
        share(wrong, len(faulty)),
        f"{calibration_error(said, was):.3f}",
    ]


def stated(table: Table, group: list[int], shown: Floats) -> tuple[Floats, Floats]:
    """(probability, whether right) of the first cause by name of each run that has one."""
    names = classes()
    best = [(i, max((j for j in range(len(names)) if names[j] != UNKNOWN), key=lambda j: shown[i, j])) for i in group]
    best = [(i, j) for i, j in best if shown[i, j] > 0]
    return np.array([shown[i, j] for i, j in best]), np.array([names[j] in accepted(table.rows[i]) for i, j in best], float)


def calibration_error(said: Floats, was: Floats) -> float:
    """Expected calibration error over ten equal bins of the stated probability (Guo et al. 2017)."""
    at = _bins(said)
    return float(sum(abs(said[at == b].sum() - was[at == b].sum()) for b in range(BINS)) / max(len(said), 1))


def reliability(table: Table, p: Floats) -> str:
    """What was stated of the first cause of faulty runs, and how often it was right."""
    faulty = [i for i, r in enumerate(table.rows) if not r["copy"] and r["cause"] != NOTHING]
    said, was = stated(table, faulty, as_shown(table, p))
    at = _bins(said)
    lines = ["| stated probability | runs | stated | right |", "|---|---|---|---|"]
    for b in sorted(set(at.tolist())):
        n, right = int((at == b).sum()), int(was[at == b].sum())
        lines.append(f"| {b / BINS:.1f} to {(b + 1) / BINS:.1f} | {n} | {said[at == b].mean():.2f} | {share(right, n)} |")
    return "\n".join(lines)


def by_cause(table: Table, p: Floats) -> str:
    """How often an effect of each cause was seen, and how often it came first."""
    lines = ["| cause | families | runs | an effect was seen | first |", "|---|---|---|---|---|"]
    names, shown = np.array(classes()), as_shown(table, p)
    for cause in sorted(causes().keys() - {NOTHING}):
        own = [i for i, r in enumerate(table.rows) if r["cause"] == cause and not r["copy"] and r["identifiable"] == "yes"]
        families = len({table.rows[i]["family"] for i in own})
        first = sum(names[shown[i].argmax()] == cause for i in own)
        lines += [f"| {cause} | {families} | {len(own)} | {sum(effect_seen(table, i, cause) for i in own)} | {first} |"] if own else []
    return "\n".join(lines)


def share(hits: int, n: int) -> str:
    if not n:
        return "none"
    low, high = wilson(hits, n)
    return f"{hits} of {n}, {hits / n:.0%} [{low:.0%}, {high:.0%}]"


def _bins(said: Floats) -> NDArray[np.int64]:
    return np.minimum((said * BINS).astype(np.int64), BINS - 1)
