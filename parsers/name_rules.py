"""The rules of ``names.toml``, a tag in words, and which rule fits it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from parsers.lazy_regex import lazy_re
from parsers.other_languages import named_in_english, without_accents

LONGEST = 300  # characters of a name that are looked at; names are shorter, damage and prose are not


@cache
def data() -> dict[str, Any]:
    """``names.toml``: "rule", "vocabulary", "framework", "context", "loss"."""
    with Path(__file__).with_name("names.toml").open("rb") as file:
        known = tomllib.load(file)
    for rule in known["rule"]:
        if isinstance(rule["when"], list):
            rule["when"] = "|".join(rule["when"])
    return known


def found(pattern: str, text: str, flags: int = 0) -> bool:
    """Whether ``pattern`` matches somewhere."""
    return regex(pattern, flags).search(text) is not None


@cache
def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern."""
    return re.compile(pattern, flags)


def first(text: str, siblings: frozenset[str], rules: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return next((rule for rule in rules if "name" in rule and matches(rule, text, siblings)), None)


def matches(rule: dict[str, Any], text: str, siblings: frozenset[str]) -> bool:
    if "when" in rule and not found(rule["when"], text):
        return False
    if siblings and not all(beside(regex, siblings) for regex in rule.get("near", ())):
        return False
    return "beside" not in rule or (bool(siblings) and all(beside(regex, siblings) for regex in rule["beside"]))


@lru_cache(maxsize=4096)
def beside(regex: str, siblings: frozenset[str]) -> bool:
    return found(data()["context"].get(regex, regex), _lines(siblings), re.MULTILINE)


@lru_cache(maxsize=64)
def _lines(siblings: frozenset[str]) -> str:
    return "\n".join(sorted(words(tag) for tag in siblings))


_ANSI = lazy_re(r"\x1b\[[0-9;]*m")
_NORM = lazy_re(r"[|‖]{1,2}([\w∇]+)[|‖]{1,2}")  # |g|, as a formula has it
# the letters of such formulas, of which each is a word
_SIGNS = str.maketrans({
    "θ": " theta ", "ϑ": " theta ", "∇": " grad ", "η": " eta ", "ℒ": " loss ", "λ": " lambda ", "σ": " sigma ", "β": " beta ", "κ": " kappa ", "γ": " gamma ",
    "ε": " eps ", "ϵ": " eps ", "τ": " tau ", "μ": " mu ", "α": " alpha ", "ρ": " rho ", "ω": " omega ", "Δ": " delta ", "∆": " delta ",
})  # fmt: skip
_WORD = lazy_re(r"\d+(?:\.\d+)?|[KMGT]i?B(?![a-z])|T?FLOPS?(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|%|[/\\.|:]+")
_GLUED = lazy_re(
    r"\b(train|training|tr|val|valid|validation|test|eval|dev|total|avg|batch|epoch|running|grad"
    r"|gradient|param|weight|learning|step|iter)(loss|acc|accuracy|ppl|norm|rate|time)\b"
)
_LOADER = lazy_re(r"/dataloader idx \d+$")  # Lightning's suffix where there are several evaluation sets


@lru_cache(maxsize=65536)
def words(tag: str) -> str:
    """The tag in lower-case words, parts separated by "/": 'train/CrossEntropyLoss' -> 'train/cross entropy loss'."""
    bare = _NORM.sub(r"\1 norm", _ANSI.sub("", tag[:LONGEST]))
    found = _WORD.findall(bare if bare.isascii() else without_accents(bare).translate(_SIGNS))
    text = " ".join("/" if word[0] in "/\\.|:" else word.lower() for word in found).replace(" / ", "/").strip(" /")
    text = named_in_english(_LOADER.sub("", _GLUED.sub(r"\1 \2", text)))
    return f"_ {text}" if tag.startswith("_") else text  # W&B and others keep their own names apart with an underscore
