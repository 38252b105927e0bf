"""Reads what a logged metric name means: its canonical name, unit, smoothing and the trap in it.

Every framework has its own name for the loss, and users have more. A tag is taken apart into words (the same ones for
"train/CrossEntropyLoss" and "train.cross-entropy_loss"), ordered rules name it, and what else the same file logs
settles the rest: "train_loss" beside "train_runtime" is Hugging Face's mean of the run, "box_loss" beside "total_loss"
a term of it. Rules, vocabulary and what is known of each framework are data, in ``names.toml``; they come from the
sources of the frameworks.

The headline among losses is the one that calls itself total (or nothing at all), else a likelihood, else the only one
there is. The others are ``loss.aux``, or ``loss.part`` for the loss on a part of the data ("loss/wikipedia").
Words of the evaluation split in a name make it ``.eval``; so does a folder of that split where the name says nothing.
A tag that no rule knows is ``other/<tag>``; the same values on another axis, and progress figures, are ``axis/<tag>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from parsers import name_rules
from parsers.name_rules import LONGEST

_WIDE, _MOST_SHAPES = 2000, 5000  # tags of one source beyond which they are named by shape, and how many shapes are
_NUMBER = re.compile(r"\d+")
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Meaning:
    """``name`` is canonical, or ``other/<tag>`` or ``axis/<tag>``; ``unit`` is "" where nothing says it; ``smoothing``
    is "none" or what the logger did ("mean of interval", "median of 20", "EMA 0.9"); ``trap`` is a sentence or "".
    """

    name: str
    unit: str = ""
    smoothing: str = "none"
    trap: str = ""


def meaning(
    tag: str,
    *,
    framework: str | None = None,
    folder: str = "",
    siblings: frozenset[str] = frozenset(),
    overrides: Mapping[str, str] = NOTHING,
) -> Meaning:
    """What ``tag`` stands for. Never fails, whatever the tag holds.

    ``folder`` is the file's folder relative to the run (TensorBoard keeps splits there). ``siblings`` are all tags of
    the same source, empty where they are unknown (pass the same object for all of them: answers are cached).
    ``overrides`` is the user's ``{canonical: tag}``: that tag gets the name, and others lose it.
    """
    tag_as_read = tag[:LONGEST]
    found = _meaning(tag_as_read, framework, _telling(folder, (_folder_start(tag_as_read),)), siblings)
    for name, wanted in overrides.items():
        if wanted == tag:
            return found if found.name == name else Meaning(name, vocabulary().get(name, ("", ""))[1])
    if found.name in overrides:
        found = replace(found, name="loss.aux" if found.name.startswith("loss.") else "other")
    return _with_tag(found, tag) if found.name in ("other", "axis") else found


def meanings(
    tags: Iterable[str], *, framework: str | None = None, folder: str = "", overrides: Mapping[str, str] = NOTHING
) -> Mapping[str, Meaning]:
    """What each tag of one source stands for.

    Where there are thousands, tags that differ in their numbers only (``layer.0.norm``, ``layer.1.norm``) are taken to
    mean the same, and of these shapes the first _MOST_SHAPES are looked at; the rest is ``other/<tag>``.
    """
    logged = tuple(tags)
    if len(logged) <= _WIDE:
        return _meanings(logged, framework, _telling(folder, _folder_starts(logged)), tuple(overrides.items()))
    shapes = {t: _NUMBER.sub("0", t[:LONGEST]) for t in logged}
    first: dict[str, str] = {}
    for t, shape in shapes.items():
        if len(first) < _MOST_SHAPES or shape in first:
            first.setdefault(shape, t)
    siblings, given = frozenset(first.values()), frozenset(overrides.values())
    found = {}
    for t, shape in shapes.items():
        speaker = t if t in given else first.get(shape)
        known = (
            Meaning("other/")
            if speaker is None
            else meaning(speaker, framework=framework, folder=folder, siblings=siblings, overrides=overrides)
        )
        kind, is_own, _ = known.name.partition("/")
        found[t] = replace(known, name=f"{kind}/{t}") if is_own and kind in ("other", "axis") else known
    return found


@lru_cache(maxsize=64)
def _meanings(tags: tuple[str, ...], framework: str | None, folder: str, overrides: tuple[tuple[str, str], ...]) -> Mapping[str, Meaning]:
    """One answer for the many runs of a folder, which log the same tags."""
    siblings, given = frozenset(tags), dict(overrides)
    return MappingProxyType({t: meaning(t, framework=framework, folder=folder, siblings=siblings, overrides=given) for t in tags})


def _telling(folder: str, starts: tuple[str, ...]) -> str:
    """What tags have to know of their folder: all of it where add_scalars may have written it, else the split it names."""
    if _last(folder).startswith(starts):
        return folder
    return "eval" if _folder_split(folder) == "eval" else ""


@lru_cache(maxsize=64)
def _folder_starts(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_folder_start(tag[:LONGEST]) for tag in tags)


@lru_cache(maxsize=65536)
def _with_tag(found: Meaning, tag: str) -> Meaning:
    return replace(found, name=f"{found.name}/{tag}")


@cache
def vocabulary() -> Mapping[str, tuple[str, str]]:
    """Canonical name -> (what it is, its usual unit or "")."""
    return {name: (entry["what"], entry.get("unit", "")) for name, entry in name_rules.data()["vocabulary"].items()}


# -- one tag ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _meaning(tag: str, framework: str | None, folder: str, siblings: frozenset[str]) -> Meaning:
    effective = _with_folder_key(tag, folder)
    if effective != tag:
        siblings = frozenset()  # one tag a folder: the others are in the folders beside it
    text = words(effective)
    entry = name_rules.data()["framework"].get(framework or "", {})
    rule = _first(text, siblings, entry.get("note", ())) or _first(text, siblings, name_rules.data()["rule"]) or {"name": "other"}
    name = rule["name"]
    if name == "loss":
        name = _which_loss(text, folder, siblings)
    elif name in ("ppl", "acc", "bpb"):
        name = f"{name}.{'eval' if name == 'bpb' and not _TRAIN.search(text) else _split(text, folder)}"
    found = {"unit": "", "smoothing": _smoothing(text), "trap": ""}
    found |= {key: rule[key] for key in found if key in rule}
    for note in entry.get("note", ()):
        if note.get("of") == name and _matches(note, text, siblings):
            found |= {key: note[key] for key in found if key in note}
    if not found["trap"] and name in vocabulary() and not name.startswith(_SPLIT_FAMILIES) and _EVAL.search(text):
        found["trap"] = "Measured during evaluation, not in training."
    return Meaning(name, **(found | {"unit": found["unit"] or _unit(name, text, siblings, bool(entry.get("lm")))}))


def _first(text: str, siblings: frozenset[str], rules: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return next((rule for rule in rules if "name" in rule and _matches(rule, text, siblings)), None)


def _matches(rule: dict[str, Any], text: str, siblings: frozenset[str]) -> bool:
    if "when" in rule and not name_rules.found(rule["when"], text):
        return False
    if siblings and not all(_beside(regex, siblings) for regex in rule.get("near", ())):
        return False
    return "beside" not in rule or (bool(siblings) and all(_beside(regex, siblings) for regex in rule["beside"]))


@lru_cache(maxsize=4096)
def _beside(regex: str, siblings: frozenset[str]) -> bool:
    return name_rules.found(name_rules.data()["context"].get(regex, regex), _lines(siblings), re.MULTILINE)


@lru_cache(maxsize=64)
def _lines(siblings: frozenset[str]) -> str:
    return "\n".join(sorted(words(tag) for tag in siblings))


_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_WORD = re.compile(r"\d+(?:\.\d+)?|[KMGT]i?B(?![a-z])|T?FLOPS?(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|%|[/\\.|:]+")
_GLUED = re.compile(
    r"\b(train|training|tr|val|valid|validation|test|eval|dev|total|avg|batch|epoch|running|grad"
    r"|gradient|param|weight|learning|step|iter)(loss|acc|accuracy|ppl|norm|rate|time)\b"
)
_LOADER = re.compile(r"/dataloader idx \d+$")  # Lightning's suffix where there are several evaluation sets


@lru_cache(maxsize=65536)
def words(tag: str) -> str:
    """The tag in lower-case words, parts separated by "/": 'train/CrossEntropyLoss' -> 'train/cross entropy loss'."""
    found = _WORD.findall(_ANSI.sub("", tag[:LONGEST]))
    text = " ".join("/" if word[0] in "/\\.|:" else word.lower() for word in found).replace(" / ", "/").strip(" /")
    text = _LOADER.sub("", _GLUED.sub(r"\1 \2", text))
    return f"_ {text}" if tag.startswith("_") else text  # W&B and others keep their own names apart with an underscore


# -- which split, which of the losses ---------------------------------------------------------------------------------

_EVAL_WORDS = "val|valid|validation|eval|evaluation|evaluate|test|testing|dev|holdout|heldout|held out"
_EVAL = re.compile(rf"\b({_EVAL_WORDS}|tel)\b")
_TRAIN = re.compile(r"\b(train|training|trn|tr|trl)\b")
_SPLIT_FAMILIES = ("loss.", "ppl.", "bpb.", "acc.")  # the name itself says which split
_EVAL_FOLDER = re.compile(r"(val|valid|validation|eval|evaluation|dev|holdout)([_-].*)?$")


def _split(text: str, folder: str) -> str:
    if _EVAL.search(text):
        return "eval"
    return "train" if _TRAIN.search(text) else _folder_split(folder)


@lru_cache(maxsize=4096)
def _folder_split(folder: str) -> str:
    """Of the nearest folder that names a split; "test" counts only as the nearest, for runs are called that too."""
    parts = [p for p in folder[-LONGEST:].replace("\\", "/").lower().split("/") if p not in ("", ".")]
    if parts and parts[-1] in ("test", "testing"):
        return "eval"
    for part in reversed(parts):
        if _EVAL_FOLDER.match(part):
            return "eval"
        if part in ("train", "training"):
            break
    return "train"


def _with_folder_key(tag: str, folder: str) -> str:
    """``SummaryWriter.add_scalars("loss", {"val": x})`` writes "loss" into a folder "loss_val": -> "loss/val"."""
    last, start = _last(folder), _folder_start(tag)
    return f"{tag}/{last[len(start) :]}" if len(last) > len(start) and last.startswith(start) else tag


def _last(folder: str) -> str:
    return folder.rstrip("/").rsplit("/", 1)[-1]


def _folder_start(tag: str) -> str:
    return tag.replace("/", "_") + "_"


class Loss(NamedTuple):
    split: str
    rank: int  # 0 calls itself total (or nothing), 1 a likelihood, 2 has some other name, 3 a known term of a sum
    core: str  # the words that tell it from other losses


@cache
def _loss_words(kind: str) -> frozenset[str]:
    return frozenset(name_rules.data()["loss"][kind].split())


@lru_cache(maxsize=65536)
def _loss(text: str, folder: str) -> Loss:
    left = [w for w in text.replace("/", " ").split() if w not in _loss_words("noise") and w != "_"]
    names = {w for w in left if not w[0].isdigit()}
    if names <= _loss_words("total"):
        rank = 1 if left and not names else 0  # TensorFlow 1 calls a second "loss" "loss_1"
    elif names <= _loss_words("main") | _loss_words("total"):
        rank = 1
    else:
        rank = 3 if names & _loss_words("aux") else 2
    return Loss(_split(text, folder), rank, " ".join(left))


class Losses(NamedTuple):
    """What a source has: the cores of its losses, all of them and by (split, rank); and whether it is of reinforcement
    learning, where the losses of policy and value are the headline."""

    cores: frozenset[str]
    by: dict[tuple[str, int], set[str]]
    rl: bool


@lru_cache(maxsize=256)
def _losses(siblings: frozenset[str], folder: str) -> Losses:
    by: dict[tuple[str, int], set[str]] = {}
    rl = False
    for text in map(words, siblings):
        name = (_first(text, siblings, name_rules.data()["rule"]) or {"name": "other"})["name"]
        rl = rl or name.startswith("rl.loss")
        if name == "loss":
            loss = _loss(text, folder)
            by.setdefault((loss.split, loss.rank), set()).add(loss.core)
    return Losses(frozenset().union(*by.values()), by, rl)


def _which_loss(text: str, folder: str, siblings: frozenset[str]) -> str:
    mine = _loss(text, folder)
    headline = f"loss.{mine.split}"
    if not siblings:
        return "loss.aux" if mine.rank == 3 else headline
    losses = _losses(siblings, folder)
    named = losses.by.get((mine.split, 2), set())
    best = min((rank for split, rank in losses.by if split == mine.split), default=mine.rank)
    if mine.rank == 0 or mine.rank == best == 1:
        return headline
    if losses.cores <= {mine.core} and not losses.rl:
        return headline  # the only loss there is, on one split or both
    if mine.rank == best == 2 and not losses.rl:
        other = "train" if mine.split == "eval" else "eval"
        terms = {core for (split, _), cores in losses.by.items() if split == other for core in cores}
        if named <= {mine.core} or (mine.split == "eval" and mine.core not in terms):
            return headline  # several named losses of the evaluation alone are data sets, not terms of a sum
    return "loss.part" if mine.rank == 2 and best < 2 and _PART.search(text) else "loss.aux"


_PART = re.compile(rf"\bloss(es)?[ /]({_EVAL_WORDS}|train)?[ /]?[^/]+$|^({_EVAL_WORDS}|train)[ /].+[ /]loss$")


# -- unit and smoothing as the tag itself says them -------------------------------------------------------------------

_TOKENS = r"\btok(en)?s?\b|\bppl\b|\bperplexity\b|\bbpb\b|\blm loss\b"
_BYTES = re.compile(r"(?<![a-z])(gib|gb|mib|mb|kib|kb|bytes|megabytes|%|percent|percentage)(?![a-z])")
_SPELLED = {"gib": "GiB", "mib": "MiB", "kib": "KiB", "bytes": "bytes", "megabytes": "MB", "percent": "%", "percentage": "%"}
_TIME = re.compile(r"\b(ms|us|milliseconds?|hours?)\b|\btime min$")
_FLOPS = re.compile(r"\b([tg]?) ?flops?\b")


def _unit(name: str, text: str, siblings: frozenset[str], lm: bool) -> str:
    family = name.split(".")[0]
    if name in ("loss.train", "loss.eval", "loss.train_max_rank"):
        if lm or re.search(_TOKENS, text) or (siblings and _beside(_TOKENS, siblings)):
            return "nats/token"
        return "nats" if re.search(r"\bcross ?entropy\b|\bx ?ent(ropy)?\b|\bnll\b|\bb?ce\b", text) else ""
    if family in ("time", "axis") and (said := _TIME.search(text)):
        return {"m": "ms", "u": "us", "h": "h", None: "min"}[said[1] and said[1][0]]
    if (family in ("mem", "disk", "net", "gpu") or name == "mfu") and (said := _BYTES.search(text)):
        return _SPELLED.get(said[1], said[1].upper())
    if name == "flops.dev" and (said := _FLOPS.search(text)):
        return f"{said[1].upper()}FLOP/s"
    return vocabulary().get(name, ("", ""))[1]


def _smoothing(text: str) -> str:
    if re.search(r"\bema\b", text):
        return "EMA"
    if re.search(r"\b(loss|acc|accuracy) epoch$|\bepoch( val)? (loss|acc|accuracy)$", text):
        return "running epoch mean"
    return "running mean" if re.search(r"\b(running|smooth|smoothed|debiased)\b(?! l \d)", text) else "none"
