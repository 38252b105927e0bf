"""Lines whose logger rounds the step (``step:1K smpl:32K ep:101 loss:1.226``, LeRobot's; ``| step | 4.74e+04 |``): the same line with its step in full.

So of a step behind an at sign (``valid @500 ctc 18.4``), of which the line is the one that says *step*.

A step that is rounded stands on many lines alike. The lines before said theirs in full, and a loop logs at even distances: the
step is the next one at that distance which the label rounds. Where none is known, the label itself is the step.
"""

from __future__ import annotations

from parsers.lazy_regex import lazy_re

_UNITS = {"K": 10**3, "M": 10**6, "B": 10**9}
_STEP = lazy_re(r"\b(?:global_)?(?:step|iter(?:ation)?)[:=] ?(?P<n>\d{1,4}(?:\.\d{1,2})?)(?P<unit>[KMB])(?= +[A-Za-z][\w/]*[:=])")


# behind the word for the set alone: "mAP @50" is a measure
_AT = lazy_re(r"(?i)\b(?:train\w{0,4}|val\w{0,7}|eval\w{0,6}|test\w{0,3}|dev)(?P<at> @ ?)\d{1,9}(?= +[A-Za-z][\w/|]*[:=]? *[-+.\d])")


def in_full(text: str, last: int | None, every: int) -> tuple[str, ...]:
    """The line that stands for one whose step is rounded or stands behind an at sign, if any; ``last``: the step before, ``every``: how far it was
    from the one before it."""
    if " @" in text and (at := _AT.search(text)) is not None:
        return (f"{text[: at.start('at')]} step {text[at.end('at') :]}",)
    m = _STEP.search(text)
    step = _step(m["n"], _UNITS[m["unit"]], -1 if last is None else last, every) if m is not None else None
    return (f"{text[: m.start('n')]}{step}{text[m.end() :]}",) if m is not None and step is not None else ()


def of_three_digits(said: int, last: int | None, every: int) -> int:
    """The step that a box prints as ``4.74e+04`` (the logger of OpenAI's baselines, of guided-diffusion)."""
    return _next(said, 10 ** max(len(str(said)) - 3, 0) // 2, -1 if last is None else last, every) or said


def _step(number: str, unit: int, last: int, every: int) -> int | None:
    said, half = round(float(number) * unit), unit // (2 * int(10 ** len(number.partition(".")[2])))
    return _next(said, half, last, every)


def _next(said: int, half: int, last: int, every: int) -> int | None:
    """The next step that is rounded to one, give or take ``half``."""
    if every > 0 and last >= 0:
        rounds = max(1, -((last - said + half) // every))
        if abs(last + rounds * every - said) <= half:
            return last + rounds * every
    return said if said >= last else None
