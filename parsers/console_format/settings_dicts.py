"""Reads settings that programs print as a dictionary before they train: Python's repr or pprint, or JSON, on one line or over many.

``Run config :  {'task': 'videoqa', 'max_epoch': 10}``, ``{   'data': {   'batch_size': 96,`` (pprint of I-JEPA and verl), ``json = {``
(DeepSpeed). Keys of inner dictionaries are joined by ".". Nothing is evaluated but literals; what is no literal keeps the lines
of it that are ``'key': number`` by themselves.
"""

from __future__ import annotations

import json

from parsers.console_format.grammars import is_measured
from parsers.lazy_regex import lazy_re
from parsers.records.json_values import flat, literal

_OPENS = lazy_re(r"\{\s*(?:['\"][\w./-]+['\"]\s*:|$)")
_QUOTED = lazy_re(r"(?s)'(?:[^'\\]|\\(?:.|\Z))*+(?:'|\Z)|\"(?:[^\"\\]|\\(?:.|\Z))*+(?:\"|\Z)")  # an open one goes to the end
_ENTRY = lazy_re(r"[{\s]*['\"](?P<key>[\w./-]+)['\"]\s*:\s*(?P<value>-?[\d.]+(?:e[-+]?\d+)?|True|False|None|true|false|null)\s*[,}]*\s*")
# How a line within a dictionary begins: a key, a bracket, a number, a word of Python's, a call, an object's name
_WITHIN = lazy_re(r"\s*(?:$|['\"{}\[\](),\d.+-]|(?:[Tt]rue|[Ff]alse|[Nn]one|null|nan|inf)\b|<|[A-Za-z_][\w.]*+[(=<])")
_MOST_OTHER = 4  # bound: lines of other processes that may fall into one; more, and it was none, or its end is lost
_MAX_LINES, _MAX_TEXT, _MAX_LEAVES, _MAX_BEFORE = 1000, 100_000, 1000, 60

Pair = tuple[str, object, int]


class SettingsDict:
    """One dictionary while it is printed; ``feed`` gives its settings with their line when it is complete."""

    def __init__(self) -> None:
        self._first = self._depth = self._size = self._other = 0
        self._begins = ""
        self._lines: list[str] = []
        self._beginnings: set[str] = set()  # of the dictionaries before

    def goes_on(self, body: str) -> bool:
        """Is a dictionary being printed, or does one begin as one before did? The next launch prints its settings, too."""
        if self._lines or "{" not in body or not self._beginnings:
            return bool(self._lines)
        m = _OPENS.search(body[: _MAX_BEFORE + 40])
        return m is not None and m[0] in self._beginnings

    def feed(self, n: int, body: str) -> list[Pair]:
        """Takes a line of a log that has not begun to train."""
        if not self._lines:
            m = _OPENS.search(body[: _MAX_BEFORE + 40])
            if m is None or m.start() > _MAX_BEFORE:
                return []
            self._first, self._begins, body = n, m[0], body[m.start() :]
            self._depth = self._size = self._other = 0
        self._other += _WITHIN.match(body) is None
        bare = _QUOTED.sub("", body)
        self._depth += bare.count("{") - bare.count("}")
        self._size += len(body)
        self._lines.append(body)
        if self._depth > 0 and self._other <= _MOST_OTHER and len(self._lines) < _MAX_LINES and self._size < _MAX_TEXT:
            return []
        lines, self._lines = self._lines, []
        found = self._settings(lines) if (self._depth <= 0 or self._other > _MOST_OTHER) and self._size < _MAX_TEXT else []
        if found and self._begins.strip("{ \t\n") and not any(is_measured(key) for key, _, _ in found):  # pprint may leave a bare bracket
            self._beginnings.add(self._begins)
        return found

    def _settings(self, lines: list[str]) -> list[Pair]:
        text = "\n".join(lines)
        document = literal(text[: text.rfind("}") + 1])
        if document is None:
            entries = [(i, _ENTRY.fullmatch(line)) for i, line in enumerate(lines)]
            return [(m["key"], _scalar(m["value"]), self._first + i) for i, m in entries if m is not None]
        pairs = list(flat("", document))[:_MAX_LEAVES]
        measured = len(lines) == 1 and any(is_measured(k) and _is_fraction(v) for k, v in pairs)
        return [] if measured or len(pairs) < 3 else [(k, v, self._line(lines, k)) for k, v in pairs]

    def _line(self, lines: list[str], key: str) -> int:
        """Where the key stands, as far as its last part tells it."""
        quoted = (f"'{key.rpartition('.')[2]}'", f'"{key.rpartition(".")[2]}"')
        return self._first + next((i for i, line in enumerate(lines) if any(q in line for q in quoted)), 0)


def _is_fraction(value: object) -> bool:
    """Whether a value is measured rather than set: a float, also in quotes, as newer transformers print them."""
    return isinstance(value, float) or (isinstance(value, str) and isinstance(_scalar(value), float))


def _scalar(text: str) -> object:
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except ValueError:
        return text
