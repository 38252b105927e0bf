"""Pickles that were compressed as a whole (joblib, pandas, gzip by hand): unpacked in memory, within a budget of bytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

from parsers.checkpoints.unreadable import Unreadable

MOST = 64 << 20  # bytes unpacked; what comes behind them is not seen
STEP = 1 << 20  # bytes taken in at a time
DICTIONARY = 128 << 20  # bytes that xz may ask for; its strongest preset takes 65 MB


def method(head: bytes) -> str:
    """The name of the compression that a file begins with, '' for none that is read."""
    if head[:1] == b"\x78" and len(head) > 1 and int.from_bytes(head[:2], "big") % 31 == 0:  # RFC 1950
        return "zlib"
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x5d\x00\x00": "lzma"}
_ENGINES: dict[str, Callable[[], Any]] = {
    "zlib": lambda: zlib.decompressobj(15),
    "gzip": lambda: zlib.decompressobj(31),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, DICTIONARY),
    "lzma": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, DICTIONARY),
}


def unpack(data: memoryview, how: str) -> tuple[bytes, str]:
    """(the first bytes unpacked, what is missing of the rest or ''). Raises Unreadable where not one byte comes out."""
    engine, out, why = _ENGINES[how](), bytearray(), ""
    try:
        for i in range(0, len(data), STEP):
            pending = bytes(data[i : i + STEP])
            while pending and not engine.eof and len(out) < MOST:
                out += engine.decompress(pending, MOST - len(out))
                pending = getattr(engine, "unconsumed_tail", b"")
            if engine.eof or len(out) >= MOST:
                break
    except (zlib.error, lzma.LZMAError, OSError, EOFError, MemoryError) as e:
        why = f"the {how} data are damaged behind {len(out)} bytes: {e}"
    if not out:
        raise Unreadable(why or f"compressed with {how}, and nothing comes out")
    if not why and not engine.eof:
        why = f"unpacks to more than {MOST >> 20} MB: the rest is not looked at" if len(out) >= MOST else f"the {how} data are cut off"
    return bytes(out), why
