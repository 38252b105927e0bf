"""The members of a zip archive that lies in a mapped file, or in a part of one: names and byte ranges, nothing unpacked.

``torch.save`` stores members without compression, so their bytes can be mapped. Where the directory at the end is missing
(a save that was cut off) the members are found by walking the local headers from the start. Names are never used as
paths. Format: PKWARE APPNOTE 6.3; sizes of 0xffffffff stand in the zip64 extra field.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from parsers.checkpoints.unreadable import Unreadable
from parsers.lazy_regex import lazy_re

_DESCRIPTOR = lazy_re(rb"PK\x07\x08")
MAX_MEMBERS = 2_000_000
_END, _END64, _LOCATOR64, _DIRECTORY, _LOCAL = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02", b"PK\x03\x04"


@dataclass(slots=True)
class Member:
    name: str
    offset: int  # of its bytes, from the start of the data given
    size: int  # unpacked
    packed: int
    method: int  # 0 stored, 8 deflated
    crc: int = 0  # of the unpacked bytes; 0 where the writer made none (torch.serialization.set_crc32_options(False))

    @property
    def stored(self) -> bool:
        return self.method == 0 and self.size == self.packed


def members(data: memoryview) -> tuple[dict[str, Member], bool]:
    """(members by name, whether the directory was there). Raises Unreadable where there is no member at all."""
    try:
        found, whole = {m.name: m for m in _directory(data)}, True
    except (struct.error, Unreadable):
        found, whole = {m.name: m for m in _walk(data)}, False
    if not found:
        raise Unreadable("no member of the zip can be found")
    return found, whole


def _directory(data: memoryview) -> Iterator[Member]:
    tail = bytes(data[-65_558:])
    at = tail.rfind(_END)
    if at < 0:
        raise Unreadable("the zip ends before its directory")
    count, size, start = struct.unpack_from("<HII", tail, at + 10)
    base = len(data) - len(tail)
    if tail[max(at - 20, 0) : at].startswith(_LOCATOR64):
        (end64,) = struct.unpack_from("<Q", tail, at - 12)
        if bytes(data[end64 : end64 + 4]) == _END64:
            count, size, start = struct.unpack_from("<QQQ", data, end64 + 32)
    if start + size > base + at or count > MAX_MEMBERS:
        raise Unreadable("the directory of the zip is damaged")
    position = start
    for _ in range(count):
        if bytes(data[position : position + 4]) != _DIRECTORY:
            raise Unreadable("the directory of the zip is damaged")
        method, crc, packed, size, n, extra, comment = struct.unpack_from("<H4xIIIHHH", data, position + 10)
        (local,) = struct.unpack_from("<I", data, position + 42)
        name = str(data[position + 46 : position + 46 + n], "utf-8", "replace")
        fields = bytes(data[position + 46 + n : position + 46 + n + extra])
        size, packed, local = _zip64(fields, size, packed, local)
        member = _local(data, local, Member(name, 0, size, packed, method, crc))
        if member is not None:
            yield member
        position += 46 + n + extra + comment


def _local(data: memoryview, at: int, member: Member) -> Member | None:
    """With its place; None where it does not lie in the file."""
    if bytes(data[at : at + 4]) != _LOCAL or at + 30 > len(data):
        return None
    n, extra = struct.unpack_from("<HH", data, at + 26)
    begin = at + 30 + n + extra
    member.offset = begin
    return member if begin + member.packed <= len(data) else None


def _walk(data: memoryview) -> Iterator[Member]:
    """From local header to local header. torch writes sizes only behind the bytes, in a descriptor: that is searched for."""
    at = 0
    for _ in range(MAX_MEMBERS):
        if at + 30 > len(data) or bytes(data[at : at + 4]) != _LOCAL:
            return
        flags, method = struct.unpack_from("<HH", data, at + 6)
        crc, packed, size, n, extra = struct.unpack_from("<IIIHH", data, at + 14)
        fields = bytes(data[at + 30 + n : at + 30 + n + extra])
        size, packed, _ = _zip64(fields, size, packed, 0)
        begin = at + 30 + n + extra
        following = begin + packed
        if flags & 8:
            found = _described(data, begin)
            if found is None:
                return
            packed, size, following, crc = found
        if begin + packed > len(data):
            return
        yield Member(str(data[at + 30 : at + 30 + n], "utf-8", "replace"), begin, size, packed, method, crc)
        at = following


def _described(data: memoryview, begin: int) -> tuple[int, int, int, int] | None:
    """(packed size, size, where the next header stands, checksum) by the data descriptor whose size fits its place."""
    for match in _DESCRIPTOR.finditer(data, begin):
        at = match.start()
        for fmt, end in (("<II", 16), ("<QQ", 24)):
            if at + end <= len(data):
                packed, size = struct.unpack_from(fmt, data, at + 8)
                if packed == at - begin:
                    return packed, size, at + end, int.from_bytes(data[at + 4 : at + 8], "little")
    return None


def _zip64(fields: bytes, size: int, packed: int, local: int) -> tuple[int, int, int]:
    position = 0
    while position + 4 <= len(fields):
        kind, n = struct.unpack_from("<HH", fields, position)
        if kind == 1:
            values = iter(struct.unpack_from(f"<{min(n, len(fields) - position - 4) // 8}Q", fields, position + 4))
            size = next(values, size) if size == 0xFFFFFFFF else size
            packed = next(values, packed) if packed == 0xFFFFFFFF else packed
            local = next(values, local) if local == 0xFFFFFFFF else local
        position += 4 + n
    return size, packed, local


def content(data: memoryview, member: Member, most: int) -> bytes | memoryview:
    """The bytes of a member, unpacked where it is packed. Raises Unreadable above `most` bytes, whatever the header says."""
    raw = data[member.offset : member.offset + member.packed]
    if member.stored:
        return raw
    if member.method != 8:
        raise Unreadable(f"{member.name[:80]} is compressed in a way that is not read (method {member.method})")
    if member.size > most:
        raise Unreadable(f"{member.name[:80]} unpacks to {member.size} bytes: not read")
    out = b"".join(inflate(raw, member.size))
    if len(out) != member.size:
        raise Unreadable(f"{member.name[:80]} unpacks to another length than it says: not read")
    return out


def intact(data: memoryview, member: Member) -> bool:
    """Whether the unpacked bytes have the checksum of the directory. True where there is none, or they cannot be unpacked (told elsewhere)."""
    raw, crc, step = data[member.offset : member.offset + member.packed], 0, 1 << 20
    if not member.crc or not (member.stored or member.method == 8):
        return True
    blocks = (raw[i : i + step] for i in range(0, len(raw), step)) if member.stored else inflate(raw, member.size)
    try:
        for block in blocks:
            crc = zlib.crc32(block, crc)
    except Unreadable:
        return True
    return crc == member.crc


def inflate(raw: memoryview, size: int, step: int = 1 << 20) -> Iterator[bytes]:
    """Unpacked bytes in blocks of at most `step`, never more than `size` in all."""
    engine = zlib.decompressobj(-15)
    position, done = 0, 0
    pending: bytes | memoryview = b""
    try:
        while done < size and not engine.eof:
            if not pending:
                pending = raw[position : position + step]
                position += step
                if not len(pending):
                    return
            out = engine.decompress(pending, min(step, size - done))
            pending = engine.unconsumed_tail
            done += len(out)
            if out:
                yield out
    except zlib.error as e:
        raise Unreadable(f"compressed data are damaged: {e}") from None
