"""Names of numbers that the words just before them do not tell: ``Loss at step 100: 0.5``, ``G loss=0.5, D loss=0.7``, ``, Negative ELBO  4.81, ``."""

from __future__ import annotations

import re

from parsers.console_format.grammars import RATE, STEP_WORD
from parsers.lazy_regex import lazy_re
from parsers.records.vocabulary import EPOCH

Key = tuple[str, str, bool, bool]  # as `grammars.key_of` gives it

_AT_STEP = lazy_re(
    rf"(?i)(?<![\w/-])(?P<name>[A-Za-z][\w/-]*+(?: [A-Za-z][\w/-]*+){{0,4}}) (?:at|after|for|in|@) (?:the )?(?:end of )?(?:(?:global|train|training) )?(?:{STEP_WORD}) *[:#=]? *\[?$"
)
_IS = {":", "=", "is", "->", "was", "]:", "):"}  # all that stands between such a step and its value
_WORDS = lazy_re(r"(?:[,|;\])]|(?<!\s)(?=\s{0,3}\t|\s{4}))\s*+[A-Za-z]{2,}+(?: [A-Za-z][\w-]*+){0,3}\s+$")
_CLOSED = lazy_re(r"\s*(?:$|[,|;\t]|\s{2,}|\(-?[\d.])")
_NEXT = lazy_re(r" [A-Za-z][\w-]{0,15} -?\d[\d./]*+\s*(?:\||$)")  # another name and its value, to the end of the cell
_SCORE = {("Score", "Score iteration"): "Score (loss)"}  # Deeplearning4j's ScoreIterationListener: what its training lowers
_RATE = lazy_re(rf"(?i){RATE}")
# words that tell two values of one thing apart: "gnorm local 0.9 reduced 0.6", "grad_norm before 3.1 after 1.0"
_CONTRASTS = ({"local", "reduced", "global"}, {"before", "after"}, {"raw", "clipped"}, {"mean", "median", "min", "max", "std"})
_FEW_WORDS = lazy_re(r"[A-Za-z]\w{0,15}(?: [A-Za-z]\w{0,15})?")


def named(keys: list[Key], gaps: list[str]) -> list[Key]:
    """The names of a line's numbers, each seen beside the others."""
    return episodes_apart(named_by_contrast(named_after_step(named_apart(keys), gaps), gaps))


def named_after_step(keys: list[Key], gaps: list[str]) -> list[Key]:
    """``Loss at step 100: 0.5``: the words before the step name the number behind it, which has none of its own."""
    for i in range(1, len(keys)):
        if not keys[i][0] and gaps[i].strip().lower() in _IS and (m := _AT_STEP.search(gaps[i - 1])) is not None:
            name = m["name"].strip()
            keys[i] = _SCORE.get((name, keys[i - 1][0]), name), "", True, False
    return keys


def named_by_contrast(keys: list[Key], gaps: list[str]) -> list[Key]:
    """``gnorm local 0.9 reduced 0.6``: a word alone between two values goes on the name before it, where it is the other of the word that ends that name."""
    for i in range(1, len(keys)):
        name, _, last = keys[i - 1][0].rpartition(" ")
        word = gaps[i].strip()
        if name and word != last and keys[i][0] == word and any({word, last} <= pair for pair in _CONTRASTS):
            keys[i] = f"{name} {word}", *keys[i][1:]
    return keys


def named_apart(keys: list[Key]) -> list[Key]:
    """``G loss=0.5, D loss=0.7``: names that touch their numbers and are the same take the words before them, where these tell them apart. Where several
    ranks wrote into one line, the words before are the same, too."""
    before: dict[str, list[str]] = {}
    for key, words, _, tight in keys:
        if tight and key:
            before.setdefault(key, []).append(words)
    apart = {key for key, said in before.items() if len({*said}) == len(said) > 1 and all(map(_FEW_WORDS.fullmatch, said))}
    return [
        (f"{words} {key}", "", explicit, tight) if tight and key in apart else (key, words, explicit, tight)
        for key, words, explicit, tight in keys
    ]


def episodes_apart(keys: list[Key]) -> list[Key]:
    """``ep:45 epch:0.89``: beside another word for epochs, "ep" counts episodes."""
    named = {key.lower() for key, *_ in keys}
    if "ep" not in named or not named & {*EPOCH} - {"ep"}:
        return keys
    return [("episodes", *key[1:]) if key[0].lower() == "ep" else key for key in keys]


def between_marks(m: re.Match[str], gap: str) -> bool:
    """Is a fraction with some words before it all that stands between two marks (``, Negative ELBO  4.81, PPL: 122.8``), or the first of two such
    values between bars (``| attn max 0.2 H 3.21 |``)? A count in prose is whole."""
    closed = _CLOSED.match(m.string, m.end()) is not None or ("|" in gap and _NEXT.match(m.string, m.end()) is not None)
    return closed and "." in (m["num"] or "") and _WORDS.search(gap) is not None


def set_apart(gap: str, key: str, *, first: bool) -> bool:
    """Does a mark stand before a word; or two blanks, and nothing else between the number before and its own (``  nce 2.82  in-batch acc 0.34``)?"""
    return gap.lstrip()[:1] in {"|", ",", ":"} or (not first and gap.startswith("  ") and gap.strip() == key and " " not in key)


def is_rate(key: str, m: re.Match[str]) -> bool:
    """``learning rate now 1e-4``; ``eta 0.29``, which may be one: the values of the whole log tell (parsers/value_names.py)."""
    return _RATE.fullmatch(key) is not None or (key.lower() == "eta" and ("." in m["num"] or "e-" in m["num"].lower()) and not m["unit"])
