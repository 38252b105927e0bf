"""Which tag is judged as the loss where none has that word and one is called the sum of terms: ``bc/total`` beside ``bc/speed_ce``, ``L.sum``, ``joint``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.loss_names import EVAL, home, split
from parsers.name_rules import data, words
from parsers.names import Meaning

SUMMED = "the sum of those beside it"
Key = tuple[str, str]  # file and tag
_SUMS = frozenset({"total", "sum", "all", "joint", "overall", "combined"})
_PLAINEST = frozenset({"total", "sum"})
_OTHERS, _FEW = 2, 3  # bounds: of one term nobody takes a sum; values that show fractions
_MAY_BE = ("other/", "loss.")


def told(metrics: pa.Table, meanings: Mapping[Key, Meaning]) -> dict[Key, Meaning]:
    """The meanings of a sum and of its terms that were taken for the loss before; none where a loss of the training is called so, or each of several groups
    has a sum."""
    headlines = [at for at, m in meanings.items() if m.name in ("loss.train", "loss.eval")]
    named = {_side(at) for at in headlines if "loss" in words(at[1])}
    if "train" in named or any(m.name.startswith("rl.") for m in meanings.values()):
        return {}
    called = [at for at in _called(meanings) if _side(at) not in named and _measures(_values(metrics, *at))]
    trained = [at for at in called if _side(at) == "train"]
    if len({tag for _, tag in trained}) != 1 or trained[0] in headlines:
        return {}
    sides = {_side(at) for at in called}
    said = f"No loss was logged: {trained[0][1]} is judged as the loss, {SUMMED}."
    whole = {at: replace(meanings[at], name=f"loss.{_side(at)}", trap=said) for at in called}
    terms = [at for at in headlines if at not in called and _side(at) in sides]
    return whole | {at: replace(meanings[at], name="loss.aux", trap=f"{trained[0][1]} is {SUMMED}.") for at in terms}


def _called(meanings: Mapping[Key, Meaning]) -> list[Key]:
    """What is called a sum among things of which one is a term of a loss by its words, in its group of tags or, where it has none, in its file; or by the
    plainest of such words in a group of which nothing else is known, neither times nor memory."""
    groups: dict[Key, list[str]] = {}
    for source, tag in meanings:
        groups.setdefault((source, words(tag).rpartition("/")[0]), []).append(tag)
    found = []
    for (source, group), tags in groups.items():
        alone = not group or EVAL.fullmatch(group) is not None
        around = [t for s, t in meanings if s == source] if alone else tags
        unknown = [t for t in around if meanings[source, t].name.startswith(_MAY_BE)]
        beside = [t for t in unknown if _last(t) not in _SUMS]
        if len(beside) >= _OTHERS:
            plain = not alone and unknown == tags and _by_itself().isdisjoint(group.replace("/", " ").split())
            wanted = _SUMS if any(map(_is_term, beside)) else _PLAINEST if plain else frozenset[str]()
            found += [(source, t) for t in tags if _last(t) in wanted and t in unknown]
    return found


def _side(at: Key) -> str:
    return split(words(at[1]), home(at[0]))


def _last(tag: str) -> str:
    return EVAL.sub("", words(tag).rpartition("/")[2]).removeprefix("train ").strip()


@cache
def _by_itself() -> frozenset[str]:
    return frozenset(data()["objective"]["falls_by_itself"].split())


@cache
def _terms() -> frozenset[str]:
    lists = data()["objective"]
    told = (*lists["whole_falls"], *lists["error_falls"], *data()["loss"]["aux"].split(), *data()["loss"]["main"].split())
    return frozenset(told) - _SUMS


def _is_term(tag: str) -> bool:
    last = _last(tag)
    return last in _terms() or not _terms().isdisjoint(last.split())


def _values(metrics: pa.Table, source: str, tag: str) -> NDArray[np.float64]:
    (of, paths), (code, tags) = arrow.codes(metrics["source"]), arrow.codes(metrics["tag"])
    x = arrow.values(metrics["value"])[(of == paths.index(source)) & (code == tags.index(tag))]
    finite: NDArray[np.float64] = x[np.isfinite(x)]
    return finite


def _measures(x: NDArray[np.float64]) -> bool:
    """Whether values are fractions: whole numbers count something."""
    return len(x) >= _FEW and bool((x != np.floor(x)).any())
