"""Units that stand behind the numbers of a line, and those that say what is measured: ``99ms/step``, ``1200 tok/s``."""

from __future__ import annotations

import re

from parsers.console_format.grammars import role_of
from parsers.console_format.line_prefix import Line
from parsers.lazy_regex import lazy_re
from parsers.objectives import is_nameless, objective

_DONE = r"(?:tok|tokens?|words?|samples?|examples?|images?|imgs?|sents?|sentences?|seqs?|sequences?|frames?|instances?|batch(?:es)?|steps?|iters?|iterations?)"
_EACH = r"(?:(?:sec|s|ms|us|µs)/(?:batch|step|iter|upd(?:ate)?)|[mµu]s/it)"
_SCALED = rf"[kKM]\s?{_DONE}/s(?:ec)?"
UNIT = (
    rf"(?:{_SCALED}(?![\w])|(?:\s(?!\S+[:=]|[^\s/]+\s+[:=]|[a-z]{{1,20}}/s\s{{1,3}}[\d.]{{1,24}}\s{{0,20}}$))?(?:{_EACH}|ms|[KMG]i?B|{_DONE}/s(?:ec)?|it/s(?:ec)?|secs?|seconds|TFLOPS?|TFLOP/s)"
    r"|%|dB|µs|us|mins?|[smhkKMGTBxz]|kit|it/s|s/it|it(?= \[|/\d)|/s(?:ec)?(?:/gpu)?)(?![\w])"
)
SPEED = lazy_re(rf"(?:{_DONE}|it)/s(?:ec)?|{_EACH}")  # units that say what is measured
OF_SPEED = lazy_re(r"(?i)(?:avg[_ ])?(?:speed|throughput|ips)")  # words for a speed, of which the unit says what is counted
_OF_BAR = lazy_re(_EACH)
TIMES = {"ms", "us", "µs", "s", "sec", "secs", "seconds"}
# a letter behind a blank may be the name of the next number: "acc 0.91 m 0.3 s 0.2"
_LARGE, _SMALL = r"(?:[hm]| ?(?:hrs?|hours?|mins?|minutes?))", r"(?:[ms]| ?(?:mins?|minutes?|secs?|seconds?))"
_GOES_ON = lazy_re(rf"{_LARGE}[ ,]{{0,2}}\d{{1,9}}(?:\.\d{{1,9}})?{_SMALL}\b")
_BEGUN, _ENDS = lazy_re(rf"\d{_LARGE}[ ,]{{0,2}}$"), lazy_re(rf"{_SMALL}\b")
_SECONDS = {"s", "sec", "secs", "second", "seconds"}
_CLOSES, _MINUTES = lazy_re(r"[\s)\]|]*"), lazy_re(r"\d ?(?:h|m|min) ?$")


def in_several_units(m: re.Match[str]) -> bool:
    """Whether a number is a part of a duration: ``1h 4m 12s``, ``0.00 hr 4.00 min 34.01 sec``."""
    text, start, end = m.string, m.start("num"), m.end("num")
    return _GOES_ON.match(text, end) is not None or (
        _ENDS.match(text, end) is not None and _BEGUN.search(text[max(start - 20, 0) : start]) is not None
    )


def closes_with_seconds(m: re.Match[str], unit: str) -> bool:
    """Whether a number is a duration in seconds at the end of its line (``| loss 0.25 | 1.7s``), and not the rest of one in minutes."""
    return unit in _SECONDS and _CLOSES.fullmatch(m.string, m.end()) is not None and not _MINUTES.search(m.string[: m.start("num")])


def with_unit(key: str, unit: str) -> str:
    """A key that names what is counted or trained, with the unit of its number where that is of a time or a speed: ``Step: 34ms``, ``train=2007.6s``,
    ``Cost 210.4 sec``, ``Speed: 6.98 samples/sec``."""
    if unit in TIMES and (role_of(key, "num", True) or is_nameless(key) or ((told := objective(key)) is not None and told.core != "total")):
        return f"{key} time ({unit})"
    return f"{key} ({unit})" if OF_SPEED.fullmatch(key) and SPEED.fullmatch(unit) else key


def speed(unit: str) -> tuple[str, bool]:
    """What a unit says is counted in a time, and whether in thousands or millions of it (``12.5k tok/s``); nothing where it is no speed."""
    counted = unit[1:].lstrip() if unit[:1] in "kKM" else unit
    return (counted, counted != unit) if SPEED.fullmatch(counted) else ("", False)


def only_speed(line: Line) -> bool:
    """``313/313 - 1s - 2ms/step``: the bar of a prediction, which measures nothing."""
    told = [f for f in line.fields if f.role == "metric"]
    counted = any(f.role == "total" and not f.tag for f in line.fields)
    return counted and len(told) == 1 and _OF_BAR.fullmatch(told[0].tag) is not None
