"""Reads an estimator that a program prints before it fits: scikit-learn's repr, on one line or over several.

``MLPRegressor(alpha=0.001, hidden_layer_sizes=(32,),`` and on from there. It prints what differs from the defaults of the class, so
that the class is a setting, too. The text is parsed as syntax; nothing but literals is evaluated.
"""

from __future__ import annotations

import ast

from parsers.console_format.settings_dicts import Pair
from parsers.lazy_regex import lazy_re

_OPENS = lazy_re(r"(?<!\w)[A-Z]\w{0,60}(?:Classifier|Regressor|Ranker)\((?=\w+=|$)")
_MAX_LINES, _MAX_TEXT = 40, 20_000


class PrintedEstimator:
    """One estimator while it is printed; ``feed`` gives its settings when its bracket closes."""

    def __init__(self) -> None:
        self._first = 0
        self._lines: list[str] = []

    def feed(self, n: int, body: str) -> list[Pair] | None:
        """Settings that end in this line; none yet of a line that goes on; None of a line that is no part of an estimator."""
        if self._lines and not body[:1].isspace():  # further lines are indented: the bracket was never closed
            self._lines = []
        if not self._lines:
            m = _OPENS.search(body[:_MAX_TEXT])
            if m is None:
                return None
            self._first, body = n, body[m.start() :]
        self._lines.append(body.strip())
        text = " ".join(self._lines)
        end = _closed(text)
        if end is None and len(self._lines) < _MAX_LINES and len(text) < _MAX_TEXT:
            return []
        self._lines = []
        return _settings(text[:end], self._first) if end is not None else []


def _closed(text: str) -> int | None:
    """Where the first bracket is closed."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and c == ")":
            return i + 1
    return None


def _settings(text: str, n: int) -> list[Pair]:
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return []
    named = [(k.arg, _value(k.value), n) for k in call.keywords if k.arg]
    return [("estimator", call.func.id, n), *named]


def _value(node: ast.expr) -> object:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.unparse(node)[:200]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)[:200]
