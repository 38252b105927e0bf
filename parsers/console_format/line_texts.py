"""Lines as they would read if nothing had come between the program and its log: a bar that a notebook drew elsewhere, a tuple that Python 2 printed,
an empty line that PowerShell took for an error."""

from __future__ import annotations

import ast
import re

from parsers.lazy_regex import lazy_re

_NO_BAR = lazy_re(r"(?<![\d.])(\d{1,3}%) (?=\d{1,12}/\d{1,12} \[(?:\d+:)?\d\d:\d\d<)")  # tqdm, its bar left out
_BAR_AND_MORE = lazy_re(r"(.*?\d%\|[^|]*\| *[\d.kM]+/[\d.kM]+ \[[^\[\]]*+\])(?: {1,4}(?=[\[{]))?([A-Za-z{\[*].*)", re.DOTALL)
_CUT_BAR = lazy_re(r"(.*?\d%\|[^|\[]{0,200}?)((?:slurmstepd|srun): error: .*)", re.DOTALL)  # which the scheduler wrote into
_CARETS = lazy_re(r"(\s*[~^]{3,})([^\s~^].*)", re.DOTALL)
_ARRAY = lazy_re(r"\barray\(([^()]*), dtype=\w+\)")
_NO_NUMBER = lazy_re(r"(?<=[\[(, ])(-?(?:nan|inf))(?=[,\])])")
_HASH = lazy_re(  # hexadecimal, of which some have no letter: all as the number that they are, since only equality is asked of them
    r"(?i)((?<![\w/])(?:param\w{0,20}|weights?|theta|model|w)?_?(?:checksum|hash|crc\d*|digest|sum)[ :=]{1,3})(?:0x)?([0-9a-f]{8}|[0-9a-f]{16})(?=[\s,;|)\]]|$)"
)
_NUMBERS = lazy_re(r"(?:[-+\d.e]{1,25}, ){1,12}[-+\d.e]{1,25}\s*")
_NAMES = lazy_re(r"(?:[A-Za-z][\w /]{0,30}, ){1,12}[A-Za-z]\w{0,30}$")
_VALUES_FIRST = lazy_re(  # "Epoch 42 @ 01:04 PM : 0.95 C.E. Loss, 98.4% Accuracy"
    r"(?i)(\W*epoch:? \d+[^,]{0,40}?: +)(?=.{0,200}(?:loss|acc|error))((?:[-+]?\d[\d.]*(?:e[-+]?\d+)?%? [a-z][a-z. ]{1,30}(?:, (?=[-+\d])|$)){1,8})$"
)
_EMPTY = (
    "System.Management.Automation.RemoteException"  # PowerShell makes an error of each line of stderr; one without words shows its type
)
_TUPLES = ("('", '("')
_FRONTS = frozenset("@#*>+eEsSiI")
# what parts the cells of a line: "ep 3 · loss 0.5 · acc 0.8"; a box has its own at its ends
_MARK, _BOXED = lazy_re(r"(?<=\s)[·—–▸►▶»•⋅∙◦♪≫│┃](?=\s)"), lazy_re(r"\s*[│┃┌└├╭╰|]")
# "@000250  nce 3.91", "#1000" alone: the number of a step
_FRONT = lazy_re(r"^\s*+[@#](?=\d{1,12}(?:\s*$|[ :|]{1,4}[^\W\d][\w|/@-]{0,30}[ =:]{1,3}[-+.\d]))")
# "ep00 SILog=0.61", "* Ep10/80 lr=1e-3": a number that touches its word
_GLUED = lazy_re(
    r"(?i)^\s*+(?:[*>+] ?)?(?:(?P<epoch>ep?|epoch)|step|it|iter)(?=\d{1,12}(?:/\d{1,12})?[ :|]{1,4}[^\W\d][\w|/@-]{0,30}[ =:]{1,3}[-+.\d])"
)
_NAMED_BEHIND = lazy_re(  # darknet: " 100: 410.0, 500.2 avg loss, 0.0001 rate, 3.6 seconds, 6400 images"
    r"\s*(?P<step>\d{1,12}): (?P<first>[-+\d.naif]{1,24}), (?P<rest>(?:[-+\d.naife]{1,24} [a-z]{2,20}(?: [a-z]{2,20})?, ){2,8}.{0,80})$"
)
_RATE_SET = lazy_re(  # PyTorch's schedulers, Informer's heirs, CatBoost
    r"(?i)(?:\b(?:updat|adjust|sett|chang|decay|reduc|dropp)ing (?:the )?)?(?P<what>\blearning rate|\blr)(?: of group \d{1,3})? (?:set |(?:was |is )?(?:changed|reduced|decayed|adjusted) )?to (?=\d)"
)
# CatBoost: "\ttotal: 1m 4s\tremaining: 8m 5s", in milliseconds at first
_SO_FAR = lazy_re(r"\ttotal: ((?:\d[\d.]{0,9}(?:us|ms|[smhd]) ?){1,4})\tremaining: [\d.usmhd ]{2,30}$")
_DURATION = lazy_re(r"([\d.]{1,10})(us|ms|[smhd])")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TERMS = lazy_re(  # "train 1.11 (seg 0.08, thick 1.03) | val 1.32 (seg 0.08, thick 1.24)"
    r"(?P<of>[A-Za-z][\w/-]{0,20})(?P<is>[ :=]{1,3})(?P<sum>[-+]?\d[\d.]{0,20}(?:e[-+]?\d{1,3})?) ?\((?P<terms>(?:[A-Za-z][\w/-]{0,20}[ :=]{1,3}[-+]?\d[\d.]{0,20}(?:e[-+]?\d{1,3})?(?:, ?)?){1,8})\)"
)
_TERM_OF = lazy_re(r"([A-Za-z][\w/-]{0,20})([ :=]{1,3})([-+\d.e]{1,25})")
# "loss: [landmark: 0.00003]"
_LIST_OF_ONE = lazy_re(r"(?i)\b((?:\w{1,12} )?loss)[ :=]{1,3}\[([a-z]\w{0,20}[ :=]{1,3}[-+]?\d[\d.e+-]{0,24})\]")
_LOSSES = lazy_re(  # spaCy: "Losses {'ner': 0.91, 'textcat': 0.3}"
    r"(?i)\bloss(?:es)?[ :=]{0,3}\{((?:u?['\"][\w/ -]{1,30}['\"]: ?[-+]?\d[\d.e+-]{0,24}(?:, )?){1,12})\}"
)
_ITEM = lazy_re(r"['\"]([\w/ -]{1,30})['\"]: ?([-+\d.e]{1,25})")
_LONGEST, _VECTOR = 2000, 4  # characters; numbers, of which more are a printed vector


def plain(text: str) -> str:
    """The line with the marks of a bar between its share and its counts, and without those of a tuple."""
    if "% " in text and "<" in text:
        text = _NO_BAR.sub(r"\1|| ", text)
    if text.startswith(_EMPTY) and text.rstrip() == _EMPTY:
        return ""
    if len(text) > _LONGEST:
        return text
    if "sum" in text or "hash" in text or "crc" in text or "digest" in text:
        text = _HASH.sub(lambda m: f"{m[1]}{int(m[2], 16)}", text)
    if not text.isascii() and len(_MARK.findall(text)) > 1 and _BOXED.match(text) is None:
        text = _MARK.sub("|", text)
    if text.lstrip()[:1] in _FRONTS:
        text = _FRONT.sub("step ", text, count=1)
        text = _GLUED.sub(lambda m: "epoch " if m["epoch"] else f"{m[0]} ", text, count=1)
    if " rate, " in text or " loss, " in text:
        text = _named_behind(text)
    if " to " in text:
        text = _RATE_SET.sub(lambda m: f"{m['what']}: ", text, count=1)
    if ": " in text:
        text = _named_each(text)
    if "\tremaining: " in text:
        text = _SO_FAR.sub(
            lambda m: f"\ttotal so far: {sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(m[1])):.6g}", text.rstrip()
        )
    return _opened(text)


def _opened(text: str) -> str:
    """The line with what stands in its brackets as if it stood there without them, where it is named."""
    if text.startswith(_TUPLES):
        text = _untupled(text)
    if text.count("(") > 1:
        text = _terms_apart(text)
    if "oss" not in text:  # "Loss", "loss"
        return text
    if "{" in text:
        text = _LOSSES.sub(lambda m: ", ".join(f"loss {name}: {value}" for name, value in _ITEM.findall(m[1])), text)
    return _LIST_OF_ONE.sub(r"\1 \2", text) if "[" in text else text


def _named_behind(text: str) -> str:
    """`` 100: 410.0, 500.2 avg loss, 0.0001 rate, 3.6 seconds`` -> ``step 100: loss: 410.0, avg loss: 500.2, rate: 0.0001, seconds: 3.6``."""
    if (m := _NAMED_BEHIND.match(text)) is None:
        return text
    told = [(name, value) for value, _, name in (item.partition(" ") for item in m["rest"].split(", ")) if name]
    named = ", ".join(f"{'learning rate' if name == 'rate' else name}: {value}" for name, value in told)
    return f"step {m['step']}: loss: {m['first']}, {named}"


def _terms_apart(text: str) -> str:
    """``train 1.11 (seg 0.08, thick 1.03) | val 1.32 (seg 0.09, thick 1.24)`` -> ``train 1.11 | train seg 0.08 | train thick 1.03 | val 1.32 | ...``: terms
    in brackets are of what stands before them, where the same come again behind another."""
    groups = list(_TERMS.finditer(text))
    named = [[m[1] for m in _TERM_OF.finditer(g["terms"])] for g in groups]
    if len(groups) < 2 or any(names != named[0] for names in named) or len({g["of"] for g in groups}) < len(groups):
        return text

    def apart(g: re.Match[str]) -> str:
        told = [f"{g['of']}{g['is']}{g['sum']}", *(f"{g['of']} {m[1]}{m[2]}{m[3].rstrip(',')}" for m in _TERM_OF.finditer(g["terms"]))]
        return " | ".join(told)

    return _TERMS.sub(apart, text)


def _named_each(text: str) -> str:
    """``curr batch, loss, lr: 9300, 0.218, 0.00099`` -> ``curr batch: 9300, loss: 0.218, lr: 0.00099``, and ``0.95 Loss, 98.4% Accuracy`` behind an
    epoch -> ``Loss: 0.95, Accuracy: 98.4%``."""
    if (m := _VALUES_FIRST.match(text)) is not None:
        return m[1] + ", ".join(f"{name}: {value}" for value, name in (item.split(" ", 1) for item in m[2].split(", ")))
    head, _, told = text.rpartition(": ")
    if ", " not in told or _NUMBERS.fullmatch(told) is None or (m := _NAMES.search(head)) is None:
        return text
    names, values = m[0].split(", "), told.split(", ")
    if len(names) != len(values):
        return text
    return head[: m.start()] + ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))


def two(text: str) -> tuple[str, str] | None:
    """A line behind which another was printed: behind a bar, or by another process behind a traceback's marks."""
    m = _BAR_AND_MORE.fullmatch(text) or _CUT_BAR.fullmatch(text) if "%|" in text else None
    m = _CARETS.fullmatch(text) if m is None and "^^^" in text else m
    return None if m is None else (m[1], m[2])


def _untupled(text: str) -> str:
    """``('Loss: ', [array(0.95, dtype=float32), 0.1])`` -> ``Loss: 0.95 0.1``: what ``print(a, b)`` writes in Python 2."""
    try:
        told = ast.literal_eval(_NO_NUMBER.sub(r"'\1'", _ARRAY.sub(r"\1", text.strip())))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if not isinstance(told, tuple) or len(told) < 2 or not isinstance(told[0], str):
        return text
    return " ".join(_shown(x) for x in told)


def _shown(value: object) -> str:
    if isinstance(value, list) and len(value) <= _VECTOR and all(isinstance(x, (int, float, str)) for x in value):
        return " ".join(map(str, value))
    return value.strip() if isinstance(value, str) else repr(value)
