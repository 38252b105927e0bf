"""An interpreter for pickles that builds data and nothing else: no import, no call, whatever the file says.

The pickle machine has 68 opcodes (parsers.checkpoints.opcodes holds them). Here GLOBAL only writes down a name; what a
REDUCE, NEWOBJ or BUILD would have called goes to parsers.checkpoints.allowed, which knows how to make plain values of a
few dozen names. Every other name becomes an Opaque (its name, arguments and state, so that tensors inside are still
found) and an entry in ``refused``.

Python's own ``pickle.Unpickler`` with a strict ``find_class`` would not run foreign code either, but a ten-byte file can
make it ask for gigabytes (LONG_BINPUT with a huge index), and it does not say where in the file a name stands.

Odd: memo indices may be any 32-bit number (a dict holds them); a list may hold itself; keys may be unhashable in a
hostile file; text in STRING opcodes is escaped Latin-1; protocol-2 files of Python 2 are still about.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from parsers.checkpoints.unreadable import Unreadable
from parsers.lazy_regex import lazy_re

_MEMBER = lazy_re(r"[A-Z][A-Z0-9_]*")  # of an enumeration, as they are named
_NUMBERS = {fmt: struct.Struct(fmt) for fmt in ("<B", "<H", "<I", "<i", "<Q")}
MAX_BLOBS = 100_000
MAX_TEXT = 1 << 20  # of a line-ended argument
MAX_LABEL = 1000  # characters
MAX_COPIED = 20_000_000  # items handed to calls: three bytes can name a list of millions again; real files copy each list once


@dataclass(frozen=True)
class Name:
    """A global of the pickle: only its name."""

    module: str
    name: str
    at: int = field(compare=False)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Opaque:
    """An object of a class that is not on the list: never made, only described."""

    name: str
    args: tuple[Any, ...] = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)  # appended or set on it: values, or (key, value)


MARK = object()


class Machine:
    """One pickle on its way; ``opcodes.load`` runs it.

    ``refused`` lists the names that were not followed with their bytes; where it is whole, ``position`` is the byte after STOP.
    """

    def __init__(
        self,
        data: memoryview | bytes,
        start: int = 0,
        *,
        build: Callable[[Name, tuple[Any, ...]], Any],  # what REDUCE gives
        set_state: Callable[[Any, Any], Any],
        persistent: Callable[[Any], Any],
        allowed: Callable[[Name], bool],
    ) -> None:
        self.data = memoryview(data)
        self.position = self.opcode_at = start
        self.build, self.set_state, self.persistent, self.allowed = build, set_state, persistent, allowed
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.refused: dict[str, int] = {}  # name -> first byte
        self.members: set[str] = set()  # of enumerations, named by a getattr
        self.other_getattr = False
        self.blobs: list[tuple[str | bytes | memoryview, int]] = []  # what may hold a pickle of its own, and its byte
        self.whole = False  # it came to its STOP
        self.copied = 0

    def remains(self) -> Any:
        """Of a pickle that broke off: the outermost container, with what waited on the stack to be put into it."""
        while any(x is MARK for x in self.stack):
            items = self.since_mark()
            target = self.stack[-1] if self.stack else None
            if isinstance(target, dict):
                target.update({key(k): v for k, v in zip(items[::2], items[1::2], strict=False)})
            elif isinstance(target, list):
                target += items
            else:
                self.stack.append(items)
        return next((x for x in self.stack if isinstance(x, (dict, list, Opaque))), None)

    # --- reading arguments

    def take(self, n: int) -> memoryview:
        if n < 0 or self.position + n > len(self.data):
            raise Unreadable(f"byte {self.opcode_at}: {n} bytes are announced, {len(self.data) - self.position} are left")
        chunk = self.data[self.position : self.position + n]
        self.position += n
        return chunk

    def number(self, fmt: str) -> int:
        at, kind = self.position, _NUMBERS[fmt]
        if at + kind.size > len(self.data):
            self.take(kind.size)  # says what is missing
        self.position = at + kind.size
        return int(kind.unpack_from(self.data, at)[0])

    def line(self) -> bytes:
        window = bytes(self.data[self.position : self.position + MAX_TEXT])
        end = window.find(b"\n")
        if end < 0:
            raise Unreadable(f"byte {self.opcode_at}: a line without end")
        self.position += end + 1
        return window[:end]

    # --- the stack

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is MARK:
            raise Unreadable(f"byte {self.opcode_at}: a mark where a value should be")
        return value

    def since_mark(self) -> list[Any]:
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is MARK:
                items = self.stack[i + 1 :]
                del self.stack[i:]
                return items
        raise Unreadable(f"byte {self.opcode_at}: no mark on the stack")

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    # --- objects

    def pushed(self, value: Any) -> Any:
        """Remembers byte strings, and texts that begin like a pickle or a zip, in base64 too (parsers.checkpoints.nested looks into them)."""
        begins = not isinstance(value, str) or value.startswith(("gA", "UEsDB", "\x80", "PK\x03\x04", "c", "Y", "K"))
        if begins and len(value) >= 12 and len(self.blobs) < MAX_BLOBS:
            self.blobs.append((value, self.opcode_at))
        return value

    def spend(self, value: Any) -> None:
        """Counts what a call may copy, one container deep and the containers in it."""
        inside = [x for x in value if isinstance(x, (list, tuple, dict, set, frozenset, str, bytes))] if len(value) < 16 else []
        self.copied += len(value) + sum(map(len, inside))
        if self.copied > MAX_COPIED:
            raise Unreadable(f"byte {self.opcode_at}: more than {MAX_COPIED:,} items are copied in one pickle")

    def refuse(self, what: str, at: int) -> None:
        if len(self.refused) < 1000:
            self.refused.setdefault(what[:200], at)

    def name(self, module: Any, name: Any) -> Name:
        if not isinstance(module, str) or not isinstance(name, str):  # put together by calls that were not made
            self.refuse("a name that the pickle works out", self.opcode_at)
            module = name = "?"
        found = Name(module[:200], name[:200], self.opcode_at)
        if not self.allowed(found):
            self.refuse(str(found), self.opcode_at)
        return found

    def call(self, function: Any, args: Any) -> Any:
        """What REDUCE or NEWOBJ leaves on the stack: a plain value, or an Opaque."""
        args = args if isinstance(args, (tuple, list)) else (args,)
        self.spend(args)
        args = tuple(args)
        if isinstance(function, Opaque):  # calling what a refused call would have returned
            if function.name in self.members:
                self.refuse(f"a call of {function.name}", self.opcode_at)
            return Opaque(function.name, args)
        if not isinstance(function, Name):
            self.refuse(f"a call of {type(function).__name__}", self.opcode_at)
            return Opaque("?", args)
        if function.name == "getattr" and function.module in ("builtins", "__builtin__"):
            return self._member(function, args)
        try:
            return self.build(function, args)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
            return Opaque(str(function), args)  # right name, wrong arguments

    def _member(self, function: Name, args: tuple[Any, ...]) -> Opaque:
        """A member of an enumeration, which early releases of Python 3.11 write as ``getattr(Class, "MEMBER")``. Any other getattr is refused."""
        owner, member = args if len(args) == 2 else (None, None)
        if isinstance(owner, Name) and isinstance(member, str) and _MEMBER.fullmatch(member) and self.allowed(owner):
            if not self.other_getattr:
                self.refused.pop(str(function), None)
            self.members.add(f"{owner}.{member}")
            return Opaque(f"{owner}.{member}")
        self.other_getattr = True
        self.refuse(str(function), function.at)
        return Opaque(str(function), args)

    def put_items(self, pairs: list[Any]) -> None:
        target = self.top()
        if isinstance(target, dict):
            for k, v in zip(pairs[::2], pairs[1::2], strict=True):
                target[key(k)] = v
        elif isinstance(target, Opaque):
            target.items += zip(pairs[::2], pairs[1::2], strict=True)
        else:
            raise Unreadable(f"byte {self.opcode_at}: items for a {type(target).__name__}")

    def append_all(self, values: list[Any]) -> None:
        target = self.top()
        if isinstance(target, list):
            target += values
        elif isinstance(target, set):
            target.update(key(v) for v in values)
        elif isinstance(target, Opaque):
            target.items += values
        else:
            raise Unreadable(f"byte {self.opcode_at}: values for a {type(target).__name__}")

    def set_memo(self, index: int) -> None:
        self.memo[index] = self.top()


def label(value: Any) -> str:
    """What stands where a class, type or device is named; never the text of a container, which may unfold without end."""
    return str(value)[:MAX_LABEL] if isinstance(value, (Name, str, float)) or type(value) is int else type(value).__name__


def key(value: Any) -> Any:
    """A dict key or set member: what cannot be hashed, or could be made to collide by design, goes in as text."""
    if isinstance(value, (str, bool, bytes, float, Name, Opaque)) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 60 else hex(value)
    if isinstance(value, tuple) and len(value) <= 8 and all(isinstance(v, (str, int, float)) for v in value):
        return tuple(key(v) for v in value)
    return f"<{type(value).__name__} {id(value):x}>"
