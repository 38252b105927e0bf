"""Cells of tables and values of JSON as numbers, steps, times and lists of ids. Helpers, no parser."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from parsers.lazy_regex import lazy_re
from parsers.tables import DATED

Cell = float | int | str | None  # None: not logged

_PLAIN = lazy_re(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTEGER = lazy_re(r"\s*[+-]?\d{1,19}\s*", re.ASCII)
_THOUSANDS = lazy_re(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_WRAPPED = lazy_re(r"(?:tensor|array|np\.float\d+)\(\[?\s*([^,\])]+)")
_NULLS = {"", "na", "n/a", "#n/a", "none", "null", "<na>", "-", "--", "nil"}
_WORDS = {"nan": "nan", "inf": "inf", "infinity": "inf", "1.#inf": "inf", "1.#ind": "nan", "1.#qnan": "nan",
          "1.#snan": "nan", "nan(ind)": "nan", "nan(snan)": "nan", "∞": "inf"}  # fmt: skip
_DATE = lazy_re(r"(\d{4}-\d\d-\d\d)[_T ](\d\d)[:\-](\d\d)[:\-](\d\d)(?:[.,](\d{1,6})\d*)?(Z|[+\-]\d\d:?\d\d)?")
_ZONE = lazy_re(r":\d\d(?:[.,]\d+)? ?(?:Z|UTC|GMT|[+\-]\d\d(?::?\d\d)?)$")
_UNITS = (1.0, 1e-3, 1e-6, 1e-9)  # of a clock: seconds to nanoseconds


def number(text: str, decimal: str = ".") -> float | None:
    """A cell as a number, None where it is none. NaN and infinity are numbers; "%" and ``tensor()`` are peeled off."""
    text = text.strip()
    if decimal == "," and "," in text:
        text = text.replace(".", "").replace(",", ".")
    if _PLAIN.fullmatch(text):
        return float(text)
    word = _WORDS.get(text.lstrip("+-").lower())
    if word is not None:
        return float(("-" if text.startswith("-") else "") + word)
    if text.endswith("%") and _PLAIN.fullmatch(text[:-1]):
        return float(text[:-1])
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    wrapped = _WRAPPED.match(text)
    return number(wrapped[1]) if wrapped and not _WRAPPED.match(wrapped[1]) else None


def cell(text: str, decimal: str = ".") -> Cell:
    """A cell of text as a number, None for 'not logged' (empty, NA, None, null), else the text itself."""
    if decimal == "." and "_" not in text and text.isascii():  # what float() reads too widely
        try:
            return float(text)
        except ValueError:
            pass
    text = text.strip()
    if text.lower() in _NULLS:
        return None
    value = number(text, decimal)
    return text if value is None else value


def as_number(value: Any) -> float | None:
    """A JSON value as a number; strings that are numbers ("1e-4", "nan") count, true and false do not."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return number(value) if isinstance(value, str) and len(value) < 64 else None


def whole(value: Any) -> int | None:
    """A step: exact for integers of any size that int64 holds; None for fractions, text, NaN, what does not fit and what is no number."""
    if isinstance(value, str):
        value = int(value) if _INTEGER.fullmatch(value) else number(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (isinstance(value, float) and not value.is_integer()):
        return None
    result = int(value)
    return result if -(2**63) <= result < 2**63 else None


def time_unit(value: float | None) -> float | None:
    """Seconds in a unit of a clock that shows ``value`` between 1980 and 2100; None: it is no wall clock."""
    return None if value is None else next((unit for unit in _UNITS if DATED <= value * unit <= 4.2e9), None)


def seconds(value: Any) -> float | None:
    """A date (or a number of seconds as text) as seconds since 1970, None where it is neither; dates without a zone are taken as UTC."""
    if not isinstance(value, str):
        return None
    figure = as_number(value)
    if figure is not None:
        return figure if time_unit(figure) == 1.0 else None
    found = _date(value.strip())
    m = _DATE.match(value) if found is None else None  # Ray's 2024-01-31_10-00-00, logging's comma
    return _date(f"{m[1]}T{m[2]}:{m[3]}:{m[4]}.{(m[5] or '0').ljust(6, '0')}{m[6] or ''}") if m else found


def is_zoneless(value: Any) -> bool:
    """Is it a date that names no time zone?"""
    return isinstance(value, str) and as_number(value) is None and _ZONE.search(value.strip()) is None and seconds(value) is not None


def _date(text: str) -> float | None:
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def split_ids(value: object) -> list[str]:
    """The ids in a cell: a list, or text such as '[1, 2]', '1 2 3', 'a;b' (brackets and quotes dropped)."""
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in split_ids(item)] if len(value) else []
    if value is None or value != value:
        return []
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    inner = text.strip("[](){} ")
    separator = next((s for s in (";", "|", ",") if s in inner), None)
    parts = inner.split(separator) if separator else inner.split()
    return [p for p in (part.strip("[](){}'\" ") for part in parts) if p and p != "..."]
