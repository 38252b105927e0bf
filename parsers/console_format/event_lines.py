"""Turns console lines that are no measurements into events: errors, scheduler words, checkpoints, resumes, overflows.

Which words say what stands in ``event_lines.toml``, each with a line that says it. Order of evidence follows NVRx's log
signatures: a *root candidate* has level ``error``; what only follows from another failure (a peer's NCCL abort, torchrun's
ChildFailedError, "broken pipe" of a heartbeat thread) and what is only supposed ("might be caused by") is ``warning``.
Kinds: start, resume, evaluation (one begins), checkpoint_saved, finished, traceback, oom, nccl, hardware, overflow,
nonfinite, scheduler, signal, rows_dropped, curves_lost, missing_field, optimizer_lost, warning, loop_end, summary, goes_back, stage, alive, cache,
last_line (of a file the last one counts) and last_words (the same of a log that measured nothing).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from parsers.lazy_regex import lazy_re

MAX_TEXT = 600
WAITS = lazy_re(r"\bwaiting (?:for|on)\b", re.I)  # the last line of a process that waits still
_SHORTEST_HINT = 3  # letters: shorter ones are in nearly every line
_COMPLAINS = lazy_re(r"(?i)[\w./-]{1,60}: (?:fatal |internal )?error[:,] ")  # "queue.pl: Error, ...": what it measured is quoted
# TensorFlow's own lines; Caffe's losses come by the same logger
_RUNTIME = lazy_re(r"^.{0,60}?\b[IWEF] (?:external/|[\w.]+/)*(?:tensorflow|tsl|xla|jaxlib)/[\w./-]+\.cc:\d+\]")


class Event(NamedTuple):
    kind: str
    level: str
    text: str
    step: int | None = None


class Known(NamedTuple):
    """What ``event_lines.toml`` says: (kind, level, pattern) in the order in which they are tried, and the other lists, each as one pattern."""

    rules: list[tuple[str, str, re.Pattern[str]]]
    cascade: re.Pattern[str]
    guess: re.Pattern[str]
    supposed: re.Pattern[str]
    chatter: re.Pattern[str]
    phase: re.Pattern[str]
    sure_code: re.Pattern[str]
    code: re.Pattern[str]


@cache
def data() -> dict[str, Any]:
    """``event_lines.toml`` as it stands."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@cache
def known() -> Known:
    """The same as expressions, each compiled when a line first needs it."""
    told = data()
    rules = [(rule["kind"], rule["level"], _any(rule["patterns"])) for rule in told["event"]]
    return Known(rules, *(_any(told[name]["patterns"], *frame) for name, frame in _LISTS.items()))


@cache
def needed() -> tuple[str, ...]:
    """Plain lower-case texts of which a line that reports anything has one."""
    texts = {text for rule in data()["event"] for pattern in rule["patterns"] for text in hints(pattern)}
    return tuple(t for t in sorted(texts) if not any(other in t for other in texts if other != t))


_LISTS = {
    "cascade": (),
    "guess": ("(?is)",),
    "supposed": (),
    "chatter": (),
    "phase": ("(?i)^(?:", ")$"),
    "sure_code": (r"^\s*+(?:", ")"),
    "code": (r"^\s*+(?:", ")"),
}


def _any(patterns: Iterable[str], before: str = "(?i)", behind: str = "") -> re.Pattern[str]:
    text = before + "|".join(patterns) + behind
    return lazy_re(text)


def hints(pattern: str) -> set[str]:
    """Plain lower-case texts, one of which is in every text that the pattern is found in; none where it needs none."""
    return _hints(_parser.parse(pattern))


def _hints(parsed: Any) -> set[str]:
    best: set[str] = set()
    run = ""
    for kind, what in [*parsed, (None, None)]:
        if kind is _constants.LITERAL:
            run += chr(what).lower()
            continue
        best, run = _better(best, {run}), ""
        if kind is _constants.SUBPATTERN:
            best = _better(best, _hints(what[-1]))
        elif kind in (_constants.MAX_REPEAT, _constants.POSSESSIVE_REPEAT) and what[0] > 0:
            best = _better(best, _hints(what[2]))
        elif kind is _constants.BRANCH:
            each = [_hints(branch) for branch in what[1]]
            best = _better(best, set().union(*each) if all(each) else set())
    return best


def _better(one: set[str], other: set[str]) -> set[str]:
    """The texts whose shortest is the longer one."""
    length = min((len(text.strip()) for text in other), default=0)
    return other if length >= _SHORTEST_HINT and length > min((len(text.strip()) for text in one), default=0) else one


_AT_STEP = lazy_re(
    r"@ ?(\d+) updates|starting from iteration (\d+)"
    r"|(?:global_?step|from step|at step|at iteration|on iteration|iteration)[\s=:_]*(\d+)"
)
_IN_NAME = lazy_re(
    r"(?i)(?:global_?step|steps?|iter(?:ation)?s?|upd(?:ate)?s?|checkpoint|ckpt|model|optim|epoch)"
    r"[\s=:_\-#(]*?(\d++)(?![.:]\d|%|\w{0,40}[-/]\w{0,40}\d{3})"
)
_SCALE = lazy_re(
    r"(?i)(?:(?:reducing|increasing)(?: dynamic)? loss scale(?: from [\d.e+]+)? to|reducing (?:it )?to|lowering (?:the )?loss scale to"
    r"|loss scale (?:is )?(?:now|reduced to|to):?) ?([\d.]+(?:e[+-]?\d+)?)|Attempted loss scale: ([\d.]+(?:e[+-]?\d+)?), but|loss scale [\d.]+(?:e[+-]?\d+)? ?(?:->|=>|\u2192) ?([\d.]+(?:e[+-]?\d+)?)"
)
_SKIPPED = lazy_re(
    r"(?i)\b(?:steps?|updates?|batch(?:es)?|iterations?) (?:was |were |is )?skipped\W{1,3}(\d{1,12})(?: times| in all)? (?:so far|in total|until now)"
    r"|\bskipp(?:ing|ed) (?:this |the )?(?:step|update|batch|iteration)\W{1,3}(\d{1,12})(?: times| in all)? (?:so far|in total|until now)"
)
_WHEN = lazy_re(r"\bAT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


def event_of(text: str) -> Event | None:
    """What a line reports, or None for chatter. The step is the line's own, if it names one."""
    words, text = known(), text[:2000]
    low = text.lower()
    if not any(hint in low for hint in needed()) or low.lstrip().startswith("frame #"):
        return None
    text = words.guess.sub("", text)
    found = next(((kind, level) for kind, level, pattern in words.rules if pattern.search(text)), None)
    if found is None:
        return None
    kind, level = found
    if level != "error" and kind not in {"overflow", "rows_dropped", "cache"} and words.chatter.search(text[:400]):
        return None
    if level == "error" and words.supposed.search(text):
        told = "warning" in low and kind in {"oom", "hardware", "nccl"}
        return Event(kind, "warning", text[:MAX_TEXT]) if told else None
    if level == "error" and words.cascade.search(text):
        level = "warning"
    return Event(kind, level, text[:MAX_TEXT].strip(), step_in(text, kind))


def step_in(text: str, kind: str) -> int | None:
    """The step that a line names in words, or, for checkpoints and resumes, in a file's name (``step_150.pt``)."""
    if kind in {"checkpoint_saved", "resume", "overflow", "finished", "nonfinite", "warning"}:
        if (m := _AT_STEP.search(text)) is not None:
            found = next(g for g in m.groups() if g)
            return int(found) if len(found) < 16 else None
        hits = [m[1] for m in _IN_NAME.finditer(text)] if kind in {"checkpoint_saved", "resume"} else []
        return int(hits[-1]) if hits and len(hits[-1]) < 12 else None
    return None


def loss_scale(text: str) -> float | None:
    """The scale that an overflow or growth line leaves behind."""
    m = _SCALE.search(text)
    try:
        return float((m[1] or m[2] or m[3]).rstrip(".")) if m else None
    except ValueError:
        return None


def skipped(text: str) -> float | None:
    """``update skipped (20 so far)``: how many updates were skipped until then, as the line counts them up."""
    m = _SKIPPED.search(text)
    return float(m[1] or m[2]) if m else None


def when(text: str) -> str | None:
    """'... CANCELLED AT 2026-06-06T13:49:25 DUE TO TIME LIMIT' -> the time in it."""
    m = _WHEN.search(text)
    return m[1] if m else None


def is_code(text: str, sure: bool = False) -> bool:
    """Does the line look like Python source? Logs of modded-nanogpt and others begin with their own program."""
    return known().sure_code.match(text) is not None or (not sure and known().code.match(text) is not None)


def missing_loss(step: int | None) -> Event:
    """Of a Megatron line without its loss."""
    return Event("missing_field", "warning", "this line has no lm loss: it was NaN, or all its iterations were skipped", step)


def quotes_another(text: str, body: str) -> bool:
    """Is a line a complaint that quotes what was measured, or one of TensorFlow's own?"""
    return _COMPLAINS.match(body) is not None or (".cc:" in text and _RUNTIME.search(text) is not None)
