"""Reads JSON that may be damaged, and tells what kind of JSON a file holds: a helper of several parsers, no parser.

Three ways in, from fast to patient: :func:`loads` (orjson, then the standard library for what orjson refuses: bare
NaN and Infinity tokens, which ``json.dumps`` writes), :func:`recover` (closes a document that was cut, at the last
whole value) and :func:`objects` (finds every whole object in whatever text). Rows are whole or not at all: an
object inside a list that is cut in the middle is lost, for the half that is left would lack its step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from parsers.lazy_regex import lazy_re
from parsers.records.line_blocks import encoding
from parsers.tables import Gap

MAX_BYTES = 256 << 20  # of a document that is read whole
_MAX_DEPTH = 200
_LONE = lazy_re(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_LOOSE = lazy_re(r"(?<=[:\[,\s])(?:([+-]?)inf(?:inity)?|[+-]?nan)(?=\s*[,}\]])", re.IGNORECASE)
_SEAM = lazy_re(r"\}\s*,\s*\{")
_OPENING = lazy_re(r'\{[ \t\r\n]*["}]')  # of an object; what else follows a brace is no JSON
_PIECE = 4096  # characters
_TOKEN = lazy_re(
    r"""[ \t\r\n]+|"(?:[^"\\\x00-\x1f]|\\.)*+"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"""
    r"""|true|false|null|NaN|-?Infinity|[{}\[\]:,]""",
    re.DOTALL,
)


def decode(data: bytes) -> tuple[str, list[Gap]]:
    """Text of any Unicode encoding; the rest becomes a gap and replacement characters, zero bytes become spaces."""
    gaps, code = [], encoding(data[:4096])
    try:
        text = data.decode(code)
    except UnicodeDecodeError as e:
        gaps.append(Gap(f"byte {e.start}", f"not {code.upper()}: replaced what could not be read", None))
        text = data.decode(code, "replace")
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        zeros = text.count("\0")
        gaps.append(Gap(f"byte {text.index(chr(0))}", f"{zeros} zero bytes (a write that never reached the disk)", None))
        text = text.replace("\0", " ")
    return text, gaps


def read(path: Path) -> tuple[str, list[Gap]]:
    """A whole file as text, at most MAX_BYTES of it."""
    with path.open("rb") as f:
        data = f.read(MAX_BYTES + 1)
    text, gaps = decode(data[:MAX_BYTES])
    if len(data) > MAX_BYTES:
        gaps.append(Gap(f"byte {MAX_BYTES}", "too large: the rest was not read", None))
    return text, gaps


def clean(text: str) -> str:
    """Half surrogate pairs, ``nan`` and ``inf`` as some writers spell them -> what the standard library reads."""
    if "\\u" in text:
        text = _LONE.sub(r"\\ufffd", text)
    lower = text.lower()
    nan, infinity = lower.count("nan"), lower.count("inf")
    usual = text.count("NaN") == nan and text.count("Infinity") == infinity  # no other spelling
    if usual and not any(sign in text for sign in ("+NaN", "-NaN", "+Infinity")):
        return text
    return _LOOSE.sub(lambda m: "NaN" if "a" in m[0].lower() else m[1].replace("+", "") + "Infinity", text)


def loads(data: bytes | str) -> Any:
    """One JSON value. NaN and Infinity are numbers. Raises ValueError, or RecursionError for nesting beyond reason."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else data.decode("utf-8")
    if "\\u" not in text:
        try:
            return json.loads(text, parse_int=_integer)
        except ValueError:
            pass
    return json.loads(clean(text), parse_int=_integer)


def _integer(digits: str) -> int | float:
    """Python refuses whole numbers of thousands of digits, whose reading takes quadratic time: as a float they are infinite."""
    return int(digits) if len(digits) < 400 else float(digits)


def rows(text: str, begin: int) -> tuple[list[dict[str, Any]], int]:
    """The objects of a list from ``begin`` on, as far as they are whole: (objects, where what is not begins).

    Pieces of some kilobytes are parsed at a time, so that one NaN costs its piece the fast reader and no more. A piece
    ends where an object seems to; that it parses proves it.
    """
    found: list[dict[str, Any]] = []
    seam = _SEAM.search(text, begin)
    while seam:
        end = text.find(seam[0], begin + _PIECE)
        if end < 0:
            break
        try:
            piece = loads(f"[{text[begin : end + 1]}]")
        except (ValueError, RecursionError):
            break
        if set(map(type, piece)) != {dict}:
            break
        found += piece
        begin = end + len(seam[0]) - 1
    return found, begin


def objects(text: str, start: int = 0) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Every whole JSON object from start on, with where it begins and ends; what lies between is skipped.

    Failed attempts may cost some passes over the text and no more, then the search ends.
    """
    decoder, budget = json.JSONDecoder(parse_int=_integer), 20 * len(text) + 1_000_000
    opening = _OPENING.search(text, start)
    while opening:
        at = opening.start()
        try:
            value, end = _object(decoder, text, at)
        except json.JSONDecodeError as e:  # which counts the lines before it: what it was given is what it cost
            budget -= e.pos + 20 if len(e.doc) <= _PIECE else e.pos - at + 20 + e.pos // 50
            end = at + 1
        except ValueError:
            budget -= 20
            end = at + 1
        except RecursionError:
            budget -= 20_000
            end = at + 1
        else:
            yield at, end, value
        if budget < 0:
            return
        opening = _OPENING.search(text, end)


def _object(decoder: json.JSONDecoder, text: str, at: int) -> tuple[dict[str, Any], int]:
    """The object that begins there, and where it ends: in the next kilobytes, else in all of the text."""
    piece = text[at : at + _PIECE]
    try:
        value, end = decoder.raw_decode(piece)
        return value, at + end
    except json.JSONDecodeError as e:
        if len(piece) < _PIECE or (e.pos < _PIECE - 64 and not e.msg.startswith("Unterminated")):
            raise
    found: tuple[Any, int] = decoder.raw_decode(text, at)
    return found


def whole(text: str) -> tuple[Any, str | None]:
    """A document, and where its first damage is ("byte 12"): None of one that is sound; of a damaged one what can be recovered."""
    try:
        return loads(text), None
    except (ValueError, RecursionError):
        value, at, _ = recover(text)
        return value, byte_at(text, at)


def recover(text: str) -> tuple[Any, int, bool]:
    """What a broken document says before its first damage: (document or None, where the damage is, is it inside a row).

    The document is cut after its last whole value, and its open brackets are closed.
    """
    damage = len(text)
    try:
        json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as e:
        damage = e.pos
    except (ValueError, RecursionError):
        pass
    walk = _Walk(text)
    while walk.at < damage and len(walk.open) < _MAX_DEPTH and not walk.ended:
        if not walk.row():
            walk.token()
    safe, in_row = walk.safe, walk.in_row
    try:
        return json.loads(text[:safe] + walk.closers, parse_int=_integer) if safe else None, safe or min(damage, walk.at), in_row
    except (ValueError, RecursionError):
        return None, min(damage, walk.at), in_row


class _Walk:
    """Goes through a document and remembers where its last whole value ends, and what would close it there."""

    def __init__(self, text: str) -> None:
        self.text, self.decoder = text, json.JSONDecoder(parse_int=_integer)
        self.open: list[str] = []  # the closing brackets that are due
        self.at = self.safe = 0
        self.closers = ""
        self.after_colon = self.in_row = self.ended = False

    def row(self) -> bool:
        """Takes a whole row at once, where one begins."""
        if self.text[self.at] != "{" or self.in_row or self.open[-1:] != ["]"]:
            return False
        try:
            self.at = self.decoder.raw_decode(self.text, self.at)[1]
        except (ValueError, RecursionError):
            return False
        self._whole()
        return True

    def token(self) -> None:
        token = _TOKEN.match(self.text, self.at)
        if token is None:
            self.ended = True
            return
        self.at, first = token.end(), self.text[token.start()]
        complete = False
        if first in "{[":
            self.in_row |= first == "{" and self.open[-1:] == ["]"]
            self.open.append("}" if first == "{" else "]")
        elif first in "}]":
            complete = bool(self.open) and self.open.pop() == first
            self.ended = not complete
        elif first not in " \t\r\n:,":
            complete = not self.open or self.open[-1] == "]" or self.after_colon
            if first.isdigit() or first == "-":  # a number at the cut may be the front half of one
                complete &= self.text[self.at : self.at + 1] in tuple(",]} \t\r\n")
        self.after_colon = first == ":" or (self.after_colon and first in " \t\r\n")
        if complete and not self.in_row:
            self._whole()

    def _whole(self) -> None:
        self.safe, self.closers = self.at, "".join(reversed(self.open))
        self.ended = not self.open


def byte_at(text: str, position: int) -> str:
    """A place in decoded text as a gap names it (exact for UTF-8 files without a mark)."""
    return f"byte {len(text[:position].encode('utf-8', 'replace'))}"
