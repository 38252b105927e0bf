"""Which series is judged as the loss of a run where no name tells: the one that runs as a loss does, or the first of several.

People invent names: ``lm``, ``crit``, ``misfit``. A loss is positive, scatters, and falls for the whole run, by more at first than later on. Rates that
are scheduled fall, too, and in one smooth line; what falls by its definition (time left, exploration, a spread) is known by its words. Of few values it is
enough that they fall and are measured of held-out data under the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.loss_names import EVAL, home, split
from parsers.name_rules import data, words
from parsers.names import Meaning
from parsers.sums import SUMMED

Meanings = dict[tuple[str, str], Meaning]  # by file and tag
TOLD = "by its course"
_KNOWN = ("loss.", "ppl.", "bpb.", "score.", "rl.", "pref.", "gan.")  # beside these nothing is taken for a loss by its course
_LEAST, _THIRDS = 9, 3  # bound: three thirds of three values
_FEW = 4  # bound: two values at each end
_FALL = 0.8  # unit: a fifth of the first level is gone at the end
_SLOWER = 1.5  # of the pace of the second half the first one has more; a straight line has 1.35 by these medians
_SMOOTH = 1e-3  # of its range: what moves by even steps, or by steps that change evenly, was computed and not measured
_MOST_TAGS, _MOST_ROWS = 200, 4_000_000  # bound


def told(metrics: pa.Table, meanings: Mapping[tuple[str, str], Meaning]) -> Meanings:
    """The meanings of the tags that are taken for the loss, of the training and of held-out data; none where a name tells of one."""
    unknown = [at for at, m in meanings.items() if m.name.startswith("other/") and not _aside(at[1])]
    if any(m.name.startswith(_KNOWN) for m in meanings.values()) or not 0 < len(unknown) <= _MOST_TAGS or metrics.num_rows > _MOST_ROWS:
        return {}
    (source, paths), (tag, tags) = arrow.codes(metrics["source"]), arrow.codes(metrics["tag"])
    value, there = arrow.values(metrics["value"]), arrow.present(metrics["step"])
    falls, held = [], dict[tuple[str, str], NDArray[np.float64]]()
    for path, (first, last) in zip(paths, arrow.stretches(source, len(paths)), strict=True):  # each file's rows stand together
        rows = first + np.flatnonzero(there[first:last])
        rows = rows[np.argsort(tag[rows], kind="stable")]
        for t in (t for p, t in unknown if p == path):
            begin, end = np.searchsorted(tag[rows], (tags.index(t), tags.index(t) + 1))
            held[path, t] = value[rows[begin:end]]
            falls += [(path, t)] if is_of_loss(held[path, t]) else []
    trained = [at for at in falls if split(words(at[1]), home(at[0])) == "train"] or _of_both_sets(held, unknown)
    trained = _of_one(trained, unknown)
    if not trained:
        return {}
    core, sets = _core(trained[0][1]), data()["objective"]["nameless"]
    held_out = [at for at in unknown if at not in trained and EVAL.search(words(at[1])) and (_core(at[1]) == core or words(at[1]) in sets)]
    judged = dict.fromkeys(trained, "train") | dict.fromkeys(held_out, "eval")
    said = f"No loss was logged: {trained[0][1]} is judged as the loss, {TOLD}."
    return {at: replace(meanings[at], name=f"loss.{side}", trap=said) for at, side in judged.items()}


def _of_one(falls: list[tuple[str, str]], unknown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of one name: of several the one that is measured of held-out data as well, and else the one that stands first, as a loss does before its
    terms."""
    held_out = {_core(t) for _, t in unknown if EVAL.search(words(t))}
    both = {_core(t) for _, t in falls} & held_out
    order = [_core(t) for at, t in unknown if (at, t) in falls and (not both or _core(t) in both)]
    return [(at, t) for at, t in falls if order and _core(t) == order[0]]


def _of_both_sets(values: Mapping[tuple[str, str], NDArray[np.float64]], unknown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is measured in training and under the same words on held-out data, and falls in training, though too few times to run as a loss does: a rate or
    a norm is not measured of both."""
    sides = {at: split(words(at[1]), home(at[0])) for at in unknown}
    held_out = {_core(t) for (_, t), side in ((at, sides[at]) for at in unknown) if side == "eval"}
    return [at for at in unknown if sides[at] == "train" and _core(at[1]) in held_out and _falls(values[at])]


def _falls(x: NDArray[np.float64]) -> bool:
    """Whether values are fractions and end lower than they begin."""
    x = x[np.isfinite(x)]
    return len(x) >= _FEW and bool((x != np.floor(x)).any()) and bool(np.median(x[-2:]) < np.median(x[:2]))


def is_told(m: Meaning) -> bool:
    return m.trap.endswith((f"{TOLD}.", f"{SUMMED}."))


def is_of_loss(x: NDArray[np.float64]) -> bool:
    """Whether values run as a loss does."""
    x = x[np.isfinite(x)]
    if len(x) < _LEAST or x.min() < 0 or (x == np.floor(x)).all():
        return False
    first, middle, last = (float(np.median(part)) for part in np.array_split(x, _THIRDS))
    begin = max(first, float(np.median(x[: max(len(x) // 10, 3)])))
    falls = last <= _FALL * begin and first > middle > last and begin - middle > _SLOWER * (middle - last)
    bends = np.abs(np.diff(x, 2))
    return bool(falls and np.median(bends) > _SMOOTH * np.ptp(x))


def _core(tag: str) -> str:
    return " ".join(EVAL.sub(" ", words(tag)).replace("/", " ").split())


def _aside(tag: str) -> bool:
    """Whether a word says that it is none: a rate, an extreme; "eps mse" is an error all the same."""
    named, text = data()["objective"], words(tag).replace("/", " ").split()
    by_itself = [] if text[-1:] and text[-1] in named["of_something"] else named["falls_by_itself"].split()
    return not {*named["aside"].split(), *by_itself}.isdisjoint(text)
