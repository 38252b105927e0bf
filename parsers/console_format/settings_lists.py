"""Reads settings that programs print one below the other before they train, whatever their values: words, paths, switches, numbers.

``batch_size    : 20`` below ``optimizer     : adam``, keys or their ends in one column behind any prefix of a logger; or plain ``lr_policy: "fixed"``,
``env_name: CartPole`` (Caffe's solver, OpenAI baselines), or ``1036000: batch-size=64``; or Megatron's dots (``lr ........ 0.0006``), where the line above them
that says "arguments" was left out. A list counts as settings where it has three lines and more, one of them
is a setting of every training, and none tells a result or the place of the log: some loops print their measurements in such columns.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.console_format.printed_settings import DOTS, PLACES, is_result, value_of, without_origin
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_PADDED = lazy_re(r"(?<=\s)[:=](?=\s)|[:=](?=\s{2,}|\t)")
_BEFORE_KEY = lazy_re(r"\s{2,}|\t|[|>•\]-] |:")
_KEY = lazy_re(r"[A-Za-z_][^=]{0,60}")
_PLAIN = lazy_re(r"(?:\d++: )?(?P<key>[A-Za-z_][\w.-]*+)(?:: +|=)(?P<value>[^\s=].*)")
_ORIGIN = lazy_re(r"(?i)[\[(](?:default|updated)[\])]$")  # where a value comes from, printed behind it (cuda-convnet)
_ONE = lazy_re(r"\"[^\"]*\"|'[^']*'|\[[^\[\]]*\]|\([^()]*\)|\S+")
TRAINS = lazy_re(
    r"(?i)(?:^|[\W_])(?:lr|learning[ _]?rate|(?:mini)?batch(?:[ _-]?size)?|epochs|optim(?:izer)?|weight[ _-]?decay|momentum|dropout|seed)(?:[\W_]|$)"
)
_LEAST, _LONGEST, _WORDS = 3, 300, 8  # lines of a list, characters of a line, words of a key: more are a sentence

Pair = tuple[str, object, int]


class _Entry(NamedTuple):
    line: int
    padded: bool
    key: str
    value: str


class SettingsList:
    """One list while it is printed."""

    def __init__(self) -> None:
        self._columns: dict[int, list[_Entry]] = {}  # place of the mark between key and value -> lines; -1: a line is nothing but these
        self._last = 0

    def feed(self, n: int, text: str, body: str) -> list[Pair]:
        """Takes a line of a log that has not begun to train; -> the settings of the list that it ends, with their lines."""
        found = _entries(n, text, body) if len(text) < _LONGEST and (":" in text or "=" in text or "..." in text) else {}
        goes_on = {column: e for column in self._columns if (e := _at(found, column)) is not None} if n == self._last + 1 else {}
        self._last = n
        if goes_on:  # of a first line with two such marks the one that the second has, too
            self._columns = {column: [*self._columns[column], entry] for column, entry in goes_on.items()}
            return []
        ended = self.end()
        self._columns = {column: [entry] for column, entry in found.items()}
        return ended

    def end(self) -> list[Pair]:
        """The settings of the list, where it is one of settings."""
        lists, self._columns = list(self._columns.values()), {}
        return next((pairs for entries in lists if (pairs := _settings(entries))), [])


def _entries(n: int, text: str, body: str) -> dict[int, _Entry]:
    found = {}
    for mark in _PADDED.finditer(text):
        front, value = text[: mark.start()], text[mark.end() :].strip()
        key = _BEFORE_KEY.split(front.rstrip())[-1].strip()
        if value and _KEY.fullmatch(key) and key.count(" ") < _WORDS:
            padded = front.endswith("  ") or front[: front.rindex(key)].endswith("  ")
            found[mark.start()] = _Entry(n, padded, key, value)
    if "..." in text and (m := DOTS.match(text.rstrip())) is not None:
        found[m.end("dots")] = _Entry(n, True, m["key"], without_origin(m["value"]) or m["value"])
    if (m := _PLAIN.fullmatch(body.strip())) is not None:
        found[-1] = _Entry(n, True, m["key"].lstrip("_"), m["value"])
    return found


def _at(found: dict[int, _Entry], column: int) -> _Entry | None:
    """The entry whose mark is in the column, or behind it because its key is too long for the column."""
    longer = next((e for place, e in found.items() if place > column > 0 and not e.padded), None)
    return found.get(column, longer)


def _settings(entries: list[_Entry]) -> list[Pair]:
    keys = [e.key for e in entries]
    told = len(set(keys)) == len(keys) >= _LEAST and any(map(TRAINS.search, keys)) and any(e.padded for e in entries)
    if not told or any(vocabulary.plain(k) in PLACES for k in keys):
        return []
    values = [_ORIGIN.sub("", e.value).strip() for e in entries]
    pairs = [(e.key, value_of(text), e.line) for e, text in zip(entries, values, strict=True) if _ONE.fullmatch(text)]
    return [] if any(is_result(key, value) for key, value, _ in pairs) else pairs
