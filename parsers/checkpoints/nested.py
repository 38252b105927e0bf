"""Pickles inside pickles, inside zips, inside texts: the names they reach for are listed, nothing of them is built.

A loader that is called on bytes of a pickle runs what lies in them, however deep. So every byte string and every text that
looks like a pickle, a zip, or either of them in base64 is gone through in the same way, within limits.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from parsers.checkpoints import allowed, opcodes, zips
from parsers.checkpoints.danger import dangerous
from parsers.checkpoints.pickles import Machine, Opaque
from parsers.checkpoints.unreadable import Unreadable
from parsers.lazy_regex import lazy_re

MAX_DEPTH = 8
MAX_BYTES = 64 << 20  # looked at in all; what lies in each other is counted each time
MAX_BLOBS = 10_000
MAX_FOLLOWING = 100  # pickles one behind the other
_PICKLE = tuple(bytes((0x80, n)) for n in range(2, 6))
_ZIP = b"PK\x03\x04"
_BASE64 = lazy_re(rb"gA[I-X]|UEsDB|[YK][0-9A-Za-z+/]{3}")  # how base64 writes the first bytes of a pickle, and of a zip
_OLD = tuple(bytes((x,)) for x in b"c(]}")  # first opcodes of protocols 0 and 1, which have no mark of their own: only whole ones count
_SHORT = 12  # bytes; the shortest pickle that calls a function is longer


@dataclass
class Search:
    """What is left of the limits, and where to report."""

    report: Callable[[str, str], None]  # name, place
    left: int = MAX_BYTES
    blobs: int = MAX_BLOBS

    def spend(self, n: int) -> bool:
        self.left, self.blobs = self.left - n, self.blobs - 1
        return self.left >= 0 and self.blobs >= 0


def look(search: Search, data: bytes | memoryview, place: str, depth: int = 0) -> None:
    """Goes through bytes that may be a pickle or a zip; `place` says where they lie."""
    head = bytes(data[:4])
    if depth >= MAX_DEPTH or len(data) < _SHORT or not head.startswith((*_PICKLE, _ZIP, *_OLD)) or not search.spend(len(data)):
        return
    if head == _ZIP:
        for name, inner in _members(memoryview(data)):
            look(search, inner, f"{place}, {name[:80]}", depth + 1)
        return
    old = not head.startswith(_PICKLE)
    if old and bytes(data[-1:]) != b".":
        return
    machine = _machine(data)
    try:
        opcodes.load(machine)
    except Unreadable:
        if old:
            return  # a text that begins like one
    _report(search, machine, f"{place}, ", " of the pickle there", depth)
    if machine.whole:
        following(search, data, machine.position, f"{place}, ", " of the pickle there", depth)


def following(search: Search, data: bytes | memoryview, position: int, before: str = "", after: str = "", depth: int = 0) -> None:
    """The pickles behind the first one of a file, as long as each ends where the next begins: who loads twice runs them."""
    for _ in range(MAX_FOLLOWING):
        if position >= len(data) or not search.spend(len(data) - position):
            return
        machine = _machine(data, position)
        with contextlib.suppress(Unreadable):
            opcodes.load(machine)
        if not machine.whole:  # other data, perhaps: of these, names that no chance gives
            machine.refused = {k: v for k, v in machine.refused.items() if dangerous(k)}
        _report(search, machine, before, after, depth)
        if not machine.whole:
            return
        position = machine.position


def _report(search: Search, machine: Machine, before: str, after: str, depth: int) -> None:
    for what, at in machine.refused.items():
        search.report(what, f"{before}byte {at}{after}")
    for blob, at in blobs(machine):
        look(search, blob, f"{before}byte {at}{after}", depth + 1)


def blobs(machine: Machine) -> Iterator[tuple[bytes | memoryview, int]]:
    """Byte strings and texts of a pickle that may hold another, with their places. Texts: base64, or bytes as protocol 2 writes them."""
    for value, at in machine.blobs:
        raw = value.encode("latin-1", "replace") if isinstance(value, str) else value
        if not _BASE64.match(bytes(raw[:5])):
            yield raw, at
            continue
        with contextlib.suppress(ValueError):
            yield base64.b64decode(raw), at


def _members(data: memoryview) -> Iterator[tuple[str, bytes | memoryview]]:
    try:
        parts, _ = zips.members(data)
    except Unreadable:
        return
    for name, member in parts.items():
        try:
            yield name, zips.content(data, member, MAX_BYTES)
        except Unreadable:
            continue


def _machine(data: bytes | memoryview, start: int = 0) -> Machine:
    return Machine(
        data, start, build=lambda name, args: Opaque(str(name), args), set_state=lambda target, state: target,
        persistent=lambda pid: Opaque("persistent id"), allowed=allowed.allowed,
    )  # fmt: skip
