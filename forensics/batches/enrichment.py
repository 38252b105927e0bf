"""What the batches behind the spikes have in common: shard, source, sample, whole batch, place in the epoch, rank.

Each logged value speaks of the batches since the value before it (``recurrence.window``); that window is the unit. With N
windows, n of them with a feature (a shard, a sample ...) and K at which a spike begins, the number of spike windows with
the feature is hypergeometric where spikes strike without regard to it (Fisher's exact test, one-sided, by ``math.lgamma``).

Two things would make that test lie. Batches in a row that share a shard are no independent draws, so the spikes within one
visit of a feature count once: a shard that is read in one go cannot be told from the time at which it was read. And
thousands of features are tested: a wrong accusation is worse than none, so the chance of *any* is held (family-wise error,
not the false discovery rate of Benjamini and Hochberg), by Tarone's form of Bonferroni's correction: features too rare or
too common to ever be significant cannot accuse anybody and are not counted. With samples that are seen once or twice
that leaves a dozen of ten thousand tests (R. E. Tarone, Biometrics 46, 1990).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import e, exp, lgamma, log, log10

import numpy as np
from numpy.typing import NDArray

from forensics.batches.recurrence import Epochs, reach
from forensics.run.once import once
from forensics.run.series import Series
from parsers.tables import Run

Ints = NDArray[np.int64]
ALPHA = 0.01  # chance of any wrong accusation in a run whose spikes have nothing to do with its data
TWICE = 2  # spikes in so many visits at least
PLACES = 20  # parts that an epoch is cut into
LARGEST = 30_000_000  # rows of a manifest that are looked at


Family = tuple[list[str], Ints, Ints]  # names; then a code and a unit for every (feature, unit) that belong together


@dataclass(frozen=True)
class Shared:
    """A feature and how often it lies behind a spike. ``hits`` of ``spikes``, ``windows`` of ``all_windows`` have it."""

    kind: str  # sample | batch | shard | source | place | rank
    value: str
    hits: int
    spikes: int
    windows: int
    all_windows: int
    p: float  # of the exact test
    corrected: float  # chance that any feature of a run without bad data would look like this
    tests: int  # that the correction counts
    steps: tuple[int, ...]  # where the spikes with the feature begin
    lag: int = 0  # windows between the feature and the spike


@lru_cache(maxsize=65536)
def upper_tail(hits: int, windows: int, spikes: int, total: int) -> float:
    """P(X >= hits) where `spikes` windows are drawn from `total`, `windows` of which have the feature. Exact."""
    most = min(windows, spikes)
    if hits <= max(0, windows + spikes - total):
        return 1.0

    def choose(n: int, k: int) -> float:
        return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

    whole = choose(total, spikes)
    terms = (choose(windows, i) + choose(total - windows, spikes - i) - whole for i in range(hits, most + 1))
    return min(sum(exp(t) for t in terms), 1.0)


def decibans(p: float, most: float) -> float:
    """What a p-value can weigh at most for its effect: 10 log10 of -1 / (e p ln p), held below `most`.

    The bound of Sellke, Bayarri and Berger (The American Statistician 55, 2001): 9 dB at p = 0.01, 13 at 0.003.
    """
    return float(round(min(most, max(0.0, -10 * log10(-e * p * log(p)))))) if 0 < p < 1 / e else most if p <= 0 else 0.0


def tarone(least: Iterable[tuple[float, int]], alpha: float = ALPHA) -> int:
    """How many tests the correction must count: the smallest k such that at most k tests could reach alpha / k.

    `least`: (smallest p that a test could reach, how many such tests).
    """
    ordered = sorted(least)
    reachable = np.array([p for p, _ in ordered])
    upto = np.cumsum([n for _, n in ordered])

    def could(k: int) -> int:
        i = int(np.searchsorted(reachable, alpha / k, side="right"))
        return int(upto[i - 1]) if i else 0

    low, high = 1, max(int(upto[-1]), 1) if len(upto) else 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if could(middle) <= middle else (middle + 1, high)
    return low


def shared(run: Run, s: Series, starts: Iterable[tuple[int, int]], epochs: Epochs | None = None) -> list[Shared]:
    """What the spikes share, most telling first; empty where nothing does. `starts`: (attempt, step) of each spike."""
    units = _units(s)[0]
    spiked = np.zeros(len(units), bool)
    index = {(int(s.attempt[r]), int(s.step[r])): i for i, r in enumerate(units)}
    for start in starts:
        if start in index:
            spiked[index[start]] = True
    if spiked.sum() < TWICE:
        return []
    families = _families(run, s, epochs)
    known = np.zeros(len(units), bool)
    for _, _, unit in families.values():
        known[unit] = True
    for lag in (0, 1):
        found = _tested(families, spiked, known, s.step[units], lag)
        if found:
            return found
    return []


def _tested(families: dict[str, Family], spiked: NDArray[np.bool_], known: NDArray[np.bool_], step: Ints, lag: int) -> list[Shared]:
    """The significant features where the cause precedes the spike by `lag` windows; each lag gets half of ALPHA."""
    struck = np.zeros(len(spiked), bool)
    struck[: len(spiked) - lag] = spiked[lag:]
    struck &= known
    total, drawn = int(known.sum()), int(struck.sum())
    if drawn < TWICE or total < 3 * TWICE:
        return []
    counted = {k: _count(codes, units, struck, len(names)) for k, (names, codes, units) in families.items()}
    least: dict[int, int] = {}
    for windows, _ in counted.values():
        for n, many in zip(*np.unique(windows[windows > 0], return_counts=True), strict=True):
            least[int(n)] = least.get(int(n), 0) + int(many)
    tests = tarone(((upper_tail(min(n, drawn), n, drawn, total), many) for n, many in least.items()), ALPHA / 2)
    found = []
    for kind, (windows, hits) in counted.items():
        names, codes, units = families[kind]
        for code in np.flatnonzero(hits >= TWICE):
            n, k = int(windows[code]), int(hits[code])
            p = upper_tail(k, n, drawn, total)
            if 2 * p * tests <= ALPHA:
                at = units[codes == code]
                steps = tuple(int(x) for x in step[np.unique(at[struck[at]]) + lag])
                found.append(Shared(kind, names[code], k, drawn, n, total, p, min(2 * p * tests, 1.0), tests, steps, lag))
    order = list(families)
    return sorted(found, key=lambda f: (f.p, order.index(f.kind), f.value))


def _count(codes: Ints, units: Ints, struck: NDArray[np.bool_], features: int) -> tuple[Ints, Ints]:
    """(windows with each feature, visits of each feature in which a spike begins)."""
    width = int(units.max()) + 1 if len(units) else 1
    code, unit = np.divmod(np.unique(codes * width + units), width)
    windows = np.bincount(code, minlength=features)
    if not len(code):
        return windows, windows
    begins = np.flatnonzero(np.r_[True, (np.diff(code) != 0) | (np.diff(unit) > 1)])
    hit = np.maximum.reduceat(struck[unit].astype(np.int64), begins)
    return windows, np.bincount(code[begins], weights=hit, minlength=features).astype(np.int64)


def _units(s: Series) -> tuple[Ints, Ints, Ints]:
    """Rows of the surviving run, with first and last step of the batches that each speaks of; in the order of steps."""
    rows = np.flatnonzero(s.alive)
    rows = rows[np.argsort(s.step[rows], kind="stable")]
    last = s.step[rows]
    return rows, last - reach(s) + 1, last


@once
def _families(run: Run, s: Series, epochs: Epochs | None) -> dict[str, Family]:
    """The features of each unit, the most specific kind first."""
    units, first, last = _units(s)
    table = run.tables["batches"]
    if not table.num_rows or table.num_rows > LARGEST or not len(units):
        return {}
    table = table.filter(table["step"].is_valid())
    step = table["step"].to_numpy()
    attempt = table["attempt"].fill_null(0).to_numpy()
    unit = np.searchsorted(last, step)
    inside = np.minimum(unit, len(units) - 1)
    fits = (unit < len(units)) & (first[inside] <= step) & (attempt == s.attempt[units][inside])
    families: dict[str, Family] = {}
    for kind in ("sample", "shard"):
        coded = table[kind].combine_chunks().dictionary_encode()
        code = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        kept = fits & (code >= 0)
        names = [str(x) for x in coded.dictionary.to_pylist()]
        families[kind] = (names, code[kept], unit[kept])
    names, code, unit_of = families["sample"]
    families = {"batch": _whole(code, unit_of, first, last), **families}
    shards, code, unit_of = families["shard"]
    families["source"] = _grouped([source_of(x) for x in shards], code, unit_of)
    rank = table["rank"]
    if len(rank.unique().drop_null()) > 1:
        kept = fits & rank.is_valid().to_numpy()
        families["rank"] = _grouped([str(x) for x in rank.fill_null(-1).to_pylist()], None, unit)
        families["rank"] = (families["rank"][0], families["rank"][1][kept], unit[kept])
    if epochs is not None:
        known = np.unique(unit[fits])
        place = np.floor(epochs.place(s.step[units][known]) * PLACES).astype(np.int64)
        families["place"] = ([f"{100 * i // PLACES} to {100 * (i + 1) // PLACES} %" for i in range(PLACES)], place, known)
    return {k: f for k, f in families.items() if len(np.unique(f[1])) > 1}


def _whole(code: Ints, unit: Ints, first: Ints, last: Ints) -> Family:
    """Batches that come again as they are; only where a logged value speaks of one batch."""
    seen: dict[bytes, int] = {}
    codes, units = [], []
    order = np.lexsort((code, unit))
    code, unit = code[order], unit[order]
    begins = np.flatnonzero(np.r_[True, np.diff(unit) != 0]) if len(unit) else np.zeros(0, np.int64)
    for a, b in zip(begins, np.r_[begins[1:], len(unit)], strict=False):
        if first[unit[a]] == last[unit[a]]:
            codes.append(seen.setdefault(code[a:b].tobytes(), len(seen)))
            units.append(int(unit[a]))
    return [f"batch {i}" for i in range(len(seen))], np.array(codes, np.int64), np.array(units, np.int64)


def _grouped(names: list[str], code: Ints | None, unit: Ints) -> Family:
    """Codes of names that several codes (or rows) share."""
    known: dict[str, int] = {}
    to = np.array([known.setdefault(n, len(known)) for n in names], np.int64)
    return list(known), to[code] if code is not None else to, unit


def source_of(shard: str) -> str:
    """'web' of 'web-0031', 'tales/en' of 'tales/en/part.00012.jsonl.zst': the folder, else the words before the number."""
    folder, _, name = shard.rpartition("/")
    return folder or re.split(r"[-_.]?\d", name, maxsplit=1)[0] or name
