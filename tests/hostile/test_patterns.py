"""No regular expression of the product takes time by the square of a text: each is attacked with strings made for it."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Any

import pytest

from hostile import attacks, patterns, run_time_patterns
from parsers.name_rules import LONGEST

SMALL, LARGE = 2000, 8000  # characters
QUICK, NOTABLE = 0.0003, 0.002  # seconds of CPU: what is not worth a second look, and what a growth can be seen in
GROWTH = 8.0  # four times the text: 4 is linear, 16 is its square
MOST = 10**9 if os.environ.get("HOSTILE") == "all" else 40  # attacks on one pattern; all of them take minutes
LIMIT = 0.3  # a search that takes as long has failed, whatever it would have grown to
OWN_TEXTS = {"parsers.name_rules._TOKEN"}  # reads the patterns of names.toml, which are ours
NAMES_OF_FILES = "parsers.formats.checkpoint_files: pattern"  # 255 bytes at most


class TooSlow(Exception):
    pass


@pytest.fixture(autouse=True)
def _limited() -> Any:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)  # the matcher looks for signals: even a hang ends
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def cost(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    """Seconds of CPU."""
    raw = isinstance(pattern.pattern, bytes)
    text = text.encode("latin-1", "replace") if raw else text
    ask = getattr(pattern, method)
    texts: tuple[Any, ...] = (b"" if raw else "",) if method in ("sub", "subn") else ()
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    began = time.thread_time()
    try:
        for _ in ask(*texts, text) if method == "finditer" else [ask(*texts, text)]:
            pass
        return time.thread_time() - began
    except TooSlow:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def slow(pattern: re.Pattern[Any], methods: set[str], most: int = 10**9, line: int = LARGE) -> list[str]:
    """The first attack that makes the pattern grow faster than the text, confirmed, or nothing. ``most``: so many
    attacks, of all kinds; ``line``: the longest line that it is given."""
    made = list(attacks.attacks(pattern))
    for prefix, pump, end in made[:: -(-len(made) // most)]:
        for method in methods:
            one = prefix + pump * (min(line, SMALL) // len(pump) + 1) + end
            if line < LARGE:
                small, large = ("\n".join([one[-line:]] * (n // line)) for n in (SMALL, LARGE))
            else:
                small, large = one, prefix + pump * (LARGE // len(pump) + 1) + end
            first = cost(pattern, method, small)
            if first < QUICK:
                continue
            if first > LIMIT or all(_grows(pattern, method, small, large) for _ in range(4)):
                return [f"{method}: {prefix[:60]!r} + {pump[:60]!r} * n + {end!r}"]
    return []


def _grows(pattern: re.Pattern[Any], method: str, small: str, large: str) -> bool:
    """One look at both sizes, close together: a machine may be slow at one moment and quick at the next."""
    much = cost(pattern, method, large)
    return much > LIMIT or (much > NOTABLE and much > GROWTH * cost(pattern, method, small))


def test_every_pattern_is_linear() -> None:
    found, _ = patterns.patterns()
    assert len(found) > 300
    bad = []
    for pattern, methods, where in found.values():
        if where not in OWN_TEXTS:
            line = LONGEST if where == "names.toml" else LARGE
            bad += [f"{where} {s}\n    {pattern.pattern!r:.300}" for s in slow(pattern, methods, MOST, line)]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s+$", "search"), (r"(a+)+b", "match"), (r"^\s*(.*?)\s*$", "match"), (r"\d+\.?\d*x", "match"), (r"eyJ[\w-]{10,}\.x", "search"),
        (r"\w+@", "search"), (r"(?:a|ab|b)*c", "match"), (r"x.*y", "finditer"), (r"save_(?:\w*_)?model(?:_\w+)?[,)]", "search"),
        (r"\[[^\]]*\]", "sub"), (r"'(?:[^'\\]|\\.)*';", "search"), (r"(?m)^\s*key", "search"), (r"(\w+\s?)*!", "match"),
    ],
)  # fmt: skip
def test_the_attacks_find_patterns_known_to_be_slow(pattern: str, method: str) -> None:
    assert slow(re.compile(pattern), {method})


def test_every_pattern_that_is_made_at_run_time_is_known() -> None:
    _, unknown = patterns.patterns()
    assert sorted(set(unknown)) == sorted({*run_time_patterns.MADE, *run_time_patterns.ELSEWHERE})


@pytest.mark.parametrize("where", run_time_patterns.MADE)
def test_patterns_that_are_made_at_run_time_are_linear(where: str) -> None:
    made = dict.fromkeys(run_time_patterns.MADE[where]())
    assert made
    line = 255 if where == NAMES_OF_FILES else LARGE
    for text, method in made:
        assert not (found := slow(re.compile(text), {method}, MOST, line)), f"{text:.300}\n{found}"
