"""Which metric is judged as the loss of a run that logs none: a squared error, a cost, an ELBO, the score of a booster.

The words of a tag without those of its split ("valid_0's multi_logloss" -> "multi logloss") are looked up in the lists of
``names.toml``: whole objectives first, then errors, then scores. The best one that was logged is taken, in training and on held-out
data the same one; it is named ``loss.train`` or ``loss.eval``, and ``score.train`` or ``score.eval`` where it rises.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL, TRAIN, home, split
from parsers.name_rules import data, words
from parsers.names import Meaning

# beside one of these nothing else stands for the loss, but a whole beside a perplexity alone
LOSSES = ("loss.train", "loss.eval", "ppl.", "bpb.")
_OF_A_SET = lazy_re(r"^(\d+ )?(s )?")  # what is left of "valid_1's" and "validation_0"
# "ndcg 10", "recall at 10"; "m ap 50 95 b": overlaps, and Ultralytics' box, mask or pose
_CUT_OFF = lazy_re(r"(?: at)?(?: \d+(?:\.\d+)?){0,3}(?: [bmp])?$")
_CALLED = lazy_re(r"(?<=\w) (?:obj|objective|cost|criterion)$")  # "bpr obj"
_AVERAGED = lazy_re(r"^(?:macro|micro|weighted) | (?:macro|micro|weighted)$")  # over classes: "f 1 macro"
_OF_RETURNS = {"ic", "rank ic"}  # the information coefficient
_OF_SETS = {"gamma"}  # a booster's deviance, which names its set
_ANYTHING = {"total", "cost", "hinge", "focal", "triplet"}  # in a group of tags also a total of time, a term of a loss
_CRITERION = {"loss", "loss fn", "loss function", "loss type", "criterion"}  # settings
_CROSS_ENTROPIES = {"logloss", "multi logloss", "binary logloss", "mlogloss"}
_KINDS = ("whole_falls", "whole_rises", "error_falls", "score_rises")  # best first


class Objective(NamedTuple):
    rank: int  # place in the lists of names.toml: the smallest is taken
    side: str  # train or eval
    rises: bool
    whole: bool  # not an error or score that may be one of several
    core: str = ""  # the words that name it

    @property
    def guess(self) -> float | None:
        """What one scores who knows nothing, where the definition of the score says it."""
        told = data()["objective"]["guess"].get(self.core)
        return None if told is None else float(told)


@cache
def _known() -> dict[str, tuple[int, str]]:
    """Words -> (rank, kind)."""
    every = [(core, kind) for kind in _KINDS for core in data()["objective"][kind]]
    return {core: (rank, kind) for rank, (core, kind) in reversed(list(enumerate(every)))}


@cache
def _noise() -> frozenset[str]:
    return frozenset(data()["loss"]["noise"].split()) | {"_", "learn", "last", "on"}


@lru_cache(maxsize=65536)
def objective(tag: str, folder: str = "") -> Objective | None:
    """What a tag says of an objective; None where it names none."""
    text = words(tag)
    left = _OF_A_SET.sub("", " ".join(w for w in EVAL.sub(" ", text).replace("/", " ").split() if w not in _noise()))
    called = _CALLED.sub("", left)
    core = called if _known().get(called, (0, ""))[1].endswith("falls") else left if left in _known() else _CUT_OFF.sub("", left)
    if _known().get(averaged := _AVERAGED.sub("", left), (0, ""))[1] == "score_rises":
        core = averaged
    if core not in _known():
        # "vae/objective": what a group of tags calls whole
        core = " ".join(w for w in text.rpartition("/")[2].split() if w not in _noise())
        if "/" not in text or core in _ANYTHING or not _known().get(core, (0, ""))[1].startswith("whole"):
            return None
    if core in _OF_RETURNS and not EVAL.search(text):  # "ic" alone is the term of an initial condition
        return None
    if core in _OF_SETS and not (EVAL.search(text) or TRAIN.search(text)):  # "gamma" alone is a discount
        return None
    rank, kind = _known()[core]
    # BasicSR and Ultralytics log losses of the training under their names, and what held-out data gave under metrics/
    searched = (core in data()["objective"]["ranking"] or tag.startswith("metrics/")) and not TRAIN.search(text)
    side = "eval" if searched else split(text, folder)
    return Objective(rank, side, kind.endswith("rises"), kind.startswith("whole"), core)


def is_likelihood(tag: str) -> bool:
    """Whether a tag names a log-likelihood, whose sign tells which way it is to go."""
    told = objective(tag)
    return told is not None and told.whole and told.rises


def is_among(tag: str, those: str) -> bool:
    """Whether a tag names an objective of a list of names.toml: ``either`` (some raise it, others lower it), ``shares`` (one at most), or
    ``never_negative`` (values below zero show that it was logged with the other sign)."""
    told = objective(tag)
    return told is not None and told.core in data()["objective"][those]


def stand_ins(meanings: Mapping[tuple[str, str], Meaning], criteria: Collection[str] = ()) -> dict[tuple[str, str], Meaning]:
    """(source, tag) -> its meaning, of the tags that are judged as the loss; none where a loss was logged, or a policy was trained. `criteria` are
    the values under which config names the loss."""
    logged = {m.name for m in meanings.values()}
    judged_by = {name for name in logged if name.startswith((*LOSSES, "rl."))}
    if any(not name.startswith("ppl.") for name in judged_by):
        return (
            _of_training(meanings)
            if judged_by == {"loss.eval"}
            else _of_criterion(meanings, criteria)
            if judged_by == {"loss.train"}
            else {}
        )
    terms = bool(judged_by) or any(
        name.startswith("loss.") for name in logged
    )  # a perplexity may well be that of the evaluation beside "bpc"
    found = {
        key: told
        for key, m in meanings.items()
        if m.name.startswith("other/") and (told := objective(key[1], home(key[0]))) is not None and (told.whole or not terms)
    }
    nameless = _nameless(meanings)
    if nameless and {source for source, _ in found} <= {source for source, _ in nameless}:  # else another file has the curve with its name
        found = nameless
    found = found or _of_something(meanings)
    if not found:
        return {}
    trained = {o.rank for o in found.values() if o.side == "train"}
    named = {o.rank for key, o in found.items() if o.side == "train" and TRAIN.search(words(key[1]))}  # a bare "RMSE" may be of either set
    best = min(found.values(), key=lambda o: (not o.whole, o.rank not in named, o.rank not in trained, o.rank)).rank
    taken = {key: o for key, o in found.items() if o.rank == best}
    rivals = sorted({key[1] for key in found.keys() - taken.keys()})
    beside = f"; {', '.join(rivals[:3])} {'is' if len(rivals) == 1 else 'are'} not" if rivals else ""
    judged = {key: _as_loss(meanings[key], key[1], o, beside) for key, o in taken.items()}
    if terms or any(o.side == "train" for o in taken.values()):
        return judged
    return judged | (_like_evaluation(meanings, taken) or _error_of_training(meanings))


def criteria(config: pa.Table) -> set[str]:
    """The values of the settings that name the loss."""
    told = zip(config["key"].to_pylist(), config["value"].to_pylist(), strict=True)
    return {str(value).strip("\"'") for key, value in told if words(key.rpartition(".")[2]) in _CRITERION}


def _of_training(meanings: Mapping[tuple[str, str], Meaning]) -> dict[tuple[str, str], Meaning]:
    """The one whole objective of the training beside a loss that only the evaluation has: "ctc" beside "val loss"."""
    others = {key for key, m in meanings.items() if m.name.startswith(("other/", "loss.aux"))}
    found = {}
    for source, tag in others:
        told = objective(tag, home(source))
        if told is not None and told.whole and told.side == "train" and not told.rises:
            found[source, tag] = told
    sets = data()["objective"]["nameless"]
    # "train 2.31" beside "val loss 2.40"
    found = found or {key: Objective(0, "train", False, True) for key in others if sets.get(words(key[1])) == "train"}
    if len({tag for _, tag in found}) != 1:
        return {}
    return {key: _as_loss(meanings[key], key[1], o, "", " of the training") for key, o in found.items()}


def _of_criterion(meanings: Mapping[tuple[str, str], Meaning], criteria: Collection[str]) -> dict[tuple[str, str], Meaning]:
    """The error of held-out data that config names as the loss, or one that is nothing else, beside a loss that only the training has: "eval mse" beside
    "loss", "val logloss"."""
    cores = {told.core for value in criteria if (told := objective(value)) is not None and not told.rises} | _CROSS_ENTROPIES
    logged = {key: o for key, m in meanings.items() if m.name.startswith("other/") and (o := objective(key[1], home(key[0])))}
    found = {key: o for key, o in logged.items() if o.side == "eval" and o.core in cores}
    if len({words(tag).replace("/", " ") for _, tag in found}) != 1:  # "val/logloss" on a tracker, "val logloss" in its console
        return {}
    of_config = {key: ", which config says it is" * (o.core not in _CROSS_ENTROPIES) for key, o in found.items()}
    return {key: _as_loss(meanings[key], key[1], o, of_config[key], " of held-out data") for key, o in found.items()}


def _of_something(meanings: Mapping[tuple[str, str], Meaning]) -> dict[tuple[str, str], Objective]:
    """``eps_mse``, ``G/l1_hole``: the one error that names what it is of, and the same of held-out data; of several the one that both have."""
    found: dict[str, dict[tuple[str, str], Objective]] = {}
    for (source, tag), m in meanings.items():
        core = " ".join(EVAL.sub(" ", (text := words(tag)).rpartition("/")[2]).split())
        if m.name.startswith("other/") and _is_of_something(core) and not _is_aside(text):
            side = split(text, home(source))
            found.setdefault(core, {})[source, tag] = Objective(len(_known()), side, False, False, core)
    both = [told for told in found.values() if len({o.side for o in told.values()}) > 1]
    only = both if len(both) == 1 else [*found.values()]
    return only[0] if len(only) == 1 and any(o.side == "train" for o in only[0].values()) else {}


def _error_of_training(meanings: Mapping[tuple[str, str], Meaning]) -> dict[tuple[str, str], Meaning]:
    """``train/rating_mse`` beside ``test/rmse``: the one error that names what it is of, where none of the same words was evaluated."""
    found = {key: o for key, o in _of_something(meanings).items() if o.side == "train"}
    return {key: _as_loss(meanings[key], key[1], o, "", " of the training") for key, o in found.items()}


def _is_of_something(core: str) -> bool:
    return any(core.startswith(f"{e} ") or core.endswith(f" {e}") for e in data()["objective"]["of_something"])


def is_nameless(tag: str) -> bool:
    """Whether a tag names a set alone: what was measured on it is a loss, or an accuracy."""
    return words(tag) in data()["objective"]["nameless"]


def _nameless(meanings: Mapping[tuple[str, str], Meaning]) -> dict[tuple[str, str], Objective]:
    """Sets without a metric: two side by side, or that of CatBoost's console, which leaves out the metric that its other files have."""
    sets, beside = data()["objective"]["nameless"], set(data()["objective"]["nameless_beside"])
    tags: dict[str, set[str]] = {}
    for (source, tag), m in meanings.items():
        if m.name.startswith("other/"):
            tags.setdefault(source, set()).add(words(tag))
    told = {
        source for source, logged in tags.items() if beside <= logged or {sets.get(tag) for tag in logged - beside} >= {"train", "eval"}
    }
    found = {(s, tag) for s, tag in meanings if s in told and words(tag) in sets and words(tag) in tags[s]}
    return {(s, tag): Objective(len(_known()), sets[words(tag)], False, True) for s, tag in found}


def _like_evaluation(
    meanings: Mapping[tuple[str, str], Meaning], taken: Mapping[tuple[str, str], Objective]
) -> dict[tuple[str, str], Meaning]:
    """``rain/mse`` beside ``val/mse``, ``mse_is`` beside ``mse_oos``: the one other tag that ends, or begins, like the objective of an evaluation is that
    of the training."""
    endings = {rest for _, tag in taken if (rest := EVAL.sub("", words(tag)))[:1] in {"/", " "}}  # "mse" alone would end "rmse"
    own = {tag for _, tag in taken}
    beginnings = {rest for _, tag in taken if (rest := EVAL.sub("", words(tag)))[-1:] in {"/", " "}}  # "mse is" beside "mse oos"
    found = {
        key: next(iter(taken.values()))
        for key, m in meanings.items()
        if m.name.startswith("other/")
        and key[1] not in own
        and ((text := words(key[1])).endswith(tuple(endings)) or any(text.startswith(b) and " " not in text[len(b) :] for b in beginnings))
        and _may_train(text, key[0])
    }
    if len({tag for _, tag in found}) != 1:
        return {}
    like = f", which is called like {sorted(own)[0]}: that of the training"
    return {key: _as_loss(meanings[key], key[1], o._replace(side="train"), like) for key, o in found.items()}


def _may_train(text: str, source: str) -> bool:
    """A tag of no evaluation, of nothing that others are compared with, and of no part of a model."""
    return split(text, home(source)) == "train" and not _is_aside(text)


def _is_aside(text: str) -> bool:
    return not set(data()["objective"]["aside"].split()).isdisjoint(text.replace("/", " ").split())


def _as_loss(m: Meaning, tag: str, o: Objective, beside: str, of: str = "") -> Meaning:
    family, how = ("score", "as an objective that rises") if o.rises else ("loss", "as the loss")
    said = f"No loss was logged{of}: {tag} is judged {how}{beside}."
    return replace(m, name=f"{family}.{o.side}", unit=m.unit or data()["objective"]["unit"].get(words(tag).split()[-1], ""), trap=said)
