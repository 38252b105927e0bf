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

from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL, SPLIT_FAMILIES, TRAIN, folder_split, folder_start, last_folder, split, which_loss, with_folder_key
from parsers.name_rules import LONGEST, beside, data, first, matches, words

_WIDE, _MOST_SHAPES = 2000, 5000  # tags of one source beyond which they are named by shape, and how many shapes are
_NUMBER = lazy_re(r"\d+")
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
    found = _meaning(tag_as_read, framework, _telling(folder, (folder_start(tag_as_read),)), siblings)
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
    if last_folder(folder).startswith(starts):
        return folder
    return "eval" if folder_split(folder) == "eval" else ""


@lru_cache(maxsize=64)
def _folder_starts(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder_start(tag[:LONGEST]) for tag in tags)


@lru_cache(maxsize=65536)
def _with_tag(found: Meaning, tag: str) -> Meaning:
    return replace(found, name=f"{found.name}/{tag}")


@cache
def vocabulary() -> Mapping[str, tuple[str, str]]:
    """Canonical name -> (what it is, its usual unit or "")."""
    return {name: (entry["what"], entry.get("unit", "")) for name, entry in data()["vocabulary"].items()}


# -- one tag ----------------------------------------------------------------------------------------------------------


_SPLIT_ALONE = lazy_re(r"([a-z].*) (?:val|valid|validation|dev|eval|test)$")


@lru_cache(maxsize=65536)
def _meaning(tag: str, framework: str | None, folder: str, siblings: frozenset[str]) -> Meaning:
    effective = with_folder_key(tag, folder)
    if effective != tag:
        siblings = frozenset()  # one tag a folder: the others are in the folders beside it
    text = words(effective)
    if (m := _SPLIT_ALONE.match(text)) is not None and any(words(t) == f"{m[1]} loss" for t in siblings):
        text += " loss"  # sft_val beside sft_loss
    entry = data()["framework"].get(framework or "", {})
    rule = first(text, siblings, entry.get("note", ())) or first(text, siblings, data()["rule"]) or {"name": "other"}
    name = rule["name"]
    if name == "loss":
        name = which_loss(text, folder, siblings)
    elif name in ("ppl", "acc", "bpb"):
        name = f"{name}.{'eval' if name == 'bpb' and not TRAIN.search(text) else split(text, folder)}"
    found = {"unit": "", "smoothing": _smoothing(text), "trap": ""}
    found |= {key: rule[key] for key in found if key in rule}
    for note in entry.get("note", ()):
        if note.get("of") == name and matches(note, text, siblings):
            found |= {key: note[key] for key in found if key in note}
    if not found["trap"] and name in vocabulary() and not name.startswith(SPLIT_FAMILIES) and EVAL.search(text):
        found["trap"] = "Measured during evaluation, not in training."
    return Meaning(name, **(found | {"unit": found["unit"] or _unit(name, text, siblings, bool(entry.get("lm")))}))


# -- unit and smoothing as the tag itself says them -------------------------------------------------------------------

_TOKENS = r"\btok(en)?s?\b|\bppl\b|\bperplexity\b|\bbpb\b|\blm loss\b"
_BYTES = lazy_re(r"(?<![a-z])(gib|gb|mib|mb|kib|kb|bytes|megabytes|%|percent|percentage)(?![a-z])")
_SPELLED = {"gib": "GiB", "mib": "MiB", "kib": "KiB", "bytes": "bytes", "megabytes": "MB", "percent": "%", "percentage": "%"}
_TIME = lazy_re(r"\b(ms|us|milliseconds?|hours?)\b|\btime min$")
_FLOPS = lazy_re(r"\b([tg]?) ?flops?\b")


def _unit(name: str, text: str, siblings: frozenset[str], lm: bool) -> str:
    family = name.split(".")[0]
    if name in ("loss.train", "loss.eval", "loss.train_max_rank"):
        if lm or re.search(_TOKENS, text) or (siblings and beside(_TOKENS, siblings) and not _of_codes(siblings)):
            return "nats/token"
        return "nats" if re.search(r"\bcross ?entropy\b|\bx ?ent(ropy)?\b|\bnll\b|\bb?ce\b", text) else ""
    if family in ("time", "axis") and (said := _TIME.search(text)):
        return {"m": "ms", "u": "us", "h": "h", None: "min"}[said[1] and said[1][0]]
    if (family in ("mem", "disk", "net", "gpu") or name == "mfu") and (said := _BYTES.search(text)):
        return _SPELLED.get(said[1], said[1].upper())
    if name == "flops.dev" and (said := _FLOPS.search(text)):
        return f"{said[1].upper()}FLOP/s"
    return vocabulary().get(name, ("", ""))[1]


def _of_codes(siblings: frozenset[str]) -> bool:
    """Whether the rules take a perplexity beside these tags for one of a codebook's codes."""
    rule = first("perplexity", siblings, data()["rule"])
    return rule is not None and rule["name"] != "ppl"


def _smoothing(text: str) -> str:
    if re.search(r"\bema\b", text):
        return "EMA"
    if re.search(r"\b(loss|acc|accuracy) epoch$|\bepoch( val)? (loss|acc|accuracy)$", text):
        return "running epoch mean"
    return "running mean" if re.search(r"\b(running|smooth|smoothed|debiased)\b(?! l \d)", text) else "none"
