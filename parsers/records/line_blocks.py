"""Bytes of a text file into blocks of whole lines, whatever their encoding and their damage. Helpers, no parser."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path

from parsers.tables import Gap

FIRST_BLOCK, BLOCK = 1 << 16, 1 << 21
MAX_LINE = 1 << 26
CONTROLS = bytes(set(range(1, 32)) - set(b"\t\r\n"))  # NUL is told apart: a hole left by a crash


def odd_characters(text: str, usual: bytes = b"") -> int:
    """Control characters but tab and line ends (and ``usual``), and what could not be decoded."""
    data = text.encode("utf-8", "replace")
    odd = bytes(set(b"\0" + CONTROLS) - set(usual))
    return len(data) - len(data.translate(None, odd)) + text.count("\ufffd")


def encoding(head: bytes) -> str:
    """utf-8, or UTF-16 and UTF-32 by their byte order mark, or by the NUL in every second byte (what PowerShell's ``>`` writes)."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:400]
    if len(sample) >= 8 and sample[0::2].count(0) == 0 and sample[1::2].count(0) * 10 > len(sample) * 4:
        return "utf-16-le"
    return "utf-8"


def blocks(path: Path) -> Iterator[tuple[int, bytes] | Gap]:
    """Whole lines in UTF-8 with the number of their first line; only the file's end may lack its line end.

    Runs of NUL bytes come as one NUL, so that a preallocated tail of gigabytes costs no memory.
    """
    with path.open("rb") as raw:
        head = raw.read(4096)
        raw.seek(0)
        code = encoding(head)
        text = None if code == "utf-8" else io.TextIOWrapper(raw, code, "replace", newline="")
        old_mac = b"\r" in head and b"\n" not in head
        at, rest, size, skipping = 1, b"", FIRST_BLOCK, False
        while new := text.read(size).encode("utf-8", "replace") if text else raw.read(size):
            if at == 1 and not rest and new.startswith(b"\xef\xbb\xbf"):
                new = new[3:]
            if b"\x00" in new:
                new = re.sub(rb"\x00+", b"\x00", new)
            data = rest + (new.replace(b"\r", b"\n") if old_mac else new)
            size = BLOCK
            end = data.rfind(b"\n") + 1
            rest = data[end:]
            if skipping and end:
                data, at, skipping = data[data.find(b"\n") + 1 : end], at + 1, False
            else:
                data = data[:end]
            if data:
                yield at, data
                at += data.count(b"\n")
            if len(rest) > MAX_LINE or skipping:
                if not skipping:
                    yield Gap(f"line {at}", f"a line of more than {MAX_LINE >> 20} MiB", 1)
                rest, skipping = b"", True
        if rest and not skipping:
            yield at, rest
