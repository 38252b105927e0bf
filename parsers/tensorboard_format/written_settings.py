"""Settings that a program wrote as a text: JSON or a dictionary of Python, ``key: value`` or ``weight_decay 6`` line by line, ``lr=0.1 wd=0.01``,
or a Markdown table.

The Hugging Face Trainer writes its arguments as JSON, CleanRL its own as a table. A tag says that its text holds settings (``args``,
``hyperparameters/text_summary``), or the text shows it: at least three of them and nothing else, one is a setting of every training, and none is a
result or a place in the run, as samples and reports have them.
"""

from __future__ import annotations

from parsers.lazy_regex import lazy_re
from parsers.records.json_values import flat, literal

Pair = tuple[str, object]

_TAG = lazy_re(
    r"(?i)(^|[/_. -])(args|arguments|configs?|configuration|cfg|hparams?|hps|hyper[_ -]?param(?:eter)?s?|params|settings|options)([/_. -]|$)"
)
_LINE = lazy_re(
    r"\s*+(?:[-*+>]\s++)?[*`_]{0,3}(?P<key>[A-Za-z_][\w./-]*+)[*`]{0,3}\s?(?P<mark>[:=]|\s)[*`]{0,3}\s*+`?(?P<value>[^`]*+)`?\s*+"
)
_ONE = lazy_re(r"\"[^\"]*+\"|'[^']*+'|\[[^\[\]]*+\]|\([^()]*+\)|\S++")
_NUMBER = lazy_re(r"(?i)[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?|true|false|none")
_RULE = lazy_re(r":?-+:?")  # what stands below the head of a table
_LEAST, _LONGEST = 3, 100_000  # settings of a text that does not name itself; characters


def written(tag: str, text: str) -> list[Pair]:
    """The settings in a text that was written under a tag; none where it holds something else."""
    if len(text) > _LONGEST:
        return []
    if _TAG.search(tag) is not None:
        return _pairs(text)[0]
    if "\n" not in text and "=" not in text and "{" not in text:
        return []  # most texts are prose
    pairs, rest = _pairs(text)
    return pairs if not rest and len(pairs) >= _LEAST and _told(pairs) else []


def _told(pairs: list[Pair]) -> bool:
    from parsers.console_format.printed_settings import PLACES, is_result
    from parsers.console_format.settings_lists import TRAINS
    from parsers.records import vocabulary

    if any(vocabulary.plain(key) in PLACES or is_result(key, value) for key, value in pairs):
        return False
    return any(TRAINS.search(key) for key, _ in pairs)


def _pairs(text: str) -> tuple[list[Pair], int]:
    """Settings of a text, and how many of its lines are none."""
    if text.lstrip()[:1] == "{":
        return _of_dict(text.strip())
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    table = [[cell.strip(" *`") for cell in row.strip("|").split("|")] for row in rows if "|" in row]
    if len(table) == len(rows) > 2 and all(map(_RULE.fullmatch, table[1])):
        cells = [row for row in table[2:] if len(row) == 2]
        return [(key, _value(value)) for key, value in cells if key], len(table) - 2 - len(cells)
    found = [_of_line(row) for row in rows]
    return [pair for pairs in found for pair in pairs], sum(not pairs for pairs in found)


def _of_dict(text: str) -> tuple[list[Pair], int]:
    document = literal(text)
    return ([], 1) if document is None else (list(flat("", document)), 0)


def _of_line(row: str) -> list[Pair]:
    from parsers.console_format.printed_settings import only_pairs

    m = _LINE.fullmatch(row)
    if m is not None and (_ONE if m["mark"] in ":=" else _NUMBER).fullmatch(m["value"]):
        return [(m["key"], _value(m["value"]))]
    pairs = only_pairs(row)
    return pairs if len(pairs) > 1 else []


def _value(text: str) -> object:
    from parsers.console_format.printed_settings import value_of

    return value_of(text)
