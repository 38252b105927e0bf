"""Reads the history of a whole training that a program printed when it was done: ``{'loss': [2.1, 1.4, 0.9], 'val_loss': [2.2, 1.9, 2.0]}`` (Keras' History.history).

Lists of one length, a loss among them; each value's number (from 1) is its step. A dictionary without a loss may list classes, lists of different lengths anything.
"""

from __future__ import annotations

from parsers.console_format.grammars import NUM
from parsers.console_format.line_prefix import number
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

_LEAST = 3  # unit: fewer values make no curve
_LIST = lazy_re(rf"['\"](?P<name>[\w/@. -]{{1,60}})['\"]: *\[(?P<values>(?:(?:np\.float(?:32|64)\()?{NUM}\)?(?:, *|(?=\]))){{2,}})\]")
_NUMBER = lazy_re(rf"(?<![\w.]){NUM}")
NOTE = "no line names a step: the values of a printed history are numbered"


def history(body: str) -> dict[str, list[float]]:
    """The curves in a line; nothing where it is no history."""
    if ": [" not in body or not body.lstrip().startswith("{"):
        return {}
    found = {m["name"]: [number(v) for v in _NUMBER.findall(m["values"])] for m in _LIST.finditer(body)}
    lengths = {len(v) for v in found.values()}
    is_one = len(lengths) == 1 and lengths.pop() >= _LEAST and any("loss" in words(name).split() for name in found)
    return found if is_one else {}
