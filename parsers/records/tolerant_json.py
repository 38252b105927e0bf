"""Reads JSON that may be damaged, and tells what kind of JSON a file holds: a helper of several parsers, no parser.

Three ways in, from fast to patient: :func:`loads` (orjson, then the standard library for what orjson refuses: bare
NaN and Infinity tokens, which ``json.dumps`` writes), :func:`recover` (closes a document that was cut, at the last
whole value) and :func:`objects` (finds every whole object in whatever text). Rows are whole or not at all: an
object inside a list that is cut in the middle is lost, for the half that is left would lack its step.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from parsers.tables import Gap

MAX_BYTES = 256 << 20  # of a document that is read whole
_MAX_DEPTH = 200
_BOMS = [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
         (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")]  # fmt: skip
_LONE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_LOOSE = re.compile(r"(?<=[:\[,\s])(?:([+-]?)inf(?:inity)?|[+-]?nan)(?=\s*[,}\]])", re.IGNORECASE)
_SEAM = re.compile(r"\}\s*,\s*\{")
_OPENING = re.compile(r'\{[ \t\r\n]*["}]')  # of an object; what else follows a brace is no JSON
_PIECE = 4096  # characters
_TOKEN = re.compile(
    r"""[ \t\r\n]+|"(?:[^"\\\x00-\x1f]|\\.)*+"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"""
    r"""|true|false|null|NaN|-?Infinity|[{}\[\]:,]""",
    re.DOTALL,
)


def decode(data: bytes) -> tuple[str, list[Gap]]:
    """Text of any Unicode encoding; the rest becomes a gap and replacement characters, zero bytes become spaces."""
    gaps, encoding, start = [], "utf-8", 0
    for bom, name in _BOMS:
        if data.startswith(bom):
            encoding, start = name, len(bom)
            break
    else:
        if len(data) > 3 and data[1] == 0 != data[0] and not any(data[1:200:2]):
            encoding = "utf-16-le"  # as PowerShell writes it, without a mark
    try:
        text = data[start:].decode(encoding)
    except UnicodeDecodeError as e:
        gaps.append(Gap(f"byte {start + e.start}", f"not {encoding.upper()}: replaced what could not be read", None))
        text = data[start:].decode(encoding, "replace")
    if "\0" in text:
        zeros = text.count("\0")
        gaps.append(Gap(f"byte {start + text.index(chr(0))}", f"{zeros} zero bytes (a write that never reached the disk)", None))
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


def recover(text: str) -> tuple[Any, int, bool]:
    """What a broken document says before its first damage: (document or None, where the damage is, is it inside a row).

    The document is cut after its last whole value, and its open brackets are closed.
    """
    try:
        json.loads(text, parse_int=_integer)
        damage = len(text)
    except json.JSONDecodeError as e:
        damage = e.pos
    except (ValueError, RecursionError):
        damage = len(text)
    decoder = json.JSONDecoder(parse_int=_integer)
    stack: list[str] = []
    safe, closers, after_colon, in_row, pos = 0, "", False, False, 0
    while pos < damage and len(stack) < _MAX_DEPTH:
        if text[pos] == "{" and stack and stack[-1] == "]" and not in_row:  # a whole row at once
            try:
                pos = safe = decoder.raw_decode(text, pos)[1]
                closers = "".join(reversed(stack))
                continue
            except (ValueError, RecursionError):
                pass
        token = _TOKEN.match(text, pos)
        if token is None:
            break
        pos, first = token.end(), text[token.start()]
        complete = False
        if first in "{[":
            in_row |= first == "{" and bool(stack) and stack[-1] == "]"
            stack.append("}" if first == "{" else "]")
        elif first in "}]":
            if not stack or stack.pop() != first:
                break
            complete = True
        elif first not in " \t\r\n:,":
            number = first.isdigit() or first == "-"  # a number at the cut may be the front half of one
            complete = not stack or stack[-1] == "]" or after_colon
            complete &= not number or (pos < len(text) and text[pos] in ",]} \t\r\n")
        after_colon = first == ":" or (after_colon and first in " \t\r\n")
        if complete and not in_row:
            safe, closers = pos, "".join(reversed(stack))
            if not stack:
                break
    if not safe:
        return None, min(damage, pos), in_row
    try:
        return json.loads(text[:safe] + closers, parse_int=_integer), safe, in_row
    except (ValueError, RecursionError):
        return None, min(damage, pos), in_row


def byte_at(text: str, position: int) -> str:
    """A place in decoded text as a gap names it (exact for UTF-8 files without a mark)."""
    return f"byte {len(text[:position].encode('utf-8', 'replace'))}"
